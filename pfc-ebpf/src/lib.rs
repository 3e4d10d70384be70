//! The part of the validator that its BPF programs and its userspace share. Pure and `no_std`; the
//! host tests run it without root and without any eBPF tool.
//!
//! - [`wire`]: the formats of frames, one protocol a file; [`units`]: quantities of the field.
//! - [`classify`] tells what a frame of a test port is, [`observe`] what any frame is; [`stamp`] is
//!   what test frames carry, [`flow_stamp`] what frames of flows do.
//! - [`own`] tells damaged test frames from those of other senders.
//! - [`pacing`]: when a sender's frames are due.
//! - [`abi`]: the layout of the BPF maps.
//! - `bpf` (feature `bpf`): helpers that only the programs need.
#![cfg_attr(not(test), no_std)]
#![cfg_attr(feature = "bpf", feature(asm_experimental_arch))]

pub mod abi;
#[cfg(feature = "bpf")]
pub mod bpf;
pub mod classify;
pub mod filling;
pub mod flow_stamp;
pub mod observe;
pub mod own;
pub mod pacing;
pub mod stamp;
pub mod units;
pub mod wire;
