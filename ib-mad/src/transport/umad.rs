//! Linux' umad: a port of a real adapter.
//!
//! The transport uses the driver's ioctls, reads and writes directly instead of libibumad: the
//! kernel keeps this interface stable (ABI version 5), the tool needs no C library at run time, and
//! a static build stays possible.
//!
//! Behaviour of the kernel (drivers/infiniband/core/user_mad.c and mad.c):
//! - It writes the upper 32 bits of a request's TID, and delivers only responses whose TID matches
//!   a request under way.
//! - It returns a request with status 110 (ETIMEDOUT) when its time is over, and reports no other
//!   failure.
//! - It refuses a TID that is already under way (EINVAL), and repeats requests by itself unless
//!   told not to.
//! - It delivers traps to one agent of a port only: the first that asks for them.

mod abi;
mod discover;
#[cfg(test)]
mod tests;

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::errno::Errno;
use nix::libc;

use self::abi::{Header, RegRequest};
use super::wait::{self, Waiter};
use super::{Overslept, ReceiveError, Received, SendError, Time, Transport};
use crate::mad::{CLASS_SUBN_DIRECTED, CLASS_SUBN_LID, Lid, Method};
use crate::smp::Smp;

/// Folder of the ports' device files.
const DEVICES: &str = "/dev/infiniband";
/// Added to the time-out given to the kernel: it counts in ticks of at most 10 ms and may start
/// within one.
const TICK_MS: u32 = 10;
/// Largest packet of any port (Omni-Path).
const MAX_MAD: usize = 2048;

/// Error of opening a port; nothing has been sent.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// No such adapter.
    #[error(
        "there is no RDMA device {device:?}: {}",
        listed(.present, "nothing is there; load the adapter's driver")
    )]
    NoDevice {
        /// The device asked for.
        device: String,
        /// The devices that exist.
        present: Vec<String>,
    },
    /// The adapter has no such port.
    #[error("device {device} has no port {port}: {}", listed(.present, "nothing is there"))]
    NoPort {
        /// Device.
        device: String,
        /// The port asked for.
        port: u8,
        /// The ports that exist.
        present: Vec<String>,
    },
    /// RoCE and iWARP have no subnet management.
    #[error(
        "port {port} of {device} has link layer {found}, and only InfiniBand has subnet management \
         packets: choose another port, or set this one to InfiniBand"
    )]
    LinkLayer {
        /// Device.
        device: String,
        /// Port.
        port: u8,
        /// Its link layer in sysfs.
        found: String,
    },
    /// The kernel offers no umad for the port.
    #[error(
        "port {port} of {device} has no umad: load the kernel module ib_umad (`modprobe ib_umad`)"
    )]
    NoUmad {
        /// Device.
        device: String,
        /// Port.
        port: u8,
    },
    /// The kernel's interface has another version than this module supports.
    #[error(
        "umad has ABI version {0}, and this tool knows version {known}: use a kernel that has it",
        known = abi::VERSION
    )]
    Abi(String),
    /// The process may not open the file.
    #[error(
        "{} may not be opened: run as root, or as a member of the group that owns it (`ls -l` \
         shows it, often rdma)",
        .0.display()
    )]
    Permission(PathBuf),
    /// The file does not exist, although sysfs names it.
    #[error(
        "{} does not exist, although sysfs has it: udev makes it, and a container has to be given \
         it",
        .0.display()
    )]
    NoFile(PathBuf),
    /// The kernel refused an agent for the class.
    #[error("{}: no agent for management class {class:#04x}: {source}", .file.display())]
    Agent {
        /// The file.
        file: PathBuf,
        /// Management class.
        class: u8,
        /// Error of the kernel.
        source: io::Error,
    },
    /// The system failed.
    #[error("{}: {source}", .path.display())]
    System {
        /// The file or folder.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
}

/// Names the choices there are.
fn listed(present: &[String], none: &str) -> String {
    if present.is_empty() {
        none.to_owned()
    } else {
        format!("choose one of {}", present.join(", "))
    }
}

/// Registers the agents for LID-routed and directed-route packets; the first one receives traps
/// where no other agent does. An error names the class.
fn agents(
    mut register: impl FnMut(RegRequest) -> Result<u32, Errno>,
) -> Result<[u32; 2], (u8, Errno)> {
    let mut agent = |class, methods: &[Method]| {
        register(RegRequest::new(class, methods)).map_err(|error| (class, error))
    };
    let lid_routed = match agent(CLASS_SUBN_LID, &[Method::TRAP]) {
        // Another agent on this port, a subnet manager's, receives the traps; responses arrive all
        // the same.
        Err((_, Errno::EINVAL)) => agent(CLASS_SUBN_LID, &[])?,
        other => other?,
    };
    Ok([lid_routed, agent(CLASS_SUBN_DIRECTED, &[])?])
}

/// A request that the kernel holds.
#[derive(Debug)]
struct UnderWay {
    tid: u32,
    until: Time,
}

/// A port of a real adapter.
#[derive(Debug)]
pub struct UmadTransport {
    file: File,
    name: String,
    /// Agents for the two classes.
    lid_routed: u32,
    directed: u32,
    under_way: Option<UnderWay>,
    waiter: Waiter,
}

impl UmadTransport {
    /// Opens `port` of `device`; `sysfs` is normally `/sys`.
    pub fn open(device: &str, port: u8, sysfs: &Path) -> Result<Self, OpenError> {
        let path = Path::new(DEVICES).join(discover::umad(device, port, sysfs)?);
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NONBLOCK)
            .open(&path);
        let file = file.map_err(|source| match source.kind() {
            io::ErrorKind::PermissionDenied => OpenError::Permission(path.clone()),
            io::ErrorKind::NotFound => OpenError::NoFile(path.clone()),
            _ => OpenError::System {
                path: path.clone(),
                source,
            },
        })?;
        // Must come first: it sets the length of the header to the one used here.
        abi::enable_pkey(file.as_raw_fd()).map_err(|error| OpenError::System {
            path: path.clone(),
            source: error.into(),
        })?;
        let agents = agents(|request| abi::register(file.as_raw_fd(), request));
        let agents = agents.map_err(|(class, error)| OpenError::Agent {
            file: path,
            class,
            source: error.into(),
        })?;
        Ok(Self::new(
            file,
            format!("umad {device} port {port}"),
            agents,
        ))
    }

    /// Takes an open file on which these agents are registered.
    fn new(file: File, name: String, [lid_routed, directed]: [u32; 2]) -> Self {
        Self {
            file,
            name,
            lid_routed,
            directed,
            under_way: None,
            waiter: Waiter::new(),
        }
    }

    fn failed(&self, source: io::Error) -> ReceiveError {
        ReceiveError::System {
            transport: self.name.clone(),
            source,
        }
    }

    /// Returns the fate of a request that the kernel returned; `None` for an earlier one whose wait
    /// is over.
    fn given_back(&mut self, status: u32, octets: &[u8]) -> Option<Result<(), ReceiveError>> {
        let tid = u32::from_be_bytes(*octets.get(12..)?.first_chunk()?);
        let now = self.now();
        self.under_way
            .take_if(|request| request.tid == tid)
            .filter(|request| now < request.until)?;
        Some(match status {
            abi::TIMED_OUT => Ok(()),
            status => Err(SendError::Status {
                transport: self.name.clone(),
                status,
            }
            .into()),
        })
    }
}

impl Transport for UmadTransport {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn now(&self) -> Time {
        self.waiter.now()
    }

    fn send(&mut self, smp: &Smp, to: Lid, keep: Duration) -> Result<(), SendError> {
        let (agent, lid) = if smp.is_directed() {
            (self.directed, Lid::PERMISSIVE)
        } else {
            (self.lid_routed, to)
        };
        // With 0 the kernel would accept no response at all.
        let timeout_ms = u32::try_from(keep.as_micros().div_ceil(1000))
            .unwrap_or(u32::MAX)
            .saturating_add(TICK_MS);
        let mut packet = Header {
            agent,
            timeout_ms,
            lid,
            ..Header::default()
        }
        .octets()
        .to_vec();
        packet.extend_from_slice(smp.octets());
        let until = self.now() + keep;
        let written = match (&self.file).write(&packet) {
            Ok(length) if length != packet.len() => Err(io::ErrorKind::WriteZero.into()),
            other => other,
        };
        written.map_err(|source| SendError::System {
            transport: self.name.clone(),
            source,
        })?;
        self.under_way = Some(UnderWay {
            tid: smp.tid().0 as u32,
            until,
        });
        Ok(())
    }

    fn receive(&mut self, deadline: Time) -> Result<Option<Received>, ReceiveError> {
        while self
            .waiter
            .readable(self.file.as_fd(), deadline, || self.name.clone())?
        {
            let mut packet = [0; Header::LENGTH + MAX_MAD];
            let length = match self.file.read(&mut packet) {
                Ok(0) => return Err(self.failed(Errno::ENODEV.into())),
                Ok(length) => length,
                Err(error) if wait::is_passing(&error) => continue,
                Err(error) => return Err(self.failed(error)),
            };
            let Some((header, octets)) = packet[..length]
                .split_first_chunk()
                .map(|(header, octets)| (Header::parse(header), octets))
            else {
                let found = format!(
                    "a header of {} octets expected, found {length}",
                    Header::LENGTH
                );
                return Err(self.failed(io::Error::new(io::ErrorKind::InvalidData, found)));
            };
            match header.status {
                0 => {
                    return Ok(Some(Received {
                        at: self.now(),
                        octets: octets.to_vec(),
                    }));
                }
                status => match self.given_back(status, octets) {
                    // The kernel delivers no response to it any more.
                    Some(Ok(())) => return Ok(None),
                    Some(Err(error)) => return Err(error),
                    None => {}
                },
            }
        }
        Ok(None)
    }

    fn shows_unmatched(&self) -> bool {
        false
    }

    fn take_overslept(&mut self) -> Vec<Overslept> {
        self.waiter.take_overslept()
    }

    fn set_wake(&mut self, wake: Option<OwnedFd>) {
        self.waiter.wake = wake;
    }
}
