//! What the XDP programs of the validator and its userspace share: the wire formats, the classification of a frame and the
//! layout of the BPF maps. Pure and `no_std`; the host tests run it without root and without any eBPF tool.
#![cfg_attr(not(test), no_std)]
#![cfg_attr(feature = "bpf", feature(asm_experimental_arch))]

#[cfg(feature = "bpf")]
pub mod bpf;
pub mod classify;
pub mod generate;
pub mod maps;
pub mod responder;
pub mod stamp;
pub mod units;
pub mod watch;
pub mod wire;
