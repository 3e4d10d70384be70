//! Numbers in JSON that every program reads alike.
//!
//! Many take each number for an IEEE 754 double and would round a time of 2026 or a key, so that
//! an integer beyond their reach is a string of its digits (RFC 7493, 2.2).

use serde_json::Value;

/// The largest integer that is written as a number; the smallest is its negative.
pub const MAX: u64 = (1 << 53) - 1;
/// Stands before a text that would be taken for an integer.
const TEXT: char = '\\';

/// The digits of an integer that is not written as a number.
pub fn digits(number: &serde_json::Number) -> Option<String> {
    match (number.as_u64(), number.as_i64()) {
        (Some(number), _) => (number > MAX).then(|| number.to_string()),
        (None, Some(number)) => (number.unsigned_abs() > MAX).then(|| number.to_string()),
        (None, None) => None,
    }
}

/// The integer whose digits these are, if it is not written as a number.
fn integer(text: &str) -> Option<Value> {
    let number = match text.parse::<u64>() {
        Ok(number) => number.into(),
        Err(_) => text.parse::<i64>().ok()?.into(),
    };
    // Only as it is written: without a plus or leading zeros.
    (digits(&number).as_deref() == Some(text)).then(|| number.into())
}

fn is_marked(text: &str) -> bool {
    integer(text.trim_start_matches(TEXT)).is_some()
}

/// Writes integers beyond [`MAX`] as strings.
pub fn to_portable(value: &mut Value) {
    each_leaf(value, &|leaf| match leaf {
        Value::Number(number) => digits(number).map(Value::String),
        Value::String(text) => is_marked(text).then(|| format!("{TEXT}{text}").into()),
        _ => None,
    });
}

/// Undoes [`to_portable`].
pub fn from_portable(value: &mut Value) {
    each_leaf(value, &|leaf| {
        let text = leaf.as_str()?;
        integer(text).or_else(|| {
            let rest = text.strip_prefix(TEXT)?;
            is_marked(rest).then(|| rest.into())
        })
    });
}

fn each_leaf(value: &mut Value, change: &impl Fn(&Value) -> Option<Value>) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| each_leaf(item, change)),
        Value::Object(fields) => fields
            .values_mut()
            .for_each(|field| each_leaf(field, change)),
        leaf => {
            if let Some(changed) = change(leaf) {
                *leaf = changed;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_value_comes_back_and_no_number_is_beyond_a_double() {
        let leaves = [
            (json!(MAX), json!(9_007_199_254_740_991_u64)),
            (json!(MAX + 1), json!("9007199254740992")),
            (json!(u64::MAX), json!("18446744073709551615")),
            (json!(-(MAX as i64)), json!(-9_007_199_254_740_991_i64)),
            (json!(i64::MIN), json!("-9223372036854775808")),
            (json!(0.1), json!(0.1)),
            (json!("9007199254740991"), json!("9007199254740991")),
            (json!("9007199254740992"), json!("\\9007199254740992")),
            (json!("\\9007199254740992"), json!("\\\\9007199254740992")),
            (json!("+9007199254740992"), json!("+9007199254740992")),
            (json!("09007199254740992"), json!("09007199254740992")),
            (json!("99999999999999999999"), json!("99999999999999999999")),
            (json!("\\a"), json!("\\a")),
            (json!(null), json!(null)),
        ];
        for (value, written) in leaves {
            let mut changed = json!({ "a": [value.clone()] });
            to_portable(&mut changed);
            assert_eq!(changed, json!({ "a": [written] }));
            from_portable(&mut changed);
            assert_eq!(changed, json!({ "a": [value] }));
        }
    }
}
