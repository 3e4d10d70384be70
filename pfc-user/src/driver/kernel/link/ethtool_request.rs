//! Requests of `ethtool` by the SIOCETHTOOL ioctl (linux/ethtool.h).

use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixDatagram;

use nix::errno::Errno;

const GSTRINGS: u32 = 0x1b;
/// `ETH_GSTRING_LEN`.
const NAME_LEN: usize = 32;

/// Number of names in a set, and the first `room` names, some perhaps empty.
pub(super) fn strings(interface: &str, set: u32, room: usize) -> io::Result<(u32, Vec<String>)> {
    // struct ethtool_gstrings: the set and the number of names behind the command.
    let mut names = Request::new(GSTRINGS, 12 + room * NAME_LEN);
    names.set_word(4, set);
    names.send(interface)?;
    let found = names.octets()[12..].chunks_exact(NAME_LEN).map(text);
    Ok((names.word(8), found.collect()))
}

/// The text before the first octet 0.
pub(super) fn text(octets: &[u8]) -> String {
    let end = octets
        .iter()
        .position(|&octet| octet == 0)
        .unwrap_or(octets.len());
    String::from_utf8_lossy(&octets[..end]).into_owned()
}

/// Octets that the kernel reads and overwrites; the first four are the command.
pub(super) struct Request(Vec<u8>);

impl Request {
    pub(super) fn new(command: u32, length: usize) -> Self {
        let mut request = Self(vec![0; length]);
        request.set_word(0, command);
        request
    }

    pub(super) fn octets(&self) -> &[u8] {
        &self.0
    }

    pub(super) fn word(&self, at: usize) -> u32 {
        u32::from_ne_bytes(self.0[at..at + 4].try_into().expect("four octets"))
    }

    pub(super) fn set_word(&mut self, at: usize, value: u32) {
        self.0[at..at + 4].copy_from_slice(&value.to_ne_bytes());
    }

    pub(super) fn set_long(&mut self, at: usize, value: u64) {
        self.0[at..at + 8].copy_from_slice(&value.to_ne_bytes());
    }

    pub(super) fn send(&mut self, interface: &str) -> io::Result<()> {
        // Any socket will do; the namespace is the one that it was made in.
        Ok(self.send_on(&UnixDatagram::unbound()?, interface)?)
    }

    pub(super) fn send_on(&mut self, socket: &impl AsRawFd, interface: &str) -> nix::Result<()> {
        let mut request = interface_request(interface)?;
        request.ifr_ifru.ifru_data = self.0.as_mut_ptr().cast();
        // SAFETY: the kernel reads and writes no more than the command's structure, for which every
        // caller has made `self.0` long enough; ifreq and buffer outlive the call.
        let result =
            unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL as _, &raw mut request) };
        Errno::result(result).map(drop)
    }
}

/// A request that names the interface.
pub(in crate::driver) fn interface_request(interface: &str) -> nix::Result<libc::ifreq> {
    if interface.len() >= libc::IFNAMSIZ {
        return Err(Errno::ENODEV);
    }
    // SAFETY: all fields of ifreq are integers, arrays of such and pointers, for which zero is a
    // value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(interface.bytes()) {
        *to = from as libc::c_char;
    }
    Ok(request)
}
