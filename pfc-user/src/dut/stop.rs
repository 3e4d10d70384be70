//! Events that end the process of a simulated device.

use std::os::fd::{AsFd, BorrowedFd};

use nix::poll::{PollFd, PollFlags};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::stat::{SFlag, fstat};

/// SIGTERM, SIGINT and, if standard input is a pipe, its end.
pub struct Stop<'a> {
    signals: SignalFd,
    stdin: Option<BorrowedFd<'a>>,
}

impl<'a> Stop<'a> {
    /// Blocks the signals for the calling thread, which should be the only one of its process.
    pub fn install(stdin: BorrowedFd<'a>) -> nix::Result<Self> {
        let signals = SigSet::from_iter([Signal::SIGTERM, Signal::SIGINT]);
        signals.thread_block()?;
        let signals =
            SignalFd::with_flags(&signals, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)?;
        let is_pipe =
            SFlag::from_bits_truncate(fstat(stdin)?.st_mode) & SFlag::S_IFMT == SFlag::S_IFIFO;
        Ok(Self {
            signals,
            stdin: is_pipe.then_some(stdin),
        })
    }

    /// Descriptors to poll: an event of any of them ends the process.
    pub fn events(&self) -> Vec<PollFd<'_>> {
        let mut events = vec![PollFd::new(self.signals.as_fd(), PollFlags::POLLIN)];
        // No events requested: POLLHUP, the end of the pipe, is always reported.
        events.extend(
            self.stdin
                .map(|stdin| PollFd::new(stdin, PollFlags::empty())),
        );
        events
    }
}
