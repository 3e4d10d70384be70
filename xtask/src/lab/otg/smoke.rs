//! Part of `cargo xtask test`: snappi against `validator otg`, with frames on a cable of veths.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};

use super::PORTS;
use super::scripts::{Outcome, SMOKE};
use crate::lab::{network, script};

/// Variable with the Python that has snappi.
pub const PYTHON: &str = "VALIDATOR_SNAPPI";

/// Runs what measures no time: all calls, counts and octets. The validator is that which the tests
/// were built with. Ends with a line like libtest's.
pub fn test(root: &Path) -> Result<ExitCode> {
    let python = std::env::var_os(PYTHON).with_context(|| format!("{PYTHON} is not set"))?;
    let python = PathBuf::from(python);
    let folder = root.join("target/lab/otg");
    let validator = root.join("target/release/validator");
    let mut outcome = Outcome::default();
    network::with_veths(&[PORTS], || {
        for script in &SMOKE {
            outcome.add(script.run(root, &python, &validator, &folder));
        }
        Ok(())
    })?;
    for title in &outcome.passed {
        println!("test {title} ... ok");
    }
    let closed = script::close(outcome.passed.len(), &outcome.failed);
    Ok(if closed.is_ok() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
