//! What a simulated agent can do wrong, by name.

/// A fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {}
