//! Reads arbitrary octets as the head of a request for metrics.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../pfc-user/tests/exercise/metrics.rs"]
mod exercise;
#[path = "../../pfc-user/src/watch/server/request.rs"]
mod request;

fuzz_target!(|octets: &[u8]| exercise::exercise(octets));
