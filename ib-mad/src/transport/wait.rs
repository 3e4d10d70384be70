//! Waits for a file descriptor, with a clock and a second descriptor that ends every wait.

use std::cell::RefCell;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;

use super::{Overslept, ReceiveError, Time};

/// Longest single wait: the time-out of the system call is limited.
const LONGEST: Duration = Duration::from_secs(3600);

/// A wait that ends so late was overslept; timers and a busy machine take less.
const OVERSLEPT: Duration = Duration::from_millis(5);
/// Most of them that are kept until they are taken.
const MOST_OVERSLEPT: usize = 1000;

/// A clock, and a descriptor that ends waits early.
#[derive(Debug)]
pub(super) struct Waiter {
    epoch: Instant,
    /// Ends every wait while it is readable.
    pub(super) wake: Option<OwnedFd>,
    overslept: RefCell<Vec<Overslept>>,
}

impl Waiter {
    pub(super) fn new() -> Self {
        Self {
            epoch: Instant::now(),
            wake: None,
            overslept: RefCell::default(),
        }
    }

    pub(super) fn now(&self) -> Time {
        self.epoch.elapsed()
    }

    /// True if `fd` becomes readable before `deadline`; after `deadline`, true if it is readable
    /// now.
    pub(super) fn readable(
        &self,
        fd: BorrowedFd,
        deadline: Time,
        transport: impl Fn() -> String,
    ) -> Result<bool, ReceiveError> {
        loop {
            let left = deadline.saturating_sub(self.now());
            match self.poll(fd, left.min(LONGEST)) {
                Ok(Some(Event::Woken)) => return Err(ReceiveError::Interrupted),
                Ok(Some(Event::Readable)) => return Ok(true),
                Ok(None) if left <= LONGEST => {
                    self.note(deadline);
                    return Ok(false);
                }
                Ok(None) | Err(Errno::EINTR) => {}
                Err(error) => {
                    return Err(ReceiveError::System {
                        transport: transport(),
                        source: error.into(),
                    });
                }
            }
        }
    }

    /// Notes how late a wait ended that was to end at `due`.
    fn note(&self, due: Time) {
        let ended = self.now();
        let mut overslept = self.overslept.borrow_mut();
        if ended.saturating_sub(due) >= OVERSLEPT && overslept.len() < MOST_OVERSLEPT {
            overslept.push(Overslept { due, ended });
        }
    }

    /// Waits that ended too late since the last call.
    pub(super) fn take_overslept(&self) -> Vec<Overslept> {
        self.overslept.take()
    }

    /// Returns the event that comes within `timeout`; `None` if there is none.
    fn poll(&self, fd: BorrowedFd, timeout: Duration) -> Result<Option<Event>, Errno> {
        let wake = self.wake.as_ref().map(AsFd::as_fd);
        let fds = [fd].into_iter().chain(wake);
        let mut fds: Vec<_> = fds.map(|fd| PollFd::new(fd, PollFlags::POLLIN)).collect();
        if ppoll(&mut fds, Some(TimeSpec::from_duration(timeout)), None)? == 0 {
            return Ok(None);
        }
        let is_readable = |fd: &PollFd| {
            fd.revents()
                .is_some_and(|events| events.contains(PollFlags::POLLIN))
        };
        match (fds.get(1).is_some_and(is_readable), is_readable(&fds[0])) {
            (true, _) => Ok(Some(Event::Woken)),
            (false, true) => Ok(Some(Event::Readable)),
            // A descriptor in error would end every wait at once.
            (false, false) => Err(Errno::ENODEV),
        }
    }
}

/// End of a wait before its time.
enum Event {
    Readable,
    Woken,
}

/// True if a read from a non-blocking descriptor just has to be tried again.
pub(super) fn is_passing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A waiter whose clock has run for `age`, and a pipe in which nothing comes.
    fn waiter(age: Duration) -> (Waiter, io::PipeReader, io::PipeWriter) {
        let (reader, writer) = io::pipe().unwrap();
        let epoch = Instant::now().checked_sub(age).unwrap();
        let waiter = Waiter {
            epoch,
            ..Waiter::new()
        };
        (waiter, reader, writer)
    }

    #[test]
    fn a_wait_that_ends_too_late_is_told_once() {
        let (waiter, reader, _writer) = waiter(Duration::from_millis(200));
        let due = Duration::from_millis(100);
        assert!(!waiter.readable(reader.as_fd(), due, String::new).unwrap());
        let overslept = waiter.take_overslept();
        assert_eq!(overslept.len(), 1);
        assert_eq!(overslept[0].due, due);
        assert!(
            overslept[0].ended >= Duration::from_millis(200),
            "{overslept:?}"
        );
        assert_eq!(waiter.take_overslept(), []);
    }

    #[test]
    fn what_is_there_by_then_was_not_overslept() {
        let (waiter, reader, mut writer) = waiter(Duration::from_secs(1));
        io::Write::write_all(&mut writer, &[1]).unwrap();
        assert!(
            waiter
                .readable(reader.as_fd(), Time::ZERO, String::new)
                .unwrap()
        );
        // Nor was a wait that ends early.
        waiter.note(waiter.now() + FOREVER);
        assert_eq!(waiter.take_overslept(), []);
    }

    const FOREVER: Duration = Duration::from_secs(600);

    #[test]
    fn no_more_than_so_many_are_kept() {
        let (waiter, _reader, _writer) = waiter(Duration::from_secs(1));
        for _ in 0..MOST_OVERSLEPT + 1 {
            waiter.note(Time::ZERO);
        }
        assert_eq!(waiter.take_overslept().len(), MOST_OVERSLEPT);
    }
}
