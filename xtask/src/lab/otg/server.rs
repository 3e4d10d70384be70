//! `validator otg` as a process of the lab.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, anyhow, bail};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::PORTS;

/// A server that listens; it is killed where it is not stopped.
pub struct Server {
    child: Child,
    grpc: String,
    http: String,
}

impl Server {
    /// Starts a server on free ports of loopback; what it says on standard error is in
    /// `server.log`.
    pub fn start(validator: &Path, folder: &Path) -> Result<Self> {
        fs::create_dir_all(folder)?;
        let log = folder.join("server.log");
        // Veths have no speed of their own, and not every client says one.
        let testbed = folder.join("testbed.toml");
        let tables = PORTS
            .map(|port| format!("[ports.{port}]\ninterface = \"{port}\"\nline_rate = \"1G\"\n"));
        fs::write(&testbed, tables.concat())?;
        let mut child = Command::new(validator)
            .arg("otg")
            .arg("--testbed")
            .arg(&testbed)
            .args(["--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(File::create(&log)?)
            .spawn()
            .with_context(|| format!("cannot run {}", validator.display()))?;
        let mut line = String::new();
        let out = child.stdout.take().expect("it is piped");
        BufReader::new(out).read_line(&mut line)?;
        let Some((grpc, http)) = addresses(&line) else {
            let status = child.wait()?;
            let said = fs::read_to_string(&log).unwrap_or_default();
            bail!("validator otg ended with {status}: {}", said.trim());
        };
        Ok(Self { child, grpc, http })
    }

    /// What snappi calls the server by.
    pub fn location(&self, transport: &str) -> String {
        if transport.starts_with("grpc") {
            self.grpc.clone()
        } else {
            format!("{transport}://{}", self.http)
        }
    }

    /// Stops the server as its user does, and expects that it says so by its exit code.
    pub fn stop(mut self) -> Result<()> {
        let id = i32::try_from(self.child.id()).map_err(|_| anyhow!("a process without an id"))?;
        kill(Pid::from_raw(id), Signal::SIGTERM)?;
        let status = self.child.wait()?;
        if !status.success() {
            bail!("validator otg ended with {status} at SIGTERM");
        }
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Errors: it has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The addresses of gRPC and HTTP in `ready: gRPC A, HTTP http://B and https://B`.
fn addresses(line: &str) -> Option<(String, String)> {
    let (grpc, http) = line
        .strip_prefix("ready: gRPC ")?
        .split_once(", HTTP http://")?;
    let (http, _) = http.split_once(' ')?;
    Some((grpc.to_owned(), http.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_addresses_are_read_from_the_first_line() {
        let line = "ready: gRPC 127.0.0.1:1, HTTP http://127.0.0.1:2 and https://127.0.0.1:2\n";
        let expected = ("127.0.0.1:1".to_owned(), "127.0.0.1:2".to_owned());
        assert_eq!(addresses(line), Some(expected));
        assert_eq!(addresses(""), None);
    }
}
