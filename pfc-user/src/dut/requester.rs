//! The requester: the process that puts its model on an interface, and serves the agent's protocol.

pub use validator_core::dut::requester::{frame, model};

pub mod args;
pub mod process;
