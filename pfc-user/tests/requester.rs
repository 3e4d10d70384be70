//! The simulated RC requester: its model in virtual time, its frames compared with scapy's, and its
//! process on a veth.
//!
//! lane: frames

mod faults; // lane: waiting
mod frames; // lane: waiting
mod model; // lane: waiting
mod process;
mod virtual_time; // lane: waiting
