//! Fabrics that a test starts: stock ibsim, and our own simulated agent as a process of its own.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::mad::PROGRAM;

const SHIM: &str = "/usr/lib/x86_64-linux-gnu/umad2sim/libumad2sim.so";

/// A server of ibsim's socket protocol; ends with this.
pub struct Fabric {
    child: Child,
    pub socket: String,
}

impl Fabric {
    /// Stock ibsim with one switch and the tester's node `Hca1` at the switch's port 1.
    pub fn stock(folder: &Path) -> Self {
        let socket = name("stock");
        std::fs::write(
            folder.join("net"),
            "Switch 4 \"Switch1\"\n[1] \"Hca1\"[1]\n\nHca 1 \"Hca1\"\n[1] \"Switch1\"[1]\n",
        )
        .unwrap();
        let mut ibsim = Command::new("ibsim");
        ibsim
            .args(["-s", "-n", "net"])
            .env("IBSIM_SOCKNAME", &socket)
            .current_dir(folder);
        Self {
            child: wait_for(ibsim, "Network simulator ready"),
            socket,
        }
    }

    /// `validator dut sma` with these arguments, separated by spaces.
    pub fn own(arguments: &str) -> Self {
        let socket = name("own");
        let mut sma = Command::new(PROGRAM);
        sma.args(["dut", "sma", "--socket", &socket])
            .args(arguments.split_whitespace());
        Self {
            child: wait_for(sma, "ready"),
            socket,
        }
    }

    /// Stops it, or lets it go on: what it is asked meanwhile waits.
    pub fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id() as i32), signal).unwrap();
    }

    /// A testbed in which it is the DUT; `more` lines for the table `[mad]`.
    pub fn testbed(&self, more: &str) -> String {
        format!(
            "name = \"t\"\n[mad]\ntransport = \"ibsim\"\nsocket = \"{}\"\nhost = \"Hca1\"\n{more}",
            self.socket
        )
    }

    /// The DUT's PortInfo as Debian's smpquery prints it, read with that key.
    pub fn port_info(&self, folder: &Path, m_key: u64) -> Option<String> {
        let mut query = Command::new("smpquery");
        query
            .args([
                "-D",
                "-K",
                "--m_key",
                &format!("{m_key:#x}"),
                "portinfo",
                "0,1",
                "0",
            ])
            .current_dir(folder);
        query
            .env("IBSIM_SOCKNAME", &self.socket)
            .env("SIM_HOST", "Hca1")
            .env("LD_PRELOAD", SHIM);
        let output = query.output().unwrap();
        output
            .status
            .success()
            .then(|| String::from_utf8(output.stdout).unwrap())
    }
}

impl Drop for Fabric {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A name that no other test has.
fn name(kind: &str) -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!(
        "{kind}-{}-{}",
        std::process::id(),
        NEXT.fetch_add(1, Ordering::Relaxed)
    )
}

/// Starts `command`, and waits until it prints a line with `ready`.
fn wait_for(mut command: Command, ready: &str) -> Child {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let found = lines
        .by_ref()
        .map_while(Result::ok)
        .any(|line| line.contains(ready));
    assert!(found, "{command:?} ended without a line with {ready:?}");
    // Later output is of no interest, but must not fill the pipe or break it.
    std::thread::spawn(move || lines.for_each(drop));
    child
}

/// The value of a field that smpquery printed, such as `Mkey`.
pub fn field<'o>(printed: &'o str, name: &str) -> &'o str {
    let line = printed
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.unwrap_or_else(|| panic!("no {name} in {printed}"))
        .trim_start_matches('.')
}
