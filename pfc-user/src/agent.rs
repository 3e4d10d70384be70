//! The verbs agent: it opens, uses and closes queue pairs on the DUT host as the tester asks.
//!
//! [`protocol`] is what the two say to each other. Behind the server is a [`backend`]: real verbs (feature `verbs`), or
//! the simulated requester.

pub use validator_core::agent::protocol;

pub mod args;
pub mod backend;
pub mod client;
pub mod process;
pub mod server;
#[cfg(feature = "verbs")]
pub mod verbs;
