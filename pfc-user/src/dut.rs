//! Simulated devices under test: the processes around their models.

pub mod requester;
pub mod sma;
mod stamping;
pub mod stop;
pub mod switch;
