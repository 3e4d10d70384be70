//! Stacks of headers.

mod extension;
mod pattern;
mod priority;
pub(super) mod table;

use validator_core::engine::packet::{Header, Packet, Protocol, Value};

pub use pattern::mac;
use pfc_ebpf::units::Priority;
use table::{Field, Kind};

use crate::reader::Reader;

/// Most octets of a custom header.
const CUSTOM: usize = 1024;

/// Packet and queue that a flow's headers ask for.
#[derive(Clone, Debug, PartialEq)]
pub struct Headers {
    /// Packet for the engine.
    pub packet: Packet,
    /// The sending port's queue.
    pub queue: Priority,
}

/// Reads the headers of a flow.
pub fn read(flow: &Reader<'_>) -> Headers {
    let mut headers = Headers {
        packet: Packet::default(),
        queue: Priority::from_low_bits(0),
    };
    let list = flow.children("packet");
    if list.is_empty() {
        // The model's header where none is given.
        headers.packet.headers.push(Header {
            protocol: Protocol::Ethernet,
            fields: Vec::new(),
            octets: Vec::new(),
        });
    }
    for (place, reader) in list.iter().enumerate() {
        let last = headers.packet.headers.last();
        let before = last.map(|header| header.protocol);
        if let (Some(last), Some(of_last)) = (last, place.checked_sub(1))
            && reader.choice("ethernet") == "custom"
        {
            refuse_sum_without_options(&list[of_last], last);
        }
        let first = headers.packet.headers.is_empty();
        let read = headers_of(reader, first, &mut headers.queue);
        let Some(header) = read.first() else {
            continue;
        };
        if !header.protocol.may_follow(before) {
            let text = match before {
                None => "cannot begin a frame: begin with ethernet, pfcpause or ethernetpause",
                Some(_) => "cannot follow the header before it",
            };
            let chosen = reader.choice("");
            reader.error(&chosen, text);
        }
        if before == Some(Protocol::Custom) {
            refuse_sum_without_addresses(reader, header);
        }
        headers.packet.headers.extend(read);
    }
    headers
}

/// Refuses a computed checksum of UDP or TCP behind custom octets: it covers addresses, which are
/// unknown there.
fn refuse_sum_without_addresses(reader: &Reader<'_>, header: &Header) {
    if matches!(header.protocol, Protocol::Udp | Protocol::Tcp) && !is_given(header, "checksum") {
        reader.object(&reader.choice("")).error(
            "checksum",
            "cannot be computed behind a custom header, whose addresses are unknown: set it to a \
             custom value",
        );
    }
}

/// Refuses a computed checksum of IPv4 over options: they come as custom octets, which are not
/// known to be any.
fn refuse_sum_without_options(reader: &Reader<'_>, header: &Header) {
    let mut fields = header.fields.iter();
    // Lengths are in words of 4 octets; fewer than 5 are wrong on purpose, and the sum covers 5.
    let short = |value: &Value| matches!(value, Value::Fixed(0..=5));
    let longer = fields.any(|(name, value)| *name == "header_length" && !short(value));
    if header.protocol == Protocol::Ipv4 && longer && !is_given(header, "header_checksum") {
        reader.object("ipv4").error(
            "header_checksum",
            "cannot be computed over options in a custom header: set it to a custom value",
        );
    }
}

/// Returns true if a checksum is given: left neither to the engine nor to be wrong on purpose.
fn is_given(header: &Header, checksum: &str) -> bool {
    let mut fields = header.fields.iter();
    fields.any(|(name, value)| *name == checksum && *value != Value::Bad)
}

/// Reads a header of the model: several where it has a list of others.
fn headers_of(reader: &Reader<'_>, first: bool, queue: &mut Priority) -> Vec<Header> {
    const EXTENSION: &str = "ipv6_extension_header";
    if reader.choice("ethernet") == EXTENSION {
        return extension::read(&reader.object(EXTENSION));
    }
    header(reader, first, queue).into_iter().collect()
}

/// Reads a header.
fn header(reader: &Reader<'_>, first: bool, queue: &mut Priority) -> Option<Header> {
    let chosen = reader.choice("ethernet");
    if chosen == "custom" {
        return custom(&reader.object("custom"));
    }
    let Some((protocol, fields)) = table::of(&chosen) else {
        reader.refuse_choice(
            &chosen,
            "ethernet, vlan, mpls, arp, ipv4, ipv6, ipv6_extension_header, icmp, icmpv6, udp, tcp, \
             gre, vxlan, pfcpause, ethernetpause and custom are",
        );
        return None;
    };
    let mut object = reader.object(&chosen);
    if matches!(protocol, Protocol::Icmp | Protocol::Icmpv6) {
        // The only messages that the model knows.
        object.choice("echo");
        object = object.object("echo");
    }
    let (protocol, fields) = match protocol {
        Protocol::Gre if has_sum(&object) => (Protocol::GreSum, &table::GRE_WITH_SUM[..]),
        _ => (protocol, fields),
    };
    let mut header = Header {
        protocol,
        fields: Vec::new(),
        octets: Vec::new(),
    };
    for field in fields {
        match field.kind {
            Kind::Queue => read_queue(&object, field, first, queue),
            _ => {
                if let Some(value) = read_field(&object, field)
                    && !stands_for_default(protocol, field, &value)
                {
                    header.fields.push((field.name, value));
                }
            }
        }
    }
    Some(header)
}

/// Returns true if a GRE header says that it has a checksum.
fn has_sum(object: &Reader<'_>) -> bool {
    let [present, ..] = &table::GRE_WITH_SUM;
    let present = read_field(object, present);
    present == Some(Value::Fixed(1))
}

fn read_field(object: &Reader<'_>, field: &Field) -> Option<Value> {
    match field.kind {
        Kind::Checksum => pattern::checksum(&object.child(field.name)?),
        Kind::TrafficClass => priority::read(&object.child(field.name)?),
        _ => pattern::read(&object.child(field.name)?, field),
    }
}

/// Returns true for values by which the model says that the field is left alone.
fn stands_for_default(protocol: Protocol, field: &Field, value: &Value) -> bool {
    match (protocol, field.name) {
        // The model's default, though the wire has 0x8100.
        (Protocol::Vlan, "tpid") => *value == Value::Fixed(0xffff),
        (Protocol::Udp, "length") => *value == Value::Fixed(0),
        _ => false,
    }
}

/// Reads the queue, which is the port's and on no wire: one for a flow.
fn read_queue(object: &Reader<'_>, field: &Field, first: bool, queue: &mut Priority) {
    let Some(reader) = object.child(field.name) else {
        return;
    };
    let found = match pattern::read(&reader, field) {
        None => Some(0),
        Some(Value::Fixed(queue)) => Some(queue),
        Some(Value::List(list)) if list.iter().all(|queue| *queue == list[0]) => Some(list[0]),
        Some(_) => None,
    };
    let found = found.and_then(|queue| u8::try_from(queue).ok());
    match found.and_then(|queue| Priority::new(queue).ok()) {
        Some(found) if first => *queue = found,
        Some(found) if found.get() == 0 => {}
        Some(_) => object.error(field.name, "is not supported but in the first header"),
        None => object.error(
            field.name,
            "walks through queues, which needs a flow for each: make one flow a queue",
        ),
    }
}

/// Reads octets as they are.
fn custom(reader: &Reader<'_>) -> Option<Header> {
    let text = reader.required("bytes")?;
    let octets = hex(text).filter(|octets| octets.len() <= CUSTOM);
    if octets.is_none() {
        reader.error(
            "bytes",
            format!("must be 1 to {CUSTOM} octets of hexadecimal digits"),
        );
    }
    Some(Header {
        protocol: Protocol::Custom,
        fields: Vec::new(),
        octets: octets?,
    })
}

/// Reads octets of hexadecimal digits. Spaces and colons between them mean nothing, and neither
/// does `0x` before them: the model's pattern has both.
pub(super) fn hex(text: &str) -> Option<Vec<u8>> {
    let prefix = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    let digits = prefix.unwrap_or(text).chars();
    let digits = digits.filter(|digit| ![' ', ':'].contains(digit));
    let digits: Vec<u8> = digits
        .map(|digit| Some(digit.to_digit(16)? as u8))
        .collect::<Option<_>>()?;
    let octet = |pair: &[u8]| Some(pair[0] << 4 | *pair.get(1)?);
    let octets: Option<Vec<u8>> = digits.chunks(2).map(octet).collect();
    octets.filter(|octets| !octets.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn custom_octets_are_read_as_the_model_writes_them() {
        let octets = Some(vec![0x08, 0x00, 0xab]);
        for text in [
            "0800ab", "0x0800AB", "0X0800ab", "08:00:ab", "08 00 ab", "0 800:ab",
        ] {
            assert_eq!(hex(text), octets, "{text}");
        }
        for text in ["080", "0g", "+1", "0x", " ", "0800-ab", "\u{661}\u{661}"] {
            assert_eq!(hex(text), None, "{text}");
        }
    }
}
