//! Simulated devices under test.

pub mod requester;
pub mod sma;
mod socket;
pub mod stop;
pub mod switch;
