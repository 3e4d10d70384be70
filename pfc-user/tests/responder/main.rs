//! The silent responder: its XDP program in the kernel, the invariant CRC, the answer to a READ.

#[path = "../common/mod.rs"]
mod common;
mod program;
#[path = "../../../pfc-ebpf/tests/roce_frames/mod.rs"]
mod roce_frames;

/// The tester's queue pair.
const QUEUE_PAIR: u32 = 0x12_3456;

fn hex(octets: &[u8]) -> String {
    octets.iter().map(|octet| format!("{octet:02x}")).collect()
}
