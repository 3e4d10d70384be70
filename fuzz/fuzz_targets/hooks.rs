//! Reads arbitrary octets as what the hooks of a DUT say.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../pfc-user/core/tests/exercise/hooks.rs"]
mod exercise;

fuzz_target!(|octets: &[u8]| {
    exercise::exercise(octets);
});
