//! Reads arbitrary octets as evidence, judges it and reports it.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../pfc-user/core/tests/exercise/evidence.rs"]
mod exercise;

fuzz_target!(|octets: &[u8]| {
    exercise::exercise(octets);
});
