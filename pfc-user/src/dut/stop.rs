//! The end of a simulated device's process.

use std::os::fd::{AsFd, BorrowedFd};

use nix::poll::{PollFd, PollFlags};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::stat::{SFlag, fstat};

/// SIGTERM, SIGINT and, where standard input is a pipe, its end.
pub struct Stop<'a> {
    signals: SignalFd,
    stdin: Option<BorrowedFd<'a>>,
}

impl<'a> Stop<'a> {
    /// Blocks the signals for the calling thread: it should be the only one of its process.
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

    /// Descriptors to poll: an event of any ends the process.
    pub fn events(&self) -> Vec<PollFd<'_>> {
        let mut events = vec![PollFd::new(self.signals.as_fd(), PollFlags::POLLIN)];
        // Asks for nothing: POLLHUP, the end of the pipe, is always told.
        events.extend(
            self.stdin
                .map(|stdin| PollFd::new(stdin, PollFlags::empty())),
        );
        events
    }
}
