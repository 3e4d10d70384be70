//! The engine behind the server.

use anyhow::{Error, Result};
use validator_otg::Engine;

use crate::engine::{LiveEngine, Options};

/// An engine on this machine's ports.
///
/// # Errors
///
/// The network namespace of the calling thread cannot be told.
pub fn open() -> Result<Box<dyn Engine>> {
    match LiveEngine::new(Options::default()) {
        Ok(engine) => Ok(Box::new(engine)),
        Err(problem) => Err(Error::msg(problem.to_string())),
    }
}
