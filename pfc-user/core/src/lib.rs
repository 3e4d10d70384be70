//! The rules of the validator: what a repetition is to do, what its evidence shows, and how it is
//! judged. Nothing in this crate touches a kernel, a network or a device: it builds on any system.

pub mod agent;
pub mod cases;
pub mod dut;
pub mod engine;
pub mod evidence;
pub mod fault;
pub mod keys;
pub mod m_key;
pub mod neighbour;
pub mod nic;
pub mod pacing;
pub mod plan;
pub mod preflight;
pub mod prometheus;
pub mod quantity;
pub mod report;
pub mod roce;
pub mod test_frame;
pub mod verdict;
