//! Reads stored evidence as a stream: of its JSON values there is one part at a time, all others
//! are typed already.

use serde::de::{DeserializeOwned, Deserializer, Error as _};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Defect, Rule, check, check_digests, fields};
use crate::evidence::digest::{self, Part};
use crate::evidence::{CaseEvidence, Evidence, Repetition, numbers};

/// Content of a file of evidence, of any layout.
pub struct Stored {
    /// Its layout.
    pub schema: u64,
    /// Version of the tool that wrote it; empty where it does not say it.
    pub version: String,
    evidence: Result<Evidence, Defect>,
    parts: Parts,
}

impl Stored {
    /// Reads JSON with [portable numbers](numbers). The error is that of the JSON.
    pub fn read<'de, D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        let StoredEvidence {
            digests,
            schema,
            cases,
            mut fields,
        } = StoredEvidence::deserialize(source)?;
        let mut parts = Parts {
            noted: digests,
            ..Parts::default()
        };
        let layout = schema.as_u64();
        fields.insert("schema".into(), schema);
        let is_there = cases.is_some();
        for (number, case) in cases.into_iter().flatten().enumerate() {
            parts.case(&format!("cases[{number}]"), case);
        }
        for (key, value) in &fields {
            parts.found.push(digest::part(key, value));
        }
        if is_there {
            fields.insert("cases".into(), Value::Array(Vec::new()));
        }
        let version = fields.get("version").and_then(Value::as_str);
        Ok(Self {
            schema: layout.ok_or_else(|| D::Error::missing_field("schema"))?,
            version: version.unwrap_or_default().into(),
            evidence: parts.evidence(fields),
            parts,
        })
    }

    /// The evidence, if it is whole.
    pub fn whole(self) -> Result<Evidence, Defect> {
        if self.evidence.is_ok() {
            check_digests(&self.parts.noted, &self.parts.found)?;
        }
        self.whole_but_for_digests()
    }

    /// The evidence, if it is whole but for its digests.
    pub fn whole_but_for_digests(self) -> Result<Evidence, Defect> {
        let evidence = self.evidence?;
        self.parts.other_field.map_or(Ok(()), Err)?;
        check(&evidence)?;
        Ok(evidence)
    }
}

/// Parts of a file that were read so far.
#[derive(Default)]
struct Parts {
    cases: Vec<CaseEvidence>,
    /// Digests that were noted, and those of what is there.
    noted: Vec<Part>,
    found: Vec<Part>,
    /// The first part that is not of this layout.
    malformed: Option<Defect>,
    /// The first field that is missing or unknown.
    other_field: Option<Defect>,
}

/// The value of a part, and its first field that is missing or unknown; paths begin at the part.
type Typed<T> = Result<(T, Option<Defect>), Defect>;

fn typed<T: DeserializeOwned + Serialize>(mut value: Value) -> Typed<T> {
    numbers::from_portable(&mut value);
    match T::deserialize(&value) {
        Ok(typed) => {
            let other_field = fields::check(&value, &typed).err();
            Ok((typed, other_field))
        }
        Err(error) => Err(Rule::Fields.broken_at("", error.to_string())),
    }
}

/// The evidence as it is stored, of any layout.
#[derive(Deserialize)]
#[serde(expecting = "the evidence of a run")]
struct StoredEvidence {
    #[serde(default)]
    digests: Vec<Part>,
    schema: Value,
    cases: Option<Vec<StoredCase>>,
    #[serde(flatten)]
    fields: Map<String, Value>,
}

/// A case as it is stored: each repetition has its type before the next one is read.
#[derive(Deserialize)]
struct StoredCase {
    repetitions: Option<Vec<StoredRepetition>>,
    #[serde(flatten)]
    fields: Map<String, Value>,
}

struct StoredRepetition {
    digest: Part,
    typed: Typed<Repetition>,
}

impl<'de> Deserialize<'de> for StoredRepetition {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(source)?;
        Ok(Self {
            digest: digest::part("", &value),
            typed: typed(value),
        })
    }
}

impl Parts {
    /// Keeps the value of the part of that path; of the whole it is empty.
    fn keep<T>(&mut self, path: &str, typed: Typed<T>) -> Option<T> {
        let placed = |defect: Defect| Defect {
            part: match (path, defect.part.as_str()) {
                ("", "") => "evidence".into(),
                ("", part) | (part, "") => part.into(),
                (path, part) => format!("{path}.{part}"),
            },
            ..defect
        };
        match typed {
            Ok((value, other_field)) => {
                let found = other_field.map(placed);
                self.other_field = self.other_field.take().or(found);
                Some(value)
            }
            Err(defect) => {
                self.malformed.get_or_insert(placed(defect));
                None
            }
        }
    }

    fn case(&mut self, path: &str, stored: StoredCase) {
        let mut fields = stored.fields;
        let digest = digest::of_fields(path, &fields);
        if stored.repetitions.is_some() {
            fields.insert("repetitions".into(), Value::Array(Vec::new()));
        }
        let mut repetitions = Vec::new();
        for (number, read) in stored.repetitions.into_iter().flatten().enumerate() {
            let part = format!("{path}.repetitions[{number}]");
            repetitions.extend(self.keep(&part, read.typed));
            self.found.push(Part {
                part,
                ..read.digest
            });
        }
        self.found.push(digest);
        if let Some(case) = self.keep(path, typed(Value::Object(fields))) {
            self.cases.push(CaseEvidence {
                repetitions,
                ..case
            });
        }
    }

    fn evidence(&mut self, fields: Map<String, Value>) -> Result<Evidence, Defect> {
        let evidence = self.keep("", typed(Value::Object(fields)));
        match (self.malformed.take(), evidence) {
            (None, Some(evidence)) => Ok(Evidence {
                cases: std::mem::take(&mut self.cases),
                ..evidence
            }),
            (defect, _) => Err(defect.expect("what has no type is malformed")),
        }
    }
}
