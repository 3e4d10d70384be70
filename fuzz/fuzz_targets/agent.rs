//! Reads arbitrary octets as messages of the agent's protocol.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../pfc-user/core/tests/exercise/agent.rs"]
mod exercise;

fuzz_target!(|octets: &[u8]| exercise::exercise(octets));
