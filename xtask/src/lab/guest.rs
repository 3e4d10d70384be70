//! The virtual machine.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::events::{self, Event};
use super::initrd::FAILED;
use super::packages::Tree;
use crate::step;

/// Lines of the console shown when the guest does not come up.
const SHOWN: usize = 20;

/// The guest's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// The host's.
    Real,
    /// Virtual time: an instruction takes a nanosecond and waiting takes none. The guest's
    /// measurements do not depend on the host's load.
    Virtual,
    /// Virtual time in which waiting takes its time: frames that go by the host arrive meanwhile,
    /// and a busy host slows the guest's clock down rather than the guest.
    VirtualWaiting,
}

/// The machine to start.
pub struct Machine<'a> {
    pub tools: &'a Tree,
    pub kernel: &'a Tree,
    pub initrd: &'a Path,
    pub clock: Clock,
    pub cpus: u32,
    /// Mebibytes of memory.
    pub memory: u32,
    /// QEMU arguments for the devices and their links.
    pub devices: Vec<String>,
}

/// A running QEMU. Dropping it ends it; nothing of the guest is on a disk.
pub struct Guest {
    qemu: Child,
    console: Vec<String>,
}

impl Guest {
    /// Starts it in the network namespace of the calling thread.
    pub fn start(machine: &Machine<'_>, events: Sender<Event>) -> Result<Self> {
        let mut qemu = machine.command()?;
        qemu.stdin(Stdio::null()).stdout(Stdio::piped());
        // Outside the terminal's process group: Ctrl-C ends what runs beside the guest first.
        qemu.process_group(0);
        let mut child = qemu
            .spawn()
            .with_context(|| format!("cannot run {}", step::show(&qemu)))?;
        events::send_lines(child.stdout.take().expect("asked for above"), events);
        Ok(Self {
            qemu: child,
            console: Vec::new(),
        })
    }

    /// Waits at most `limit` for a line of the console that begins with `start`. Passes every line
    /// to `heard`.
    pub fn wait_for(
        &mut self,
        start: &str,
        limit: Duration,
        events: &Receiver<Event>,
        mut heard: impl FnMut(&str),
    ) -> Result<()> {
        let until = Instant::now() + limit;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match events.recv_timeout(left) {
                Ok(Event::Line(line)) => {
                    heard(&line);
                    let found = line.starts_with(start);
                    let failed = line.strip_prefix(FAILED).map(str::to_owned);
                    self.console.push(line);
                    if let Some(what) = failed {
                        bail!(
                            "the guest could not do: {what}; its console:\n{}",
                            self.last_lines()
                        );
                    }
                    if found {
                        return Ok(());
                    }
                }
                Ok(Event::ConsoleClosed) => {
                    bail!(
                        "the guest ended before it said `{start}`; its console:\n{}",
                        self.last_lines()
                    )
                }
                Ok(Event::Signal(signal)) => bail!("ended by signal {signal}"),
                Ok(Event::Ended(_)) => {}
                Err(RecvTimeoutError::Timeout) => bail!(
                    "expected the guest to say `{start}` within {}, found:\n{}",
                    step::elapsed(limit),
                    self.last_lines()
                ),
                Err(RecvTimeoutError::Disconnected) => bail!("the guest's console is gone"),
            }
        }
    }

    /// Records a line of the console.
    pub fn heard(&mut self, line: String) {
        self.console.push(line);
    }

    /// The last lines of the console.
    pub fn last_lines(&self) -> String {
        let from = self.console.len().saturating_sub(SHOWN);
        let lines = self.console[from..]
            .iter()
            .map(|line| format!("    {line}"));
        lines.collect::<Vec<_>>().join("\n")
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.qemu.kill();
        let _ = self.qemu.wait();
    }
}

impl Machine<'_> {
    fn command(&self) -> Result<Command> {
        // QEMU ends with this thread even if the thread is killed.
        let mut qemu = Command::new("setpriv");
        qemu.args(["--pdeathsig", "KILL", "--"]);
        qemu.arg(self.tools.program("qemu-system-x86_64")?);
        for data in ["usr/share/qemu", "usr/share/seabios"] {
            qemu.arg("-L").arg(self.tools.path(data));
        }
        qemu.args([
            "-nodefaults",
            "-no-user-config",
            "-display",
            "none",
            "-no-reboot",
        ]);
        qemu.args([
            "-serial",
            "stdio",
            "-m",
            &self.memory.to_string(),
            "-machine",
            "q35",
        ]);
        // KVM hangs if it is nested and half supported; TCG is the same everywhere.
        match self.clock {
            Clock::Real => qemu.args(["-accel", "tcg"]),
            Clock::Virtual | Clock::VirtualWaiting => qemu.args([
                "-accel",
                "tcg,thread=single",
                "-icount",
                if self.clock == Clock::Virtual {
                    "shift=0,sleep=off"
                } else {
                    "shift=0,sleep=on"
                },
                "-cpu",
                "max",
            ]),
        };
        qemu.args(["-smp", &self.cpus.to_string()]);
        qemu.arg("-kernel")
            .arg(self.kernel.image()?.0)
            .arg("-initrd")
            .arg(self.initrd);
        // On a busy host the timer check sometimes panics, and the clock falls back to hpet.
        let quirks = "no_timer_check tsc=reliable mitigations=off net.ifnames=0";
        qemu.args(["-append", &format!("console=ttyS0 panic=-1 quiet {quirks}")]);
        qemu.args(&self.devices);
        qemu.env("LD_LIBRARY_PATH", self.tools.libraries());
        qemu.env(
            "QEMU_MODULE_DIR",
            self.tools.path("usr/lib/x86_64-linux-gnu/qemu"),
        );
        Ok(qemu)
    }
}
