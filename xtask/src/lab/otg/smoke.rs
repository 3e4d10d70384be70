//! Part of `cargo xtask test`: snappi against `validator otg`, with frames on a cable of veths.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};

use super::scripts::{Between, Outcome, SMOKE};
use super::{PORTS, sonic, switch, with_cables};

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
    let (cable, switch): (Vec<_>, Vec<_>) = SMOKE
        .iter()
        .partition(|script| script.between == Between::Cable);
    for (cables, scripts) in [(&[PORTS][..], cable), (&switch::cables(), switch)] {
        with_cables(cables, || {
            for script in scripts {
                outcome.add(script.run(root, &python, &validator, &folder));
            }
            Ok(())
        })?;
    }
    with_cables(&switch::cables(), || {
        outcome.note("what stands in for a SONiC host", || {
            sonic::offline(root, &python, &validator, &folder)
        });
        Ok(())
    })?;
    Ok(if outcome.close().is_ok() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
