//! Simulated devices under test.

pub mod sma;
pub mod stop;
pub mod switch;
