//! The simulated RC requester: its model in virtual time, its frames compared with scapy's, and its
//! process on a veth.

#[path = "../common/mod.rs"]
mod common;
mod faults;
mod frames;
mod model;
mod process;
mod virtual_time;
