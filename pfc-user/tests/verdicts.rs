//! Evidence from models of devices in virtual time, and the verdicts on it.
//!
//! lane: computing

mod compared;
pub mod corpus;
mod faults;
mod fixed_set;
mod foreign;
mod frame_faults;
mod further_ports;
mod mad_faults;
mod mutations;
mod preconditions;
mod rc_faults;
mod speeds;
mod stops;
