//! Stacks of headers.

mod extension;
mod field;
mod pattern;
mod priority;

use pfc_ebpf::units::Priority;
use validator_core::engine::packet::{Header, Packet, Protocol, Value};
use validator_core::quantity::from_hex;

pub use pattern::mac;

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
        let ethernet = Header::new(Protocol::Ethernet);
        headers.packet.headers.push(ethernet);
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

/// Returns the model's choice of a header; `None` where a field of another header makes it.
fn choice_of(protocol: Protocol) -> Option<&'static str> {
    Some(match protocol {
        Protocol::PfcPause => "pfcpause",
        Protocol::EthernetPause => "ethernetpause",
        Protocol::SegmentRouting => "ipv6_extension_header",
        Protocol::Segment | Protocol::GreSum => return None,
        _ => protocol.name(),
    })
}

/// Names all choices.
fn choices() -> String {
    let choices = Protocol::ALL.iter().copied().filter_map(choice_of);
    let choices: Vec<_> = choices.collect();
    let (last, others) = choices.split_last().expect("protocols");
    format!("{} and {last} are", others.join(", "))
}

/// Reads a header of the model: several where it has a list of others.
fn headers_of(reader: &Reader<'_>, first: bool, queue: &mut Priority) -> Vec<Header> {
    let chosen = reader.choice("ethernet");
    let mut protocols = Protocol::ALL.iter().copied();
    let Some(protocol) = protocols.find(|protocol| choice_of(*protocol) == Some(&*chosen)) else {
        reader.refuse_choice::<()>(&chosen, &choices());
        return Vec::new();
    };
    let mut object = reader.object(&chosen);
    let mut header = Header::new(protocol);
    match protocol {
        Protocol::Custom => return custom(&object).into_iter().collect(),
        Protocol::SegmentRouting => return extension::read(&object),
        Protocol::Gre if has_sum(&object) => header.protocol = Protocol::GreSum,
        Protocol::Icmp | Protocol::Icmpv6 => {
            // The only messages that the model knows.
            object.choice("echo");
            object = object.object("echo");
        }
        _ => {}
    }
    field::add(&mut header, &object);
    if protocol == Protocol::Ethernet {
        read_queue(&object, first, queue);
    }
    vec![header]
}

/// Returns true if a GRE header says that it has a checksum.
fn has_sum(gre: &Reader<'_>) -> bool {
    gre.child("checksum_present").is_some_and(|present| {
        present.choice("value") == "value" && present.integer("value") == Some(1)
    })
}

/// Reads the queue, which is the port's and on no wire: one for a flow.
fn read_queue(ethernet: &Reader<'_>, first: bool, queue: &mut Priority) {
    const QUEUE: &str = "pfc_queue";
    let Some(reader) = ethernet.child(QUEUE) else {
        return;
    };
    let found = match pattern::read(&reader, 3, 0) {
        None => Some(0),
        Some(Value::Fixed(queue)) => Some(queue),
        Some(Value::List(list)) if list.iter().all(|queue| *queue == list[0]) => Some(list[0]),
        Some(_) => None,
    };
    let found = found.and_then(|queue| u8::try_from(queue).ok());
    match found.and_then(|queue| Priority::new(queue).ok()) {
        Some(found) if first => *queue = found,
        Some(found) if found.get() == 0 => {}
        Some(_) => ethernet.error(QUEUE, "is not supported but in the first header"),
        None => ethernet.error(
            QUEUE,
            "walks through queues, which needs a flow for each: make one flow a queue",
        ),
    }
}

/// Reads octets as they are.
fn custom(reader: &Reader<'_>) -> Option<Header> {
    let text = reader.required("bytes")?;
    let octets = hex(text).filter(|octets| octets.len() <= CUSTOM);
    let octets = reader.or_error("bytes", octets, || {
        format!("must be 1 to {CUSTOM} octets of hexadecimal digits")
    })?;
    Some(Header {
        octets,
        ..Header::new(Protocol::Custom)
    })
}

/// Reads octets of hexadecimal digits. Spaces and colons between them mean nothing, and neither
/// does `0x` before them: the model's pattern has both.
pub(super) fn hex(text: &str) -> Option<Vec<u8>> {
    let prefix = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    let digits = prefix.unwrap_or(text).replace([' ', ':'], "");
    from_hex(&digits).filter(|octets| !octets.is_empty())
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
