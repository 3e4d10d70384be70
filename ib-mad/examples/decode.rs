//! Reads the octets of a subnet management packet as hexadecimal digits from standard input, and
//! prints its header and the fields of its attribute. Spaces and line ends between digits are
//! passed over:
//!
//! ```text
//! xxd -p packet.bin | cargo run -p ib-mad --example decode
//! ```

use std::error::Error;
use std::io::{Read as _, Write as _, stdin, stdout};

use ib_mad::attr::{FieldValue, NodeInfo, PortInfo, SwitchInfo};
use ib_mad::mad::AttributeId;
use ib_mad::smp::Smp;

fn main() -> Result<(), Box<dyn Error>> {
    let mut text = String::new();
    stdin().read_to_string(&mut text)?;
    let smp = Smp::parse(&octets(&text)?)?;
    let mut out = stdout().lock();
    writeln!(out, "{} {}", smp.method(), smp.attribute())?;
    writeln!(out, "modifier        {:#x}", smp.modifier())?;
    writeln!(out, "status          {}", smp.status())?;
    writeln!(out, "transaction     {:#x}", smp.tid().0)?;
    if smp.is_directed() {
        let (pointer, count) = smp.hops();
        writeln!(out, "directed route  hop {pointer} of {count}")?;
    }
    for FieldValue { name, value, .. } in fields(&smp)? {
        writeln!(out, "{name:<32} {value:#x}")?;
    }
    Ok(())
}

/// The octets that pairs of digits stand for.
fn octets(text: &str) -> Result<Vec<u8>, String> {
    let digits = text.chars().filter(|letter| !letter.is_whitespace());
    let digits = digits.map(|letter| {
        let value = letter.to_digit(16);
        value.ok_or_else(|| format!("expected hexadecimal digits, found {letter:?}"))
    });
    let digits = digits.collect::<Result<Vec<_>, _>>()?;
    if digits.len() % 2 != 0 {
        return Err(format!("expected pairs of digits, found {}", digits.len()));
    }
    let pairs = digits.chunks_exact(2);
    Ok(pairs.map(|pair| (pair[0] << 4 | pair[1]) as u8).collect())
}

/// Fields of the attributes that this example knows; none of others.
fn fields(smp: &Smp) -> Result<Vec<FieldValue>, Box<dyn Error>> {
    Ok(match smp.attribute() {
        AttributeId::NODE_INFO => smp.decode::<NodeInfo>()?.fields().collect(),
        AttributeId::PORT_INFO => smp.decode::<PortInfo>()?.fields().collect(),
        AttributeId::SWITCH_INFO => smp.decode::<SwitchInfo>()?.fields().collect(),
        _ => Vec::new(),
    })
}
