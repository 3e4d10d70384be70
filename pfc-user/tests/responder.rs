//! The silent responder: its XDP program in the kernel, the invariant CRC, and the response to a
//! READ.
//!
//! lane: waiting

mod attach;
mod golden;
mod icrc;
mod program;
mod response;
mod scapy;
mod tap;

use validator_core::quantity::hex;

/// The tester's queue pair.
const QUEUE_PAIR: u32 = 0x12_3456;

fn unhex(digits: &str) -> Vec<u8> {
    (0..digits.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap())
        .collect()
}
