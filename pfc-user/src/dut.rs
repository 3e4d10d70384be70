//! Simulated devices under test.

pub mod requester;
pub mod sma;
pub mod stop;
pub mod switch;
