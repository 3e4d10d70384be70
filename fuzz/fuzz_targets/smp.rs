//! Parses arbitrary octets as a packet.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../ib-mad/tests/codec_common/exercise.rs"]
mod exercise;

fuzz_target!(|octets: &[u8]| {
    exercise::exercise(octets);
    // Most inputs are not packets: the same octets are tried again with the header of one.
    let mut packet = [0; 256];
    packet.iter_mut().zip(octets).for_each(|(to, from)| *to = *from);
    packet[0] = 1;
    packet[1] = if packet[1] & 0x80 == 0 { 0x01 } else { 0x81 };
    assert!(exercise::exercise(&packet).is_some());
});
