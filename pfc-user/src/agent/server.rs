//! The agent's side of the protocol.
