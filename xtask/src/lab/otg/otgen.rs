//! otgen, where its user has one: it is no package that the lab could install.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::PORTS;
use super::server::Server;
use crate::step;

/// Frames of the flow; half a second of it.
const FRAMES: u64 = 500;

/// The stages as its authors have them in a pipe.
const PIPE: &str = r#"set -o pipefail
"$OTGEN" create flow --name f1 --txl "$1" --rxl "$2" --count "$3" --rate 1000 --loss "${@:5}" |
    "$OTGEN" run --insecure --api "$4" --metrics flow |
    "$OTGEN" transform"#;

/// More words for the first stage. By itself it asks for TCP, and for no size.
const FLOWS: [&[&str]; 2] = [&[], &["--proto", "udp", "--size", "128"]];

/// Runs the pipe for each of these flows.
pub fn run(otgen: &Path, validator: &Path, folder: &Path) -> Result<()> {
    FLOWS
        .iter()
        .try_for_each(|flow| pipe(otgen, validator, folder, flow))
}

/// Runs the pipe, and expects all frames in the last metrics that it prints.
fn pipe(otgen: &Path, validator: &Path, folder: &Path, flow: &[&str]) -> Result<()> {
    let server = Server::start(validator, folder)?;
    let mut command = Command::new("bash");
    command
        .args(["-c", PIPE, "otgen"])
        .args(PORTS)
        .arg(FRAMES.to_string())
        .arg(server.location("https"))
        .args(flow)
        .env("OTGEN", otgen);
    let told = step::output(&mut command)?;
    println!("{told}");
    server.stop()?;
    let found = last(&told)?;
    if found != (FRAMES, FRAMES) {
        bail!("expected {FRAMES} frames sent and received, found {found:?}");
    }
    Ok(())
}

/// Frames sent and received in the last line of metrics.
fn last(told: &str) -> Result<(u64, u64)> {
    let line = told.lines().next_back().context("otgen said nothing")?;
    let metrics: Value = serde_json::from_str(line).with_context(|| line.to_owned())?;
    let flow = &metrics["flow_metrics"][0];
    let count = |field: &str| {
        let value = &flow[field];
        // Its JSON has 64-bit integers as strings, and no field that is 0.
        let text = value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned);
        match &*text {
            "null" => Ok(0),
            text => text.parse().with_context(|| format!("{field} in {line}")),
        }
    };
    Ok((count("frames_tx")?, count("frames_rx")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_counts_whether_its_numbers_are_strings_or_not() {
        let first = r#"{"choice":"flow_metrics","flow_metrics":[{"name":"f1"}]}"#;
        assert_eq!(last(first).unwrap(), (0, 0));
        let then = r#"{"flow_metrics":[{"name":"f1","frames_tx":"500","frames_rx":499}]}"#;
        assert_eq!(last(&format!("{first}\n{then}")).unwrap(), (500, 499));
        assert!(last("").is_err());
        assert!(last("otgen: no such flag").is_err());
    }
}
