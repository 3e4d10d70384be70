//! Digests of the parts of evidence, by which a file shows that it is as it was written.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::numbers;
use crate::quantity::hex;

/// The key of the digests in `evidence.json`.
pub const KEY: &str = "digests";

/// The digest of a part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// Path of the part, such as `cases[0].repetitions[2]`.
    pub part: String,
    /// SHA-256 in hexadecimal digits: of the JSON value, not of its text, and with every number as
    /// the double that other programs take it for.
    pub sha256: String,
}

/// Digests of all parts of `evidence`: of each field, of each case without its repetitions, and of
/// each repetition.
pub fn of(evidence: &Value) -> Vec<Part> {
    let mut parts = Vec::new();
    for (key, value) in evidence.as_object().into_iter().flatten() {
        match (key.as_str(), value) {
            (KEY, _) => {}
            ("cases", Value::Array(cases)) => {
                for (index, case) in cases.iter().enumerate() {
                    of_case(&format!("cases[{index}]"), case, &mut parts);
                }
            }
            _ => parts.push(part(key, value)),
        }
    }
    parts
}

fn of_case(path: &str, case: &Value, parts: &mut Vec<Part>) {
    let fields = case.as_object().into_iter().flatten();
    let (repetitions, rest): (Vec<_>, Vec<_>) = fields.partition(|(key, _)| *key == "repetitions");
    let repetitions = repetitions.iter().filter_map(|(_, list)| list.as_array());
    let each = repetitions.flatten().enumerate();
    parts.extend(
        each.map(|(index, repetition)| part(&format!("{path}.repetitions[{index}]"), repetition)),
    );
    parts.push(of_fields(path, rest));
}

/// A field of a JSON object.
type Field<'v> = (&'v String, &'v Value);

/// Digest of one part.
pub(super) fn part(path: &str, value: &Value) -> Part {
    hashed(path, |hash| feed(value, hash))
}

/// Digest of a part that is an object of these fields.
pub(super) fn of_fields<'v>(path: &str, fields: impl IntoIterator<Item = Field<'v>>) -> Part {
    hashed(path, |hash| feed_fields(fields, hash))
}

fn hashed(path: &str, feed: impl FnOnce(&mut Sha256)) -> Part {
    let mut hash = Sha256::new();
    feed(&mut hash);
    Part {
        part: path.into(),
        sha256: hex(&hash.finalize()),
    }
}

/// Feeds a value to the hash, with its kind and length before it. The order of keys does not count.
fn feed(value: &Value, hash: &mut Sha256) {
    let mut put = |kind: u8, length: usize, octets: &[u8]| {
        hash.update([kind]);
        hash.update((length as u64).to_le_bytes());
        hash.update(octets);
    };
    match value {
        Value::Null => put(b'n', 0, &[]),
        Value::Bool(value) => put(b'b', 1, &[u8::from(*value)]),
        Value::Number(number) => match numbers::digits(number) {
            Some(digits) => put(b's', digits.len(), digits.as_bytes()),
            // Exact, as larger ones have digits.
            None => {
                let double = number.as_f64().unwrap_or(f64::NAN);
                put(b'd', 8, &double.to_bits().to_le_bytes());
            }
        },
        Value::String(text) => put(b's', text.len(), text.as_bytes()),
        Value::Array(items) => {
            put(b'a', items.len(), &[]);
            items.iter().for_each(|item| feed(item, hash));
        }
        Value::Object(fields) => feed_fields(fields, hash),
    }
}

fn feed_fields<'v>(fields: impl IntoIterator<Item = Field<'v>>, hash: &mut Sha256) {
    let mut fields: Vec<Field<'_>> = fields.into_iter().collect();
    fields.sort_unstable_by_key(|(key, _)| *key);
    hash.update([b'o']);
    hash.update((fields.len() as u64).to_le_bytes());
    for (key, value) in fields {
        hash.update((key.len() as u64).to_le_bytes());
        hash.update(key);
        feed(value, hash);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_change_changes_the_digest_of_its_part_alone() {
        let evidence = json!({
            "schema": 2,
            "cases": [{"case": "a", "repetitions": [{"x": [1, 2]}, {"x": [1.5]}]}],
            "digests": [],
        });
        let paths = |parts: &[Part]| -> Vec<String> {
            parts.iter().map(|part| part.part.clone()).collect()
        };
        let before = of(&evidence);
        assert_eq!(
            paths(&before),
            [
                "cases[0].repetitions[0]",
                "cases[0].repetitions[1]",
                "cases[0]",
                "schema"
            ]
        );
        let changed_by = |change: fn(&mut Value)| {
            let mut changed = evidence.clone();
            change(&mut changed);
            let after = of(&changed);
            let differing = after.into_iter().filter(|part| !before.contains(part));
            paths(&differing.collect::<Vec<_>>())
        };
        assert_eq!(
            changed_by(|e| e["cases"][0]["repetitions"][0]["x"] = json!([2, 1])),
            ["cases[0].repetitions[0]"]
        );
        assert_eq!(
            changed_by(|e| e["cases"][0]["repetitions"][1]["x"] = json!([[1.5]])),
            ["cases[0].repetitions[1]"]
        );
        assert_eq!(
            changed_by(|e| e["cases"][0]["case"] = json!("b")),
            ["cases[0]"]
        );
        assert_eq!(changed_by(|e| e["schema"] = json!("2")), ["schema"]);
        assert_eq!(changed_by(|e| e["digests"] = json!([1])), [""; 0]);
    }

    #[test]
    fn a_number_has_one_digest_however_it_is_written() {
        let digest = |text: &str| part("p", &serde_json::from_str(text).unwrap()).sha256;
        assert_eq!(digest("10"), digest("10.0"));
        assert_eq!(digest("10"), digest("1e1"));
        assert_eq!(digest("1e-05"), digest("0.00001"));
        // As it is stored.
        assert_eq!(digest("9007199254740993"), digest("\"9007199254740993\""));
        assert_ne!(digest("9007199254740993"), digest("9007199254740992"));
        assert_ne!(digest("10"), digest("\"10\""));
    }

    #[test]
    fn the_digest_is_that_of_sha_256() {
        // printf 's\x01\0\0\0\0\0\0\0a' | sha256sum
        assert_eq!(
            part("p", &json!("a")).sha256,
            "8c55c670d897f80b03daf1a5d2bf5c940074a4ab091e1e511ea7c5bf205d0d29"
        );
    }
}
