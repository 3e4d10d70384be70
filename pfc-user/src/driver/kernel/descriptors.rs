//! The number of files that this process may open.

use std::io;

use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// Files that a command needs at most, but for the connections of a server: with fewer it would
/// fail at some place in its middle.
const LEAST: u64 = 128;

/// Errors of [`ensure`].
#[derive(Debug, thiserror::Error)]
pub enum DescriptorError {
    /// Too few.
    #[error(
        "this process may open {0} files at a time, expected at least {LEAST}: raise the limit, \
         for example by `ulimit -n 1024`"
    )]
    TooFew(u64),
    /// The limit could not be read or raised.
    #[error("the limit of open files (`ulimit -n`): {0}")]
    System(#[from] io::Error),
}

/// Makes sure that enough files can be open at a time; raises the limit where that is allowed.
pub fn ensure() -> Result<(), DescriptorError> {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).map_err(io::Error::from)?;
    if soft >= LEAST {
        return Ok(());
    }
    if hard < LEAST {
        return Err(DescriptorError::TooFew(hard));
    }
    Ok(setrlimit(Resource::RLIMIT_NOFILE, LEAST, hard).map_err(io::Error::from)?)
}
