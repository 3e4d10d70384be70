//! Reads arbitrary octets as a frame: as the programs on the tester's ports do, and as the tester's
//! own parsers and the simulated devices do.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../pfc-user/core/tests/exercise/frames.rs"]
mod devices;
#[path = "../../pfc-ebpf/tests/exercise/mod.rs"]
mod programs;

fuzz_target!(|octets: &[u8]| {
    programs::exercise(octets);
    devices::exercise(octets);
});
