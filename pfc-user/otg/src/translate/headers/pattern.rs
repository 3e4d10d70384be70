//! Patterns: the values that a field has or walks through.

use std::net::{Ipv4Addr, Ipv6Addr};

use pfc_ebpf::wire::mac_control::number;
use validator_core::engine::packet::Value;
use validator_core::quantity;

use crate::reader::Reader;

/// Bits of a MAC address.
const MAC: usize = 48;

/// Reads the pattern of a field of `bits` bits, whose walks begin at `start` where they name no
/// other; `None` leaves the field to its default, or to the engine.
pub fn read(reader: &Reader<'_>, bits: usize, start: u128) -> Option<Value> {
    match &*reader.choice("value") {
        "value" => one(reader, "value", bits).map(Value::Fixed),
        "values" => values(reader, bits),
        "increment" => {
            let (start, step, count) = counter(&reader.object("increment"), bits, start)?;
            Some(Value::Increment { start, step, count })
        }
        "decrement" => {
            let (start, step, count) = counter(&reader.object("decrement"), bits, start)?;
            Some(Value::Decrement { start, step, count })
        }
        "random" => random(&reader.object("random"), bits),
        "auto" => {
            auto(reader, bits);
            None
        }
        other => reader.refuse_choice(other, "value, values, increment, decrement and random are"),
    }
}

/// Reads a checksum; `None` is a good one.
pub fn checksum(reader: &Reader<'_>) -> Option<Value> {
    match &*reader.choice("generated") {
        "generated" => match reader.enumeration("generated").as_deref() {
            Some("bad") => Some(Value::Bad),
            _ => None,
        },
        "custom" => {
            let value = reader.integer("custom").unwrap_or(0);
            reader.within::<_, u16>("custom", value, 0..=0xffff);
            Some(Value::Fixed(u128::from(value)))
        }
        other => reader.refuse_choice(other, "generated and custom are"),
    }
}

/// A MAC address.
pub fn mac(text: &str) -> Option<[u8; 6]> {
    quantity::mac(text, 1..=2)
}

/// Takes `auto` for computed fields, which need no value; refuses it for addresses, which would
/// come from a protocol that is not spoken.
fn auto(reader: &Reader<'_>, bits: usize) {
    reader.leave("auto");
    if reader.is_text("value") && bits != MAC {
        reader.error(
            "choice",
            "\"auto\" is not supported: addresses would come from DHCP; write them",
        );
    }
}

fn values(reader: &Reader<'_>, bits: usize) -> Option<Value> {
    let list: Vec<u128> = if reader.is_text("values") {
        let texts = reader.texts("values").into_iter();
        texts
            .filter_map(|text| address(reader, "values", text, bits))
            .collect()
    } else {
        let numbers = reader.integers("values").into_iter();
        numbers
            .filter_map(|value| fits(reader, "values", value, bits))
            .collect()
    };
    if !reader.has("values") {
        reader.error("values", "is empty: add values");
    }
    (!list.is_empty()).then_some(Value::List(list))
}

fn counter(reader: &Reader<'_>, bits: usize, start: u128) -> Option<(u128, u128, u64)> {
    let start = or(reader, "start", bits, start);
    let step = or(reader, "step", bits, 1);
    Some((start?, step?, reader.count("count")?))
}

fn random(reader: &Reader<'_>, bits: usize) -> Option<Value> {
    let min = or(reader, "min", bits, 0)?;
    let max = or(reader, "max", bits, greatest(bits))?;
    if min > max {
        reader.error("min", "is above the max beside it");
    }
    Some(Value::Random {
        min,
        max,
        seed: reader.integer("seed").unwrap_or(1),
        count: reader.count("count")?,
    })
}

fn or(reader: &Reader<'_>, name: &str, bits: usize, default: u128) -> Option<u128> {
    if reader.has(name) {
        one(reader, name, bits)
    } else {
        Some(default)
    }
}

/// A value, which is an address where the model has a text; an error if it does not fit.
fn one(reader: &Reader<'_>, name: &str, bits: usize) -> Option<u128> {
    if reader.is_text(name) {
        address(reader, name, reader.text(name)?, bits)
    } else {
        fits(reader, name, reader.integer(name)?, bits)
    }
}

fn fits(reader: &Reader<'_>, name: &str, value: u64, bits: usize) -> Option<u128> {
    reader.within(name, u128::from(value), 0..=greatest(bits))
}

/// The greatest number of so many bits.
const fn greatest(bits: usize) -> u128 {
    u128::MAX >> (128 - bits)
}

fn address(reader: &Reader<'_>, name: &str, text: &str, bits: usize) -> Option<u128> {
    let found = match bits {
        MAC => mac(text).map(|octets| u128::from(number(octets))),
        32 => text
            .parse::<Ipv4Addr>()
            .ok()
            .map(|address| u128::from(address.to_bits())),
        _ => text.parse::<Ipv6Addr>().ok().map(Ipv6Addr::to_bits),
    };
    reader.or_error(name, found, || {
        format!("has \"{text}\", which is no such address")
    })
}
