//! Part of `cargo xtask test`: snappi against `validator otg`, with frames on a cable of veths.

use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result};

use super::server::Server;
use super::{PORTS, SCRIPTS};
use crate::lab::{network, script};
use crate::step;

/// Variable with the Python that has snappi.
pub const PYTHON: &str = "VALIDATOR_SNAPPI";

/// Runs the script of all calls, which measures nothing: other tests may run beside it. The
/// validator is that which the tests were built with. Ends with a line like libtest's.
pub fn test(root: &Path) -> Result<ExitCode> {
    let python = std::env::var_os(PYTHON).with_context(|| format!("{PYTHON} is not set"))?;
    let folder = root.join("target/lab/otg");
    let validator = root.join("target/release/validator");
    let mut failed = Vec::new();
    let transports = ["http", "grpc"];
    network::with_veths(&[PORTS], || {
        for transport in transports {
            let server = Server::start(&validator, &folder)?;
            let mut command = Command::new(&python);
            command
                .arg(root.join(SCRIPTS).join("client.py"))
                .arg(transport)
                .arg(server.location(transport))
                .args(PORTS);
            match step::run(&mut command).and_then(|()| server.stop()) {
                Ok(()) => println!("test snappi over {transport} ... ok"),
                Err(error) => failed.push(format!("snappi over {transport}: {error:#}")),
            }
        }
        Ok(())
    })?;
    let closed = script::close(transports.len() - failed.len(), &failed);
    Ok(if closed.is_ok() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
