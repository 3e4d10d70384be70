//! A model of a subnet management agent, and of the smallest fabric: a tester and one device under
//! test. The model does no I/O and takes time as an argument: [`crate::transport::simulated`] gives
//! it a clock of its own, a server of ibsim's sockets the real one.

mod agent;
mod attributes;
mod config;
mod fabric;
pub mod fault;
mod node;
mod notice;
mod port;
mod protection;
mod reply;
mod switch;

pub use agent::Outgoing;
pub use config::{NodeConfig, NodeKind};
pub use fabric::Fabric;
pub use fault::Fault;
pub use node::Sma;
