//! The octet of DSCP and ECN, or of TOS, put together from its parts.

use validator_core::engine::packet::Value;

use super::pattern;
use crate::reader::Reader;

/// Longest walk of parts that move together.
const LONGEST: u64 = 4096;

/// A part of the octet: its name, its width in bits, and how far it is from the low end.
type Part = (&'static str, usize, u32);

/// RFC 2474 and RFC 3168.
const DSCP: [Part; 2] = [("phb", 6, 2), ("ecn", 2, 0)];
/// RFC 791, as RFC 1349 has it.
const TOS: [Part; 6] = [
    ("precedence", 3, 5),
    ("delay", 1, 4),
    ("throughput", 1, 3),
    ("reliability", 1, 2),
    ("monetary", 1, 1),
    ("unused", 1, 0),
];

/// Reads the octet.
pub fn read(reader: &Reader<'_>) -> Option<Value> {
    match &*reader.choice("dscp") {
        "raw" => pattern::read(&reader.child("raw")?, 8, 0),
        "dscp" => parts(&reader.object("dscp"), &DSCP),
        "tos" => parts(&reader.object("tos"), &TOS),
        other => reader.refuse_choice(other, "raw, dscp and tos are"),
    }
}

fn parts(reader: &Reader<'_>, parts: &[Part]) -> Option<Value> {
    let values = parts.iter().filter_map(|part| {
        let pattern = reader.child(part.0)?;
        Some((*part, pattern::read(&pattern, part.1, 0)?))
    });
    let values: Vec<(Part, Value)> = values.collect();
    let ((first, ..), _) = values.first()?;
    let length = values
        .iter()
        .try_fold(1_u64, |length, (_, value)| common(length, value.walk()));
    let length = length.filter(|length| *length <= LONGEST);
    let length = reader.or_error(first, length, || {
        let names: Vec<&str> = parts.iter().map(|(name, ..)| *name).collect();
        format!(
            "walks with the other parts of {} ({}) through more than {LONGEST} values: shorten the \
             walks",
            reader.path(),
            names.join(", ")
        )
    })?;
    let octet = |frame: u64| {
        values.iter().fold(0, |octet, ((_, bits, shift), value)| {
            octet | value.at(frame, *bits) << shift
        })
    };
    let list: Vec<u128> = (0..length).map(octet).collect();
    Some(match &list[..] {
        [one] => Value::Fixed(*one),
        _ => Value::List(list),
    })
}

/// The least common multiple.
fn common(a: u64, b: u64) -> Option<u64> {
    let (mut x, mut y) = (a, b);
    while y != 0 {
        (x, y) = (y, x % y);
    }
    (a / x).checked_mul(b)
}
