//! Payload behind the headers.

use validator_core::engine::packet::{Packet, Payload};

use crate::reader::Reader;
use crate::translate::{headers, size};

/// Reads the payload of a flow with these headers.
pub fn read(flow: &Reader<'_>, packet: &mut Packet) {
    let Some(reader) = flow.child("payload") else {
        return;
    };
    if packet.is_pause() {
        flow.accept(
            "payload",
            "changes nothing: zeros follow the times of pause frames",
        );
    }
    packet.payload = match &*reader.choice("fixed") {
        "increment_byte" => Payload::Up,
        "decrement_byte" => Payload::Down,
        "increment_word" => Payload::WordsUp,
        "decrement_word" => Payload::WordsDown,
        "fixed" => fixed(&reader.object("fixed")),
        other => {
            reader.refuse_choice::<()>(
                other,
                "fixed, increment_byte, decrement_byte, increment_word and decrement_word are",
            );
            return;
        }
    };
}

fn fixed(reader: &Reader<'_>) -> Payload {
    let octets = headers::hex(reader.text("pattern").unwrap_or("00"));
    let octets = octets.filter(|octets| octets.len() <= size::GREATEST as usize);
    let octets = reader.or_error("pattern", octets, || {
        let most = size::GREATEST;
        format!("must be 1 to {most} octets of hexadecimal digits")
    });
    Payload::Pattern {
        octets: octets.unwrap_or_default(),
        repeat: reader.truth("repeat").unwrap_or(true),
    }
}
