//! What runs on the hosts: an exporter on each, and one process for the traffic of all.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use anyhow::{Context, Result, bail};

use super::network::{Host, Network};
use crate::lab::archive::cannot_write;

/// Debian's own interpreter.
const PYTHON: &str = "/usr/bin/python3";
const TRAFFIC: &str = include_str!("traffic.py");
/// A pair, and a port by itself.
const PORTS: [&str; 3] = ["eth2", "--loss", "eth0:eth1"];

/// An exporter.
pub struct Exporter {
    child: Child,
    log: PathBuf,
}

impl Exporter {
    /// Starts it as its service does. Its errors go to a file in `folder`.
    pub fn start(root: &Path, network: &Network, host: Host, folder: &Path) -> Result<Self> {
        let log = folder.join(format!("exporter-{}.log", host.number()));
        let errors = File::create(&log).with_context(|| cannot_write(&log))?;
        let program = root.join("target/release/validator");
        let mut command = network.host(host).bound(&program.display().to_string());
        command
            .arg("watch")
            .args(PORTS)
            .args(["--line-rate", "1G"])
            .args(["--prometheus", &host.address().to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(errors);
        let child = command.spawn().context("cannot run validator watch")?;
        Ok(Self { child, log })
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// An error if it has ended.
    pub fn check(&mut self) -> Result<()> {
        if let Some(status) = self.child.try_wait()? {
            let log = fs::read_to_string(&self.log).unwrap_or_default();
            bail!("an exporter ended with {status}:\n{log}");
        }
        Ok(())
    }

    /// Kills it, as a crash would.
    pub fn kill(&mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }
}

impl Drop for Exporter {
    fn drop(&mut self) {
        // It may have been killed.
        let _ = self.kill();
    }
}

/// The process that sends.
pub struct Traffic {
    child: Child,
    orders: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Traffic {
    /// Starts it, and returns when it sends on every host.
    pub fn start(network: &Network) -> Result<Self> {
        let mut command = network.fabric().bound(PYTHON);
        command
            .args(["-c", TRAFFIC])
            .args(Host::all().map(|host| network.host(host).path()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut child = command.spawn().context("cannot run python3")?;
        let orders = child.stdin.take().expect("asked for");
        let answers = BufReader::new(child.stdout.take().expect("asked for"));
        let mut traffic = Self {
            child,
            orders,
            answers,
        };
        traffic.hear("sending")?;
        Ok(traffic)
    }

    /// Begins or ends a kind of storm towards a host.
    pub fn order(&mut self, kind: &str, host: Host, on: bool) -> Result<()> {
        let state = if on { "on" } else { "off" };
        let order = format!("{kind} {} {state}", host.number());
        writeln!(self.orders, "{order}").context("the traffic has ended")?;
        self.hear(&order)
    }

    fn hear(&mut self, expected: &str) -> Result<()> {
        let mut line = String::new();
        self.answers.read_line(&mut line)?;
        if line.trim_end() != expected {
            bail!("traffic: expected the line {expected:?}, found {line:?}");
        }
        Ok(())
    }
}

impl Drop for Traffic {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
