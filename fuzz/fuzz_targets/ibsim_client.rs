//! Sends datagrams to a client of ibsim's protocol.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../ib-mad/tests/codec_common/client.rs"]
mod exercise;

fuzz_target!(|octets: &[u8]| exercise::exercise(octets));
