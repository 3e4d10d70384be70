//! The RC case in virtual time: each fault of the simulated requester makes exactly these checks
//! fail, and a requester without faults passes all.

pub mod bench;
mod faults;
mod surroundings;
