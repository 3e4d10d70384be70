//! One tester at a time: the claim of a run on its DUT.
//!
//! The journal names the process that has the DUT, and knows what it may have changed. Another
//! user's journal may be closed to this one, so that a run also holds an abstract socket of the
//! DUT's name: the kernel gives it to one process of all users, and takes it back when that ends.

use std::os::fd::AsRawFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::PathBuf;
use std::{fs, io, process};

use nix::errno::Errno;
use nix::sys::socket::sockopt::PeerCredentials;
use nix::sys::socket::{
    AddressFamily, SockFlag, SockType, UnixAddr, UnixCredentials, connect, getsockopt, socket,
};
use nix::unistd::{Uid, geteuid};

use super::{Journal, JournalError, What, boot, look, own, user, write};
use crate::driver::bringup::mad::Claimed;

/// The claim on a DUT; given up when dropped.
#[derive(Debug)]
pub struct Claim {
    path: PathBuf,
    _held: Option<UnixListener>,
}

impl Drop for Claim {
    fn drop(&mut self) {
        // A file that stays is of a process that is gone, and stops no tester.
        let _ = fs::remove_file(&self.path);
    }
}

impl Journal {
    /// Claims a DUT for this process.
    ///
    /// # Errors
    /// If another process that still runs has claimed it, or has noted its key.
    pub fn claim(&self, claimed: Claimed) -> Result<Claim, JournalError> {
        self.unclaimed(&claimed)?;
        let held = hold(&claimed)?;
        let name = format!("claim-{}", claimed.file_name());
        let what = What::Claim {
            claimed: claimed.clone(),
        };
        let path = write(&self.keys, &name, what, false)?;
        let claim = Claim { path, _held: held };
        // Another may have looked at the same time: then both see each other now.
        self.unclaimed(&claimed)?;
        Ok(claim)
    }

    /// An error if another process that still runs has to do with that DUT, by the journals that
    /// this user may read.
    pub(super) fn unclaimed(&self, claimed: &Claimed) -> Result<(), JournalError> {
        let boot = boot();
        let (paths, _) = self.entries()?;
        let own = paths.into_iter().filter_map(|path| {
            let entry = own(&path).ok()?;
            Some((path, geteuid(), entry))
        });
        // A folder that is closed to this user, or is none, hides no other.
        let (others, _) = look(&self.others);
        let others = others
            .into_iter()
            .filter_map(|seen| Some((seen.path, seen.owner, seen.entry.ok()?)));
        for (path, owner, entry) in own.chain(others) {
            let is_its = match &entry.what {
                What::Claim { claimed: other } => other == claimed,
                What::Key(key) => key.is_of(claimed),
                What::Setting(_) | What::Restore(_) => false,
            };
            if is_its && entry.pid != process::id() && entry.is_alive(&boot) {
                return Err(JournalError::Claimed {
                    who: who(entry.pid, owner),
                    claimed: Box::new(claimed.clone()),
                    by: format!("its entry in the journal is {}", path.display()),
                });
            }
        }
        Ok(())
    }
}

/// Takes the socket of the DUT's name. `None` where this process has it already, or where there are
/// no such sockets: the journal has to do then.
fn hold(claimed: &Claimed) -> Result<Option<UnixListener>, JournalError> {
    let name = format!("validator-claim-{:016x}", digest(&claimed.file_name()));
    let Ok(address) = SocketAddr::from_abstract_name(&name) else {
        return Ok(None);
    };
    let mut ended = false;
    loop {
        let who = match UnixListener::bind_addr(&address) {
            Ok(held) => return Ok(Some(held)),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => match holder(&name) {
                Ok(holder) if holder.pid() as u32 == process::id() => return Ok(None),
                Ok(holder) => who(holder.pid() as u32, holder.uid().into()),
                // The holder may have ended meanwhile.
                Err(Errno::ECONNREFUSED) if !ended => {
                    ended = true;
                    continue;
                }
                Err(_) => "a process that does not listen (`ss -xap` as root names it)".into(),
            },
            Err(_) => return Ok(None),
        };
        return Err(JournalError::Claimed {
            who,
            claimed: Box::new(claimed.clone()),
            by: format!("it holds the socket @{name}"),
        });
    }
}

/// That process, and the user if that is another.
fn who(pid: u32, owner: Uid) -> String {
    // The kernel says 0 of one that has no number here (unix(7), SO_PEERCRED).
    let process = match pid {
        0 => "a process of another PID namespace".to_owned(),
        pid => format!("process {pid}"),
    };
    if owner == geteuid() {
        process
    } else {
        format!("{process} of {}", user(owner))
    }
}

/// The process that listens at that abstract name.
fn holder(name: &str) -> nix::Result<UnixCredentials> {
    // The holder never accepts, and a full queue must not block.
    let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
    let stream = socket(AddressFamily::Unix, SockType::Stream, flags, None)?;
    connect(
        stream.as_raw_fd(),
        &UnixAddr::new_abstract(name.as_bytes())?,
    )?;
    getsockopt(&stream, PeerCredentials)
}

/// FNV-1a of `text`: a socket's name has room for 107 octets, and a DUT's may be longer.
fn digest(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |digest, octet| {
        (digest ^ u64::from(octet)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
