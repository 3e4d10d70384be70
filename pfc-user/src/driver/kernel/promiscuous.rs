//! Frames of all addresses come in while this is held: test frames may be addressed to a gateway,
//! pause frames are multicast, and MACs filter both. The membership belongs to a socket, so that
//! the kernel ends it whatever ends the process.

use std::io;
use std::os::fd::OwnedFd;

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
        packet::promiscuous(&socket, index)?;
        Ok(Self { _socket: socket })
    }
}
