//! Models of the simulated devices under test. They do no I/O and take time as an argument; the model
//! of a subnet management agent is `ib_mad::sma`.

pub mod requester;
pub mod switch;
