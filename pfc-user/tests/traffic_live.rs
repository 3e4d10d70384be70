//! The sender in the kernel: its counts, compared with the frames that arrive at the other end of a
//! veth pair. Needs root and the object that `cargo xtask build-ebpf` makes.
//!
//! lane: frames

mod accounts;
mod bench;
mod cross_cpu;
mod frames;
mod pace;
mod pfc;
mod refusals; // lane: programs
