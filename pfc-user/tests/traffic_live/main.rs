//! The sender in the kernel: its counts, compared with the frames that arrive at the other end of a
//! veth pair. Needs root and the object that `cargo xtask build-ebpf` makes.
//!
//! lane: frames

mod accounts;
mod bench;
#[path = "../common/mod.rs"]
mod common;
mod cross_cpu;
mod frames;
#[path = "../common/napi.rs"]
mod napi;
mod pace;
mod pfc;
mod refusals; // lane: programs
#[path = "../traffic_wire/wire.rs"]
mod wire;
