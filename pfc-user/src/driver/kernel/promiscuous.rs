//! Frames of all addresses come in while this is held: test frames may be addressed to a gateway,
//! pause frames are multicast, and MACs filter both. The membership belongs to a socket, so that
//! the kernel ends it whatever ends the process.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use nix::errno::Errno;
use nix::net::if_::if_nametoindex;

use super::packet;

/// A port in promiscuous mode.
#[derive(Debug)]
pub struct Promiscuous {
    _socket: OwnedFd,
}

impl Promiscuous {
    /// Begins on `interface` of the calling thread's network namespace. Needs CAP_NET_RAW.
    pub fn hold(interface: &str) -> io::Result<Self> {
        let index = if_nametoindex(interface)?;
        let socket = packet::silent_socket()?;
        let membership = libc::packet_mreq {
            mr_ifindex: index as i32,
            mr_type: libc::PACKET_MR_PROMISC as u16,
            mr_alen: 0,
            mr_address: [0; 8],
        };
        // SAFETY: `membership` is a packet_mreq of the length given.
        Errno::result(unsafe {
            libc::setsockopt(
                socket.as_raw_fd(),
                libc::SOL_PACKET,
                libc::PACKET_ADD_MEMBERSHIP,
                (&raw const membership).cast(),
                size_of::<libc::packet_mreq>() as u32,
            )
        })?;
        Ok(Self { _socket: socket })
    }
}
