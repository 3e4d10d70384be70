//! Events that end the process of a simulated device.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::stat::{SFlag, fstat};
use nix::sys::time::TimeSpec;

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

/// Waits until one of `files` can be read, for `timeout` at the longest; returns true for those
/// that can. `None`: `stop` has an event.
pub fn wait<'f>(
    stop: &[PollFd<'f>],
    files: impl IntoIterator<Item = BorrowedFd<'f>>,
    timeout: Option<Duration>,
) -> io::Result<Option<Vec<bool>>> {
    let mut events = stop.to_vec();
    let files = files.into_iter();
    events.extend(files.map(|file| PollFd::new(file, PollFlags::POLLIN)));
    match ppoll(&mut events, timeout.map(TimeSpec::from_duration), None) {
        Ok(_) | Err(Errno::EINTR) => {}
        Err(error) => return Err(error.into()),
    }
    let mut ready = events.iter().map(|event| event.any().unwrap_or(false));
    if ready.by_ref().take(stop.len()).any(|ends| ends) {
        return Ok(None);
    }
    Ok(Some(ready.collect()))
}
