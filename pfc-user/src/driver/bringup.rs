//! Brings up the testbed of a run: ports, devices under test, the self-test. What it changes is
//! journalled first, so that a later run can undo it.

pub mod journal;
pub mod mad;
pub mod rc;
pub mod testbed;

use std::time::Duration;

use anyhow::{Context, Result, bail};
use validator_core::evidence::pfc::Stall;

use super::kernel::netns::Namespace;
use super::kernel::process::{Child, own_program};
use super::stall;

/// A simulated DUT is up within this, or something is wrong.
const DUT_START: Duration = Duration::from_secs(10);

/// Starts `validator dut` with `device`, the name and options of one, in `namespace` or here.
/// `ready` reads the first line, which has to be like `expected`.
fn start_dut<T>(
    namespace: Option<&Namespace>,
    device: &[&str],
    faults: &[impl ToString],
    args: &[String],
    expected: &str,
    ready: impl FnOnce(&str) -> Option<T>,
) -> Result<(Child, T)> {
    let mut command = own_program();
    command.arg("dut").args(device);
    for fault in faults {
        command.arg("--fault").arg(fault.to_string());
    }
    command.args(args);
    let mut child =
        Child::spawn(namespace, command).context("the simulated DUT cannot be started")?;
    let line = child
        .read_line(DUT_START)
        .context("the simulated DUT did not get ready")?;
    match ready(&line) {
        Some(found) => Ok((child, found)),
        None => bail!(
            "the simulated DUT did not get ready: expected its line `{expected}`, found {line:?}"
        ),
    }
}

/// Times at which a simulated DUT stood still, since the last call.
fn stalls(dut: &mut Child) -> Vec<Stall> {
    let lines = dut.printed_lines().unwrap_or_default();
    lines.iter().filter_map(|line| stall::read(line)).collect()
}
