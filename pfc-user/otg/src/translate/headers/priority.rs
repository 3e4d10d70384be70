//! The octet of DSCP and ECN, or of TOS, put together from its parts.

use validator_core::engine::packet::Value;

use super::pattern;
use crate::reader::Reader;

/// Longest walk of parts that move together.
const LONGEST: u64 = 4096;

/// A part of the octet: its name, its width, and how far it is from the low end.
struct Part {
    name: &'static str,
    bits: usize,
    shift: u32,
}

const fn part(name: &'static str, bits: usize, shift: u32) -> Part {
    Part { name, bits, shift }
}

/// RFC 2474 and RFC 3168.
const DSCP: [Part; 2] = [part("phb", 6, 2), part("ecn", 2, 0)];
/// RFC 791, as RFC 1349 has it.
const TOS: [Part; 6] = [
    part("precedence", 3, 5),
    part("delay", 1, 4),
    part("throughput", 1, 3),
    part("reliability", 1, 2),
    part("monetary", 1, 1),
    part("unused", 1, 0),
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
    let values: Vec<(&Part, Value)> = parts
        .iter()
        .filter_map(|part| {
            let pattern = reader.child(part.name)?;
            let value = pattern::read(&pattern, part.bits, 0)?;
            Some((part, value))
        })
        .collect();
    if values.is_empty() {
        return None;
    }
    let length = values
        .iter()
        .try_fold(1_u64, |length, (_, value)| common(length, value.walk()));
    let Some(length) = length.filter(|length| *length <= LONGEST) else {
        let parent = reader.path();
        let names: Vec<&str> = parts.iter().map(|part| part.name).collect();
        reader.error(
            values[0].0.name,
            format!(
                "walks with the other parts of {parent} ({}) through more than {LONGEST} values: \
                 shorten the walks",
                names.join(", ")
            ),
        );
        return None;
    };
    let octet = |frame: u64| {
        values.iter().fold(0, |octet, (part, value)| {
            octet | value.at(frame, part.bits) << part.shift
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
