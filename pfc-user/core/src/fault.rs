//! The faults of the simulated devices, by name: shared by testbed files, by the driver that starts
//! the devices, and by the devices.

pub mod requester;
pub mod switch;

pub use ib_mad::sma::fault as sma;
