//! Raw AF_PACKET sockets that send straight to the driver.

mod device_port;
mod options;

use std::io;
use std::mem::{size_of_val, zeroed};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use nix::errno::Errno;
use nix::net::if_::if_nametoindex;
use nix::sys::socket::sockopt::{SndBuf, SndBufForce};
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockType, recv, send, setsockopt, socket,
};
use pfc_ebpf::units::Nanos;

pub use self::device_port::{Batch, DevicePort, Received};
use self::options::{AddMembership, QdiscBypass};
use super::clock;
use super::link::ethtool;

/// Frames in one system call at the most.
pub const BATCH: usize = 64;
/// Room for what a NIC has not yet sent: 4 ms at 10 Gbit/s with the kernel's own bookkeeping.
const SEND_BUFFER: usize = 16 << 20;

/// Sends frames on one interface. Receives nothing, unless it is opened for an EtherType.
#[derive(Debug)]
pub struct PacketSocket {
    fd: OwnedFd,
    interface: String,
}

/// Time from one try to the next where there was no room. Nothing tells when there is: past the
/// queueing discipline the kernel keeps nothing back for a full ring, and POLLOUT speaks of the
/// socket's buffer alone, which a full ring leaves nearly empty. A ring of 256 frames of 1024
/// octets takes 0.2 ms at 10 Gbit/s to run dry.
pub const AGAIN: Nanos = 100_000;

/// Result of sending a batch. Frames after the refused one were not tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchOutcome {
    /// Frames that left, counted from the first.
    pub left: usize,
    /// The frame after those was refused for want of room (ENOBUFS, EAGAIN).
    pub refused: bool,
}

/// Errors of a packet socket.
#[derive(Debug, thiserror::Error)]
pub enum PacketError {
    /// The name is not known in this network namespace.
    #[error(
        "no interface {interface:?} in this network namespace; `ip link` lists those there are"
    )]
    NoInterface {
        /// Its name.
        interface: String,
    },
    /// No CAP_NET_RAW.
    #[error(
        "not permitted to open a packet socket on {interface}: CAP_NET_RAW is needed, run as root \
         or `setcap cap_net_raw+ep`"
    )]
    NotPermitted {
        /// Interface.
        interface: String,
    },
    /// Another refusal of the kernel.
    #[error("cannot open a packet socket on {interface}: {what}: {source}")]
    Open {
        /// Interface.
        interface: String,
        /// System call or option.
        what: &'static str,
        /// The kernel's reason.
        source: io::Error,
    },
    /// The frame did not leave for want of room.
    #[error("{interface} had no room for a frame: its queue, or that of its peer, is full")]
    Refused {
        /// Interface.
        interface: String,
    },
    /// The interface is down.
    #[error("{interface} is down; `ip link set {interface} up`")]
    Down {
        /// Interface.
        interface: String,
    },
    /// The frame is longer than the interface takes.
    #[error(
        "a frame of {length} octets is too long for {interface}; raise its MTU (`ip link set \
         {interface} mtu ...`) or send shorter frames"
    )]
    TooLong {
        /// Interface.
        interface: String,
        /// Octets without FCS.
        length: usize,
    },
    /// Another failure to send.
    #[error("cannot send on {interface}: {source}")]
    Send {
        /// Interface.
        interface: String,
        /// The kernel's reason.
        source: io::Error,
    },
}

impl PacketSocket {
    /// Opens a socket on `interface` of the calling thread's network namespace, where it stays
    /// wherever it is used from.
    pub fn open(interface: &str) -> Result<Self, PacketError> {
        Self::open_for(interface, SILENT)
    }

    /// Like `open`, but the socket receives frames of that EtherType too, without VLAN tags.
    pub fn open_for(interface: &str, ethertype: u16) -> Result<Self, PacketError> {
        let interface = interface.to_owned();
        let Ok(index) = if_nametoindex(interface.as_str()) else {
            return Err(PacketError::NoInterface { interface });
        };
        let open_error = |what| {
            let interface = interface.clone();
            move |errno: Errno| PacketError::Open {
                interface,
                what,
                source: errno.into(),
            }
        };
        let fd = silent_socket().map_err(|errno| match errno {
            Errno::EPERM | Errno::EACCES => PacketError::NotPermitted {
                interface: interface.clone(),
            },
            errno => open_error("socket")(errno),
        })?;
        // Without it frames wait in the queueing discipline, and leave long after their stamp was
        // made.
        setsockopt(&fd, QdiscBypass, &true).map_err(open_error("PACKET_QDISC_BYPASS"))?;
        if setsockopt(&fd, SndBufForce, &SEND_BUFFER).is_err() {
            setsockopt(&fd, SndBuf, &SEND_BUFFER).map_err(open_error("SO_SNDBUF"))?;
        }
        bind(&fd, index, ethertype).map_err(open_error("bind"))?;
        Ok(Self { fd, interface })
    }

    /// Sends one frame, without FCS.
    pub fn send(&self, frame: &[u8]) -> Result<(), PacketError> {
        match send(self.fd.as_raw_fd(), frame, MsgFlags::MSG_DONTWAIT) {
            Ok(_) => Ok(()),
            Err(errno) => Err(self.send_error(errno, frame.len())),
        }
    }

    /// Copies a received frame to `buffer`, cut to its length; returns how many octets it has
    /// there. EAGAIN when there is none.
    pub fn receive(&self, buffer: &mut [u8]) -> nix::Result<usize> {
        recv(self.fd.as_raw_fd(), buffer, MsgFlags::MSG_DONTWAIT)
    }

    /// Sends at most [`BATCH`] frames in order, up to the first that is refused for want of room;
    /// nothing is tried again. An error means that no frame of the batch left.
    pub fn send_batch<'a>(
        &self,
        frames: impl Iterator<Item = &'a [u8]>,
    ) -> Result<BatchOutcome, PacketError> {
        let mut frames = frames.peekable();
        let Some(first) = frames.peek().map(|frame| frame.len()) else {
            return Ok(BatchOutcome {
                left: 0,
                refused: false,
            });
        };
        match send_some(&self.fd, frames) {
            // The kernel stops at the first frame that fails and keeps the reason to itself. If
            // that was not want of room, the next call meets it as an error.
            Ok((left, all)) => Ok(BatchOutcome {
                left,
                refused: left < all,
            }),
            Err(Errno::ENOBUFS | Errno::EAGAIN) => Ok(BatchOutcome {
                left: 0,
                refused: true,
            }),
            Err(errno) => Err(self.send_error(errno, first)),
        }
    }

    /// True if the interface is up and has carrier, by ETHTOOL_GLINK: one system call, unlike
    /// netlink. The flag IFF_RUNNING follows the operational state, which on Linux 6.1 still reads
    /// "up" after a reset took the carrier away; it serves where the driver has no ETHTOOL_GLINK.
    pub fn has_carrier(&self) -> nix::Result<bool> {
        match ethtool::has_link(&self.fd, &self.interface) {
            Err(Errno::EOPNOTSUPP) => {}
            known => return known,
        }
        let mut request = ethtool::interface_request(&self.interface)?;
        // SAFETY: the kernel reads and writes the ifreq alone, which outlives the call.
        let result = unsafe {
            libc::ioctl(
                self.fd.as_raw_fd(),
                libc::SIOCGIFFLAGS as _,
                &raw mut request,
            )
        };
        Errno::result(result)?;
        // SAFETY: SIOCGIFFLAGS has written the flags.
        let flags = unsafe { request.ifr_ifru.ifru_flags };
        Ok(libc::c_int::from(flags) & libc::IFF_RUNNING != 0)
    }

    /// True as long as the interface is there that the socket was opened on, whatever its name
    /// and whether it is up.
    pub fn is_bound(&self) -> nix::Result<bool> {
        is_bound(&self.fd)
    }

    /// The interface it was opened on.
    pub fn interface(&self) -> &str {
        &self.interface
    }

    fn send_error(&self, errno: Errno, length: usize) -> PacketError {
        let interface = self.interface.clone();
        match errno {
            Errno::ENOBUFS | Errno::EAGAIN => PacketError::Refused { interface },
            Errno::ENETDOWN => PacketError::Down { interface },
            Errno::EMSGSIZE => PacketError::TooLong { interface, length },
            _ => PacketError::Send {
                interface,
                source: errno.into(),
            },
        }
    }
}

impl AsFd for PacketSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Tries `send` until there is room, for `patience` at the longest; also returns how often there
/// was none. A frame that was refused did not leave, so that what `send` notes of the last try is
/// exact.
pub fn when_there_is_room<T>(
    patience: Nanos,
    mut send: impl FnMut() -> Result<T, PacketError>,
) -> Result<(T, u64), PacketError> {
    let end = clock::now() + patience;
    let mut waits = 0;
    loop {
        match send() {
            Err(PacketError::Refused { .. }) if clock::now() < end => waits += 1,
            result => return result.map(|sent| (sent, waits)),
        }
        clock::sleep_until(clock::now() + AGAIN);
    }
}

/// Note on waits for room that no evidence counts.
pub fn waited(port: &str, frame: &str, waits: u64) -> String {
    format!("{port} had no room for {frame} {waits} times; it was tried again")
}

/// The protocol of a socket that receives nothing.
const SILENT: u16 = 0;

/// A raw packet socket that receives nothing until it is bound: it has protocol 0.
pub(super) fn silent_socket() -> nix::Result<OwnedFd> {
    socket(
        AddressFamily::Packet,
        SockType::Raw,
        SockFlag::SOCK_CLOEXEC,
        None,
    )
}

/// Makes the interface of that index promiscuous while the socket is open.
pub(super) fn promiscuous(fd: &OwnedFd, index: libc::c_uint) -> nix::Result<()> {
    let membership = libc::packet_mreq {
        mr_ifindex: index as i32,
        mr_type: libc::PACKET_MR_PROMISC as u16,
        mr_alen: 0,
        mr_address: [0; 8],
    };
    setsockopt(fd, AddMembership, &membership)
}

/// Binds the socket to frames of that EtherType at the interface of that index.
fn bind(fd: &OwnedFd, index: libc::c_uint, ethertype: u16) -> nix::Result<()> {
    // SAFETY: all octets zero is a valid sockaddr_ll.
    let mut address: libc::sockaddr_ll = unsafe { zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = ethertype.to_be();
    address.sll_ifindex = index as i32;
    let length = size_of_val(&address) as libc::socklen_t;
    // SAFETY: `address` is a sockaddr_ll of the length given.
    let bound = unsafe { libc::bind(fd.as_raw_fd(), (&raw const address).cast(), length) };
    Errno::result(bound).map(drop)
}

/// The address that the socket is bound to.
fn bound_to(fd: &OwnedFd) -> nix::Result<libc::sockaddr_ll> {
    // SAFETY: all octets zero is a valid sockaddr_ll.
    let mut address: libc::sockaddr_ll = unsafe { zeroed() };
    let mut length = size_of_val(&address) as libc::socklen_t;
    // The type of nix wants an address of full length, and the kernel writes six octets of it.
    // SAFETY: the kernel writes at most `length` octets, and both outlive the call.
    let result =
        unsafe { libc::getsockname(fd.as_raw_fd(), (&raw mut address).cast(), &raw mut length) };
    Errno::result(result).map(|_| address)
}

fn is_bound(fd: &OwnedFd) -> nix::Result<bool> {
    // The kernel writes -1 when the interface goes.
    Ok(bound_to(fd)?.sll_ifindex > 0)
}

/// Sends at most [`BATCH`] frames by one call, up to the first that fails. Returns how many left,
/// and how many there were; the error is that of the first.
fn send_some<'a>(
    fd: &OwnedFd,
    frames: impl Iterator<Item = &'a [u8]>,
) -> nix::Result<(usize, usize)> {
    // SAFETY: all octets zero is a valid iovec and a valid mmsghdr.
    let (mut vectors, mut messages): ([libc::iovec; BATCH], [libc::mmsghdr; BATCH]) =
        unsafe { (zeroed(), zeroed()) };
    let mut count = 0;
    for ((frame, vector), message) in frames.zip(&mut vectors).zip(&mut messages) {
        *vector = libc::iovec {
            iov_base: frame.as_ptr().cast_mut().cast(),
            iov_len: frame.len(),
        };
        message.msg_hdr.msg_iov = vector;
        message.msg_hdr.msg_iovlen = 1;
        count += 1;
    }
    // SAFETY: the first `count` messages point to vectors that live as long as the call, and those
    // to frames that the iterator borrowed for 'a; the kernel only reads them.
    let sent = unsafe {
        libc::sendmmsg(
            fd.as_raw_fd(),
            messages.as_mut_ptr(),
            count,
            libc::MSG_DONTWAIT,
        )
    };
    Ok((Errno::result(sent)? as usize, count as usize))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A socket that refuses `refusals` frames.
    fn refusing(mut refusals: u64) -> impl FnMut() -> Result<u64, PacketError> {
        move || match refusals.checked_sub(1) {
            None => Ok(7),
            Some(left) => {
                refusals = left;
                Err(PacketError::Refused {
                    interface: "a".into(),
                })
            }
        }
    }

    #[test]
    fn room_is_waited_for_and_each_refusal_counted() {
        const LONG: Nanos = 3_600_000_000_000;
        assert_eq!(when_there_is_room(LONG, refusing(0)).unwrap(), (7, 0));
        assert_eq!(when_there_is_room(LONG, refusing(3)).unwrap(), (7, 3));
        // Tries end with the patience, and at once for what no room mends.
        let error = when_there_is_room(AGAIN, refusing(u64::MAX)).unwrap_err();
        assert!(matches!(error, PacketError::Refused { .. }), "{error}");
        let mut tries = 0;
        let down = || {
            tries += 1;
            Err::<(), _>(PacketError::Down {
                interface: "a".into(),
            })
        };
        let error = when_there_is_room(LONG, down).unwrap_err();
        assert!(matches!(error, PacketError::Down { .. }), "{error}");
        assert_eq!(tries, 1);
    }

    #[test]
    fn an_unknown_interface_is_named() {
        let error = PacketSocket::open("no-such-port").unwrap_err();
        assert!(
            matches!(&error, PacketError::NoInterface { interface } if interface == "no-such-port")
        );
        assert!(error.to_string().contains("\"no-such-port\""), "{error}");
    }
}
