//! Models of the simulated devices under test. They do no I/O and take time as an argument. The
//! model of a subnet management agent is `ib_mad::sma`.

pub mod requester;
pub mod switch;
