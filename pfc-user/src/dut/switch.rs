//! The lossless switch: the process that puts its model on real ports.

pub use validator_core::dut::switch::{config, model};

pub mod args;
mod counters;
pub mod process;
