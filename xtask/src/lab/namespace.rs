//! Network namespaces without names: each disappears with the last process that uses it.

use std::fs::File;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::process::{self, Command, Stdio};
use std::thread;

use anyhow::{Context, Result, anyhow, bail};
use nix::sched::{CloneFlags, unshare};

use crate::step;

/// A network namespace that exists for as long as this value does.
pub struct Namespace(File);

impl Namespace {
    /// Makes one.
    pub fn new() -> Result<Self> {
        let made = thread::spawn(|| {
            unshare(CloneFlags::CLONE_NEWNET).context("cannot make a network namespace")?;
            Self::of_this_thread()
        });
        made.join()
            .unwrap_or_else(|_| Err(anyhow!("the lab's thread panicked")))
    }

    /// That of this thread.
    pub fn of_this_thread() -> Result<Self> {
        let file = File::open("/proc/thread-self/ns/net").context("cannot open a namespace")?;
        Ok(Self(file))
    }

    /// A path to it that other processes can open.
    pub fn path(&self) -> String {
        format!("/proc/{}/fd/{}", process::id(), self.0.as_raw_fd())
    }

    /// A program in it, which is killed when this thread ends.
    pub fn bound(&self, program: &str) -> Command {
        let mut command = Command::new("setpriv");
        command
            .args(["--pdeathsig", "KILL", "--", "nsenter"])
            .arg(format!("--net={}", self.path()))
            .args(["--", program]);
        command
    }

    /// Runs lines of `ip` or `tc`; the first that fails is an error.
    pub fn batch(&self, program: &str, lines: &str) -> Result<()> {
        let mut command = self.bound(program);
        command.args(["-batch", "-"]).stdin(Stdio::piped());
        let cannot = format!("cannot run {}", step::show(&command));
        let mut child = command.spawn().with_context(|| cannot.clone())?;
        let mut input = child.stdin.take().expect("asked for");
        // Where it ends early, its exit code tells.
        let written = input.write_all(lines.as_bytes());
        drop(input);
        let status = child.wait().with_context(|| cannot.clone())?;
        if !status.success() {
            bail!("{program} ended with {status}, and says above which of these failed:\n{lines}");
        }
        written.context(cannot)
    }
}
