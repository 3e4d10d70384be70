//! Reads stored evidence as a stream: of its JSON values there is one part at a time, all others
//! are typed already.

use std::fmt;

use serde::Serialize;
use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor,
};
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
        let mut parts = Parts::default();
        let (schema, fields) = source.deserialize_map(Whole(&mut parts))?;
        let version = fields.get("version").and_then(Value::as_str);
        Ok(Self {
            schema,
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

impl Parts {
    fn digest(&mut self, path: &str, value: &Value) {
        self.found.push(digest::part(path, value));
    }

    /// The typed value of the part of that path; of the whole it is empty.
    fn typed<T: DeserializeOwned + Serialize>(
        &mut self,
        path: &str,
        mut value: Value,
    ) -> Option<T> {
        numbers::from_portable(&mut value);
        match T::deserialize(&value) {
            Ok(typed) => {
                let found = fields::check(path, &value, &typed).err();
                self.other_field = self.other_field.take().or(found);
                Some(typed)
            }
            Err(error) => {
                self.malformed.get_or_insert(Defect {
                    rule: Rule::Fields,
                    part: if path.is_empty() { "evidence" } else { path }.into(),
                    found: error.to_string(),
                });
                None
            }
        }
    }

    fn evidence(&mut self, fields: Map<String, Value>) -> Result<Evidence, Defect> {
        let evidence = self.typed("", Value::Object(fields));
        match (self.malformed.take(), evidence) {
            (None, Some(evidence)) => Ok(Evidence {
                cases: std::mem::take(&mut self.cases),
                ..evidence
            }),
            (defect, _) => Err(defect.expect("what has no type is malformed")),
        }
    }
}

/// All but the cases; their list is left empty.
struct Whole<'p>(&'p mut Parts);

impl<'de> Visitor<'de> for Whole<'_> {
    /// The layout, and the fields.
    type Value = (u64, Map<String, Value>);

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the evidence of a run")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut fields = Map::new();
        while let Some(key) = map.next_key::<String>()? {
            if key == digest::KEY {
                self.0.noted = map.next_value()?;
            } else if key == "cases" {
                map.next_value_seed(Cases(self.0))?;
                fields.insert(key, Value::Array(Vec::new()));
            } else {
                let value = map.next_value()?;
                self.0.digest(&key, &value);
                fields.insert(key, value);
            }
        }
        match fields.get("schema").and_then(Value::as_u64) {
            Some(schema) => Ok((schema, fields)),
            None => Err(A::Error::missing_field("schema")),
        }
    }
}

struct Cases<'p>(&'p mut Parts);

impl<'de> DeserializeSeed<'de> for Cases<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, source: D) -> Result<(), D::Error> {
        source.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Cases<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("cases")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut cases: A) -> Result<(), A::Error> {
        let mut number = 0;
        let path = |number| format!("cases[{number}]");
        while cases
            .next_element_seed(Case(self.0, path(number)))?
            .is_some()
        {
            number += 1;
        }
        Ok(())
    }
}

/// A case and its path.
struct Case<'p>(&'p mut Parts, String);

impl<'de> DeserializeSeed<'de> for Case<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, source: D) -> Result<(), D::Error> {
        source.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Case<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a case")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Self(parts, path) = self;
        let mut fields = Map::new();
        let mut repetitions = None;
        while let Some(key) = map.next_key::<String>()? {
            if key == "repetitions" {
                repetitions = Some(map.next_value_seed(Repetitions(parts, &path))?);
            } else {
                fields.insert(key, map.next_value()?);
            }
        }
        parts.found.push(digest::of_fields(&path, &fields));
        if repetitions.is_some() {
            fields.insert("repetitions".into(), Value::Array(Vec::new()));
        }
        if let Some(case) = parts.typed(&path, Value::Object(fields)) {
            parts.cases.push(CaseEvidence {
                repetitions: repetitions.unwrap_or_default(),
                ..case
            });
        }
        Ok(())
    }
}

/// The repetitions of the case of that path.
struct Repetitions<'p>(&'p mut Parts, &'p str);

impl<'de> DeserializeSeed<'de> for Repetitions<'_> {
    type Value = Vec<Repetition>;

    fn deserialize<D: Deserializer<'de>>(self, source: D) -> Result<Self::Value, D::Error> {
        source.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Repetitions<'_> {
    type Value = Vec<Repetition>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("repetitions")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        let Self(parts, case) = self;
        let mut all = Vec::new();
        let mut number = 0;
        while let Some(value) = items.next_element::<Value>()? {
            let path = format!("{case}.repetitions[{number}]");
            parts.digest(&path, &value);
            all.extend(parts.typed::<Repetition>(&path, value));
            number += 1;
        }
        Ok(all)
    }
}
