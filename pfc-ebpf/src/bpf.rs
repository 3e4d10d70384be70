//! Helpers of the BPF programs, which userspace has no use for.

pub mod atomic;
pub mod packet;
#[cfg(feature = "trace")]
pub mod trace;
pub mod verifier;
