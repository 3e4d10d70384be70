//! Standard output and standard error, whose readers may go away or stall.

mod queue;
mod wrap;

use std::fmt::Display;
use std::io::{self, ErrorKind, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use clap::ValueEnum;
use validator_core::report::plain;

pub use self::queue::Queue;
pub use self::wrap::wrapped;

/// Time in which a reader has to take something, where the process waits for nothing else.
pub const PATIENCE: Duration = Duration::from_secs(2);

/// Form of a result on standard output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people.
    #[default]
    Text,
    /// For programs.
    Json,
}

/// Takes everything, also when the reader has seen enough and closed the pipe, as in `| head`. Work
/// and exit code are then the same as with a reader that stays. Other errors are returned.
#[derive(Debug)]
pub struct Output<W> {
    to: W,
    closed: bool,
    /// Other errors end this output, too, and are kept.
    keeps_errors: bool,
    failure: Option<io::Error>,
}

/// Standard output of the process.
pub fn stdout() -> Output<io::Stdout> {
    Output::new(io::stdout())
}

/// Standard error, which blocks no writer: what its reader does not take is dropped, for there is
/// no other place to report it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stderr;

fn stderr() -> MutexGuard<'static, Queue> {
    static STDERR: LazyLock<Mutex<Queue>> = LazyLock::new(|| Mutex::new(Queue::new(io::stderr())));
    STDERR.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Write for Stderr {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        stderr().put(octets.to_vec());
        Ok(octets.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl AsRawFd for Stderr {
    fn as_raw_fd(&self) -> RawFd {
        io::stderr().as_raw_fd()
    }
}

/// Writes a line to standard error, without control characters that a name in it may have.
/// `eprintln!` panics where standard error has no reader.
pub fn note(line: impl Display) {
    let line = format!("{}\n", plain::lines(&line.to_string()));
    stderr().put(line.into_bytes());
}

/// Waits until standard error has all of it. To be called at the end of the process.
pub fn finish() {
    stderr().finish(PATIENCE, || true);
}

impl<W: Write> Output<W> {
    /// Writes to `to`.
    pub fn new(to: W) -> Self {
        Self {
            to,
            closed: false,
            keeps_errors: false,
            failure: None,
        }
    }

    /// Makes other errors end this output alone, such as that of a full disk: [`Self::failure`]
    /// returns the first.
    pub fn keeping_errors(mut self) -> Self {
        self.keeps_errors = true;
        self
    }

    /// Takes the error that ended this output.
    pub fn failure(&mut self) -> Option<io::Error> {
        self.failure.take()
    }

    /// True if the reader has gone away, or an error has ended this output.
    pub fn is_closed(&self) -> bool {
        self.closed
    }

    /// Calls `write`, unless the reader is known to be gone; `instead` is the result without one.
    fn unless_closed<T>(
        &mut self,
        instead: T,
        write: impl FnOnce(&mut W) -> io::Result<T>,
    ) -> io::Result<T> {
        if self.closed {
            return Ok(instead);
        }
        match write(&mut self.to) {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => {
                self.closed = true;
                Ok(instead)
            }
            Err(error) if self.keeps_errors => {
                self.closed = true;
                self.failure = Some(error);
                Ok(instead)
            }
            result => result.map_err(|error| {
                let text = format!("standard output cannot be written: {error}");
                io::Error::new(error.kind(), text)
            }),
        }
    }
}

impl<W: Write> Write for Output<W> {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        self.unless_closed(octets.len(), |to| to.write(octets))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.unless_closed((), W::flush)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes `after` octets, and fails from then on.
    struct Fails {
        after: usize,
        with: ErrorKind,
        calls: usize,
    }

    impl Write for Fails {
        fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
            self.calls += 1;
            match self.after.min(octets.len()) {
                0 => Err(self.with.into()),
                taken => {
                    self.after -= taken;
                    Ok(taken)
                }
            }
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn failing(with: ErrorKind) -> Output<Fails> {
        Output::new(Fails {
            after: 3,
            with,
            calls: 0,
        })
    }

    #[test]
    fn a_closed_pipe_takes_everything_and_is_not_tried_again() {
        let mut output = failing(ErrorKind::BrokenPipe);
        output.write_all(b"abc").unwrap();
        assert!(!output.is_closed());
        output.write_all(b"defg").unwrap();
        assert!(output.is_closed());
        let calls = output.to.calls;
        output.write_all(b"h").unwrap();
        output.flush().unwrap();
        assert_eq!(output.to.calls, calls);
    }

    #[test]
    fn other_errors_end_an_output_that_keeps_them() {
        let mut output = failing(ErrorKind::StorageFull).keeping_errors();
        output.write_all(b"abcdef").unwrap();
        assert!(output.is_closed());
        assert_eq!(output.failure().unwrap().kind(), ErrorKind::StorageFull);
        output.write_all(b"g").unwrap();
        assert!(output.failure().is_none(), "reported once");
    }

    #[test]
    fn other_errors_are_returned() {
        let mut output = failing(ErrorKind::StorageFull);
        let error = output.write_all(b"abcdef").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::StorageFull);
        assert!(!output.is_closed());
    }
}
