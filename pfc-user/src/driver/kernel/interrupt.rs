//! SIGINT, SIGTERM and SIGHUP as a file descriptor, so that every wait of the run can be ended by
//! them at once; and SIGXFSZ, which ends nothing.

use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use pfc_ebpf::units::Nanos;

use super::{clock, wait};

/// Makes a file that grows beyond the limit of this process (`ulimit -f`) an error of that file
/// (EFBIG): by default SIGXFSZ ends the process, and what was measured is lost.
pub fn outlive_file_limits() {
    extern "C" fn nothing(_: libc::c_int) {}
    // Child processes would inherit SIG_IGN; a handler is back to the default in them (execve(2)).
    let handler = SigHandler::Handler(nothing);
    let action = SigAction::new(handler, SaFlags::SA_RESTART, SigSet::empty());
    // SAFETY: the handler does nothing, so it may interrupt anything.
    unsafe { sigaction(Signal::SIGXFSZ, &action) }.expect("SIGXFSZ can be handled");
}

/// The user's wish to stop. Once seen it stays.
pub struct Interrupt {
    set: SigSet,
    signals: SignalFd,
    count: u32,
}

impl Interrupt {
    /// Takes over the three signals. To be called before any thread is spawned, since threads
    /// inherit the mask.
    pub fn install() -> Result<Self> {
        // A lost terminal (SIGHUP) must not leave a DUT locked either.
        let set = SigSet::from_iter([Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP]);
        set.thread_block()
            .context("SIGINT, SIGTERM and SIGHUP cannot be blocked")?;
        let signals = SignalFd::with_flags(&set, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)
            .context("no signalfd")?;
        Ok(Self {
            set,
            signals,
            count: 0,
        })
    }

    /// Gives the signals back, those that have come excepted: they end the process again.
    pub fn release(mut self) -> Result<()> {
        self.count();
        self.set
            .thread_unblock()
            .context("SIGINT, SIGTERM and SIGHUP cannot be unblocked")
    }

    /// Returns true if a signal has come.
    pub fn seen(&mut self) -> bool {
        self.count() > 0
    }

    /// Returns how many signals have come. Those that come before they are counted are one.
    pub fn count(&mut self) -> u32 {
        let mut has_come = false;
        while let Ok(Some(_)) = self.signals.read_signal() {
            has_come = true;
        }
        self.count += u32::from(has_come);
        self.count
    }

    /// Something that can be read once there is a signal, for waits elsewhere.
    pub fn wake(&self) -> Result<OwnedFd> {
        self.signals
            .as_fd()
            .try_clone_to_owned()
            .context("the signals' descriptor cannot be duplicated")
    }

    /// Waits until `deadline` (CLOCK_MONOTONIC) or a signal; true when there was one.
    pub fn wait_until(&mut self, deadline: Nanos) -> bool {
        loop {
            let now = clock::now();
            let seen = self.seen();
            if seen || now >= deadline {
                return seen;
            }
            let left = Duration::from_nanos(deadline - now);
            // An error: the loop looks at signal and time again.
            let _ = wait::readable(&[&self.signals], Some(Instant::now() + left));
        }
    }
}
