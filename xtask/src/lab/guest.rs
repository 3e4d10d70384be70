//! The virtual machine.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::events::{self, Event};
use super::initrd::FAILED;
use super::network::{GUEST_MAC, TAP};
use super::packages::Tree;
use crate::step;

/// What `validator agent` says when testers can connect.
const READY: &str = "ready: ";
/// It takes 10 s; five times as long where others keep the machine busy. What takes longer than this hangs.
const BOOT: Duration = Duration::from_secs(180);
/// Lines of the console that are shown when it does not come up.
const SHOWN: usize = 20;

/// A running QEMU. Dropping it ends it: nothing of the guest is on a disk.
pub struct Guest {
    qemu: Child,
    console: Vec<String>,
}

impl Guest {
    /// Starts it on the tap of the thread's network namespace.
    pub fn start(tree: &Tree, initrd: &Path, events: Sender<Event>) -> Result<Self> {
        // QEMU ends with this thread even if that is killed.
        let mut qemu = Command::new("setpriv");
        qemu.args(["--pdeathsig", "KILL", "--"])
            .arg(tree.path("usr/bin/qemu-system-x86_64"));
        for data in ["usr/share/qemu", "usr/share/seabios"] {
            qemu.arg("-L").arg(tree.path(data));
        }
        // KVM hangs where it is nested and half supported; TCG is the same everywhere, and fast enough.
        qemu.args([
            "-accel",
            "tcg",
            "-m",
            "512",
            "-nodefaults",
            "-no-user-config",
            "-display",
            "none",
            "-no-reboot",
        ]);
        qemu.arg("-kernel")
            .arg(tree.starting("boot", "vmlinuz-")?)
            .arg("-initrd")
            .arg(initrd);
        qemu.args([
            "-append",
            "console=ttyS0 panic=-1 quiet",
            "-serial",
            "stdio",
        ]);
        qemu.args([
            "-netdev",
            &format!("tap,id=net,ifname={TAP},script=no,downscript=no"),
        ]);
        qemu.args([
            "-device",
            &format!("virtio-net-pci,netdev=net,mac={GUEST_MAC},romfile="),
        ]);
        qemu.env("LD_LIBRARY_PATH", tree.libraries()).env(
            "QEMU_MODULE_DIR",
            tree.path("usr/lib/x86_64-linux-gnu/qemu"),
        );
        // Not in the terminal's group: Ctrl-C ends the validator first.
        qemu.stdin(Stdio::null())
            .stdout(Stdio::piped())
            .process_group(0);
        let mut child = qemu
            .spawn()
            .with_context(|| format!("cannot run {}", step::show(&qemu)))?;
        events::send_lines(child.stdout.take().expect("asked for above"), events);
        Ok(Self {
            qemu: child,
            console: Vec::new(),
        })
    }

    /// Waits until its agent can be connected to.
    pub fn wait(&mut self, events: &Receiver<Event>) -> Result<()> {
        let until = Instant::now() + BOOT;
        loop {
            match events.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(Event::Line(line)) => {
                    let ready = line.starts_with(READY);
                    let failed = line.strip_prefix(FAILED).map(str::to_owned);
                    self.console.push(line);
                    if let Some(what) = failed {
                        bail!(
                            "the guest could not do: {what}; its console:\n{}",
                            self.last_lines()
                        );
                    }
                    if ready {
                        return Ok(());
                    }
                }
                Ok(Event::ConsoleClosed) => bail!(
                    "the guest ended before its agent was ready; its console:\n{}",
                    self.last_lines()
                ),
                Ok(Event::Signal(signal)) => {
                    bail!("ended by signal {signal} while the guest was booting")
                }
                Ok(Event::Ended(_)) => {}
                Err(RecvTimeoutError::Timeout) => {
                    bail!(
                        "expected the guest's agent to be ready after {}, found:\n{}",
                        step::elapsed(BOOT),
                        self.last_lines()
                    )
                }
                Err(RecvTimeoutError::Disconnected) => bail!("the guest's console is gone"),
            }
        }
    }

    /// Keeps what the console says.
    pub fn heard(&mut self, line: String) {
        self.console.push(line);
    }

    /// The end of what the console said.
    pub fn last_lines(&self) -> String {
        let from = self.console.len().saturating_sub(SHOWN);
        self.console[from..]
            .iter()
            .map(|line| format!("    {line}"))
            .collect::<Vec<_>>()
            .join("\n")
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.qemu.kill();
        let _ = self.qemu.wait();
    }
}
