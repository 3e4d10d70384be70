//! RoCEv2 without any I/O: the invariant CRC of a packet, and the packets that the tester sends.
//!
//! Reading packets is in [`pfc_ebpf::wire::roce`], which the XDP program shares.

pub mod build;
mod icrc;

pub use icrc::{icrc, icrc_of, is_intact};
