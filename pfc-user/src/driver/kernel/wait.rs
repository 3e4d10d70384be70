//! Waiting for files.

use std::io;
use std::os::fd::AsFd;
use std::time::Instant;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;

/// Waits until one of `files` can be read or has ended; returns true for those that can. All are
/// false at `deadline`.
pub fn readable(files: &[&dyn AsFd], deadline: Option<Instant>) -> io::Result<Vec<bool>> {
    let mut polled: Vec<PollFd> = files
        .iter()
        .map(|file| PollFd::new(file.as_fd(), PollFlags::POLLIN))
        .collect();
    loop {
        let left = deadline.map(|at| at.saturating_duration_since(Instant::now()));
        match ppoll(&mut polled, left.map(TimeSpec::from_duration), None) {
            Err(Errno::EINTR) => {}
            Err(error) => return Err(error.into()),
            Ok(0) if deadline.is_none_or(|at| Instant::now() < at) => {}
            Ok(_) => {
                return Ok(polled
                    .iter()
                    .map(|file| file.any().unwrap_or(false))
                    .collect());
            }
        }
    }
}
