//! Each field is there: the file is what its own values are written as.

use serde::Serialize;
use serde_json::Value;

use super::{Checked, Rule};

/// Fails with the first field that `stored` lacks, or that is unknown.
pub(super) fn check(stored: &Value, typed: &impl Serialize) -> Checked {
    let written = serde_json::to_value(typed).unwrap_or_default();
    let mut path = String::new();
    match difference(stored, &written, &mut path) {
        Some(found) => Err(Rule::Fields.broken_at(path.strip_prefix('.').unwrap_or(&path), found)),
        None => Ok(()),
    }
}

/// The first difference, if any; `path` then leads to it.
fn difference(stored: &Value, written: &Value, path: &mut String) -> Option<&'static str> {
    let before = path.len();
    match (stored, written) {
        (Value::Object(stored), Value::Object(written)) => {
            for (key, value) in written {
                path.push('.');
                path.push_str(key);
                let Some(found) = stored.get(key) else {
                    return Some("is missing");
                };
                if let Some(found) = difference(found, value, path) {
                    return Some(found);
                }
                path.truncate(before);
            }
            let unknown = stored.keys().find(|key| !written.contains_key(*key))?;
            path.push('.');
            path.push_str(unknown);
            Some("is no field of this layout")
        }
        (Value::Array(stored), Value::Array(written)) if stored.len() == written.len() => {
            for (index, (found, value)) in stored.iter().zip(written).enumerate() {
                path.push_str(&format!("[{index}]"));
                if let Some(found) = difference(found, value, path) {
                    return Some(found);
                }
                path.truncate(before);
            }
            None
        }
        // Another program may have written 10.0 as 10.
        (Value::Number(stored), Value::Number(written))
            if stored.is_f64() != written.is_f64() && stored.as_f64() == written.as_f64() =>
        {
            None
        }
        _ => (stored != written).then_some("has a value of another layout"),
    }
}
