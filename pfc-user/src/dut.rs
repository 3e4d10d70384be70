//! Simulated devices under test.

pub mod switch;
