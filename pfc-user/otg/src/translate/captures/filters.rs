//! Filters: fields of a header, or bits at a place of the frame.

use validator_core::engine::filter::{Filter, From};
use validator_core::engine::packet::{Place, Protocol};

use super::super::headers::hex;
use crate::reader::Reader;

/// Most bits of a field.
const MOST: usize = 128;

/// The filters of a capture: a frame has to pass each.
pub fn read(capture: &Reader<'_>) -> Vec<Filter> {
    let list = capture.children("filters");
    let mut filters = Vec::new();
    for (place, reader) in list.iter().enumerate() {
        let chosen = reader.choice("custom");
        let object = reader.object(&chosen);
        match &*chosen {
            "custom" => {
                filters.extend(custom(&object));
                if place > 0 {
                    reader.error(
                        "custom",
                        "is not supported behind another filter: the model counts its offset from \
                         that one, and does not say from where in it; put it first",
                    );
                }
            }
            "ethernet" => {
                object.refuse("pfc_queue", "it is on no wire");
                filters.extend(fields(&object, Protocol::Ethernet, From::Frame));
            }
            "vlan" => {
                object.refuse(
                    "protocol",
                    "the model does not say which of both types it is; match it by custom",
                );
                filters.extend(fields(&object, Protocol::Vlan, From::Tag));
            }
            "ipv4" => filters.extend(fields(&object, Protocol::Ipv4, From::Ipv4)),
            "ipv6" => filters.extend(fields(&object, Protocol::Ipv6, From::Ipv6)),
            other => {
                reader.refuse_choice::<()>(other, "custom, ethernet, vlan, ipv4 and ipv6 are");
            }
        }
    }
    filters
}

/// Bits at a place of the frame.
fn custom(reader: &Reader<'_>) -> Option<Filter> {
    let bit = reader.integer("offset").unwrap_or(0);
    // The model's default.
    let bits = reader.integer("bit_length").unwrap_or(8);
    let bits = reader.within("bit_length", bits, 1..=MOST as u64)?;
    field(reader, From::Frame, usize::try_from(bit).ok()?, bits)
}

/// The fields of a header that are given.
fn fields(reader: &Reader<'_>, protocol: Protocol, from: From) -> Vec<Filter> {
    // Flows have fields that filters do not.
    let known = protocol.fields().iter();
    let known = known.filter(|known| reader.knows(known.name));
    known
        .filter_map(|known| match known.place {
            Place::Here(bit) => field(&reader.child(known.name)?, from, bit, known.bits),
            Place::TypeBefore => None,
        })
        .collect()
}

/// Reads a field with the value and the mask that are given. The mask has the bits that are not
/// compared: its default, none, would else compare nothing.
fn field(reader: &Reader<'_>, from: From, bit: usize, bits: usize) -> Option<Filter> {
    let number = |name: &str| {
        let text = reader.text(name).unwrap_or("00");
        // Digits that begin in the middle of an octet, for fields of some bits.
        let digits = text.bytes().all(|digit| digit.is_ascii_hexdigit());
        let even = if digits && text.len() % 2 == 1 {
            format!("0{text}")
        } else {
            text.to_owned()
        };
        let octets = hex(&even).filter(|octets| octets.len() <= MOST / 8);
        let number = octets.map(|octets| {
            let octets = octets.iter();
            octets.fold(0, |number, octet| number << 8 | u128::from(*octet))
        });
        let fits = number.filter(|number| bits == MOST || number >> bits == 0);
        reader.or_error(name, fits, || {
            format!("must be hexadecimal digits of at most {bits} bits, found \"{text}\"")
        })
    };
    let (value, ignored) = (number("value"), number("mask"));
    let negate = reader.truth("negate").unwrap_or(false);
    Some(Filter {
        from,
        bit,
        bits,
        value: value?,
        ignored: ignored?,
        negate,
    })
}
