//! The verbs agent: it opens, uses and closes queue pairs on the DUT host as the tester asks.
//!
//! [`protocol`] defines the messages between the two. A [`backend`] does the work of the server:
//! real verbs (feature `verbs`) or the simulated requester.

pub use validator_core::agent::protocol;

pub mod args;
pub mod backend;
pub mod client;
pub mod process;
pub mod server;
#[cfg(feature = "verbs")]
pub mod verbs;
