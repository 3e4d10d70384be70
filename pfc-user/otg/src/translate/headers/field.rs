//! Fields of a header. Their names are those of the engine's tables.

use validator_core::engine::packet::{Field, Header, LeftAlone, Protocol, Value};

use super::{pattern, priority};
use crate::reader::Reader;

/// Adds the fields that an object of the model gives. Some are the engine's alone, and some stand
/// in an object of their own.
pub fn add(header: &mut Header, object: &Reader<'_>) {
    let protocol = header.protocol;
    let known = protocol.fields().iter();
    for field in known.filter(|field| object.knows(field.name)) {
        let value = object
            .child(field.name)
            .and_then(|pattern| read(&pattern, protocol, field))
            .filter(|value| !stands_for_default(protocol, field, value));
        header.fields.extend(value.map(|value| (field.name, value)));
    }
}

fn read(reader: &Reader<'_>, protocol: Protocol, field: &Field) -> Option<Value> {
    if field.left_alone.is_sum() {
        pattern::checksum(reader)
    } else if reader.knows("dscp") {
        priority::read(reader)
    } else {
        pattern::read(reader, field.bits, start(protocol, field))
    }
}

/// Start of a walk that names none: the model's default of the field.
fn start(protocol: Protocol, field: &Field) -> u128 {
    match (protocol, field.name) {
        (Protocol::Vlan, "tpid") => 0xffff,
        (Protocol::Ipv4, "total_length") => 46,
        (Protocol::Tcp, "data_offset") => 0,
        (Protocol::Gre | Protocol::GreSum, "protocol") => 0x0800,
        _ => match field.left_alone {
            LeftAlone::Value(value) | LeftAlone::Protocol(value) => value,
            LeftAlone::EtherType => 0xffff,
            LeftAlone::Bottom => 1,
            _ => 0,
        },
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

#[cfg(test)]
mod tests {
    use std::slice;

    use prost_reflect::MessageDescriptor;

    use super::super::choice_of;
    use super::*;
    use crate::model::descriptor;

    /// Objects that the server reads or refuses by themselves.
    const OTHERS: [&str; 5] = [
        "pfc_queue",
        "options",
        "dst_usids",
        "segment_routing_usid",
        "pad_tlv",
    ];

    /// The patterns of a message that these protocols have no field for.
    fn without_field(message: &MessageDescriptor, protocols: &[Protocol]) -> Vec<String> {
        let mut found = Vec::new();
        for field in message.fields() {
            let kind = field.kind();
            let message = kind.as_message();
            let Some(message) = message.filter(|_| !OTHERS.contains(&field.name())) else {
                continue;
            };
            let has = |name: &str| message.get_field_by_name(name).is_some();
            let mut known = protocols.iter().flat_map(|protocol| protocol.fields());
            if !["value", "generated", "dscp"].into_iter().any(has) {
                found.extend(without_field(message, protocols));
            } else if !known.any(|known| known.name == field.name()) {
                found.push(field.full_name().to_owned());
            }
        }
        found
    }

    #[test]
    fn the_engine_has_every_field_of_the_models_headers() {
        let header = descriptor("FlowHeader");
        for protocol in Protocol::ALL {
            let protocols: &[Protocol] = match protocol {
                Protocol::Custom => continue,
                Protocol::Gre => &[Protocol::Gre, Protocol::GreSum],
                Protocol::SegmentRouting => &[Protocol::SegmentRouting, Protocol::Segment],
                one => slice::from_ref(one),
            };
            let Some(choice) = choice_of(*protocol) else {
                continue;
            };
            let field = header.get_field_by_name(choice);
            let kind = field
                .unwrap_or_else(|| panic!("the model has {choice}"))
                .kind();
            let found = without_field(kind.as_message().unwrap(), protocols);
            assert_eq!(found, [""; 0], "{choice}");
        }
    }
}
