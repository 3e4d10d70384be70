//! The agent's control channel over TCP on loopback, with a backend that does as it is told.
//!
//! lane: waiting

mod client;
mod fake;
mod greeting;
mod process;
mod random;
mod vanishing;
mod wire;
