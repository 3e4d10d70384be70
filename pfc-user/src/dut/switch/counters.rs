//! A Unix socket at which the switch tells its counts while it runs, as the management of a real
//! one does.

use std::fs;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use super::model::Switch;

/// The socket. Its file is removed when this is dropped.
pub struct Counters {
    listener: UnixListener,
    path: PathBuf,
}

impl Counters {
    /// Listens at a path where there is no file yet.
    pub fn listen(path: &Path) -> io::Result<Self> {
        let counters = Self {
            listener: UnixListener::bind(path)?,
            path: path.to_owned(),
        };
        counters.listener.set_nonblocking(true)?;
        Ok(counters)
    }

    /// Sends the counts of each port to each client that has connected, as an array in JSON, and
    /// hangs up.
    pub fn publish(&self, switch: &Switch) -> io::Result<()> {
        loop {
            let mut client = match self.listener.accept() {
                Ok((client, _)) => client,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                // The client has gone again.
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => continue,
                Err(error) => return Err(error),
            };
            client.set_nonblocking(true)?;
            // An error: the client has gone, and knows that it got nothing.
            let _ = client.write_all(&serde_json::to_vec(&switch.counts())?);
        }
    }
}

impl AsFd for Counters {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }
}

impl Drop for Counters {
    fn drop(&mut self) {
        // An error: another process has removed it.
        let _ = fs::remove_file(&self.path);
    }
}
