//! The simulated switch between the tester's ports.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use anyhow::{Context, Result, bail};

use super::PORTS;

/// The switch's ends of the cables.
const ENDS: [&str; 2] = ["dut0", "dut1"];

/// Cables from the tester's ports to the switch.
pub fn cables() -> [[&'static str; 2]; 2] {
    [0, 1].map(|port| [PORTS[port], ENDS[port]])
}

/// `validator dut switch` as a process of the lab.
pub struct Switch {
    child: Child,
    /// The socket at which it tells its counts.
    pub counters: PathBuf,
    /// Its report comes at its end.
    out: BufReader<ChildStdout>,
}

impl Switch {
    /// Starts a switch with ports of 1 Gbit/s and these arguments besides, and waits until it takes
    /// frames.
    pub fn start(validator: &Path, folder: &Path, more: &[&str], faults: &[&str]) -> Result<Self> {
        let counters = folder.join("switch.sock");
        // One of a lab that was killed may be left.
        if counters.exists() {
            fs::remove_file(&counters).with_context(|| counters.display().to_string())?;
        }
        let mut command = Command::new(validator);
        command.args(["dut", "switch", "--lossless", "3,4"]);
        command.args(["--line-rate", "1G", "--counters"]);
        command.arg(&counters).args(more);
        command.args(ENDS.iter().flat_map(|port| ["--port", port]));
        command.args(faults.iter().flat_map(|fault| ["--fault", fault]));
        let mut child = command
            // It runs until this is closed.
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(File::create(folder.join("switch.log"))?)
            .spawn()
            .with_context(|| format!("cannot run {}", validator.display()))?;
        let out = BufReader::new(child.stdout.take().expect("it is piped"));
        let mut switch = Self {
            child,
            counters,
            out,
        };
        let mut line = String::new();
        if switch.out.read_line(&mut line)? == 0 {
            let status = switch.child.wait()?;
            bail!("the switch ended with {status}; switch.log says why");
        }
        Ok(switch)
    }

    /// Ends it as its user does.
    pub fn stop(mut self) -> Result<()> {
        drop(self.child.stdin.take());
        let mut report = String::new();
        self.out.read_to_string(&mut report)?;
        let status = self.child.wait()?;
        if !status.success() {
            bail!("the switch ended with {status}; switch.log says why");
        }
        Ok(())
    }
}

impl Drop for Switch {
    fn drop(&mut self) {
        // Errors: it has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
