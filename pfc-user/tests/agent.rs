//! The agent's control channel over TCP on loopback, with a scripted backend.
//!
//! lane: waiting

mod client;
mod fake;
mod greeting;
mod process;
mod python;
mod random;
mod vanishing;
mod wire;
