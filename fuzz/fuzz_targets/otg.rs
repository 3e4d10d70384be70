//! Sends requests of the Open Traffic Generator API, as JSON and in protobuf's encoding.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../pfc-user/otg/tests/exercise/mod.rs"]
mod exercise;

fuzz_target!(|octets: &[u8]| exercise::exercise(octets));
