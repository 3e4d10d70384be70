//! The XDP program of an interface, by whatever means it was attached. Asked by rtnetlink.

use std::fmt;
use std::io;

use aya::programs::loaded_programs;
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, recv, send, socket,
};
use std::os::fd::AsRawFd;

/// A program attached to an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attached {
    /// Its id.
    pub id: u32,
    /// Its name, where it has one.
    pub name: Option<String>,
}

impl fmt::Display for Attached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => write!(f, "`{name}` (id {})", self.id),
            None => write!(f, "id {}", self.id),
        }
    }
}

// `linux/netlink.h`, `linux/rtnetlink.h`, `linux/if_link.h`.
const RTM_NEWLINK: u16 = 16;
const RTM_GETLINK: u16 = 18;
const NLM_F_REQUEST: u16 = 1;
const IFLA_XDP: u16 = 43;
/// `IFLA_XDP_PROG_ID`, and those of the driver, generic and offloaded program where there are
/// several.
const PROGRAM_IDS: std::ops::RangeInclusive<u16> = 4..=7;
const NLA_TYPE_MASK: u16 = 0x3fff;
/// Octets of `nlmsghdr`, and of it with `ifinfomsg`.
const HEADER: usize = 16;
const BODY: usize = 32;

/// The program of the interface with that index in the calling thread's network namespace.
pub fn program(interface: u32) -> io::Result<Option<Attached>> {
    let socket = socket(
        AddressFamily::Netlink,
        SockType::Raw,
        SockFlag::SOCK_CLOEXEC,
        SockProtocol::NetlinkRoute,
    )?;
    let mut request = [0u8; BODY];
    request[0..4].copy_from_slice(&(BODY as u32).to_ne_bytes());
    request[4..6].copy_from_slice(&RTM_GETLINK.to_ne_bytes());
    request[6..8].copy_from_slice(&NLM_F_REQUEST.to_ne_bytes());
    request[HEADER + 4..HEADER + 8].copy_from_slice(&interface.to_ne_bytes());
    send(socket.as_raw_fd(), &request, MsgFlags::empty())?;
    // The kernel's own limit of a link's message is below this.
    let mut reply = vec![0u8; 64 << 10];
    let length = recv(socket.as_raw_fd(), &mut reply, MsgFlags::empty())?;
    Ok(program_id(&reply[..length]).map(|id| Attached {
        id,
        name: program_name(id),
    }))
}

fn program_name(id: u32) -> Option<String> {
    let program = loaded_programs()
        .filter_map(Result::ok)
        .find(|program| program.id() == id)?;
    program
        .name_as_str()
        .filter(|name| !name.is_empty())
        .map(str::to_owned)
}

fn program_id(message: &[u8]) -> Option<u32> {
    if message.get(4..6)? != RTM_NEWLINK.to_ne_bytes() {
        return None;
    }
    let (_, xdp) = attributes(message.get(BODY..)?).find(|(kind, _)| *kind == IFLA_XDP)?;
    let (_, id) = attributes(xdp).find(|(kind, _)| PROGRAM_IDS.contains(kind))?;
    Some(u32::from_ne_bytes(id.try_into().ok()?))
}

/// Type and value of each attribute.
fn attributes(mut octets: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let word = |at: usize| Some(u16::from_ne_bytes(octets.get(at..at + 2)?.try_into().ok()?));
        let (length, kind) = (word(0)? as usize, word(2)?);
        let value = octets.get(4..length)?;
        octets = octets.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind & NLA_TYPE_MASK, value))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
        let mut octets = [(4 + value.len() as u16).to_ne_bytes(), kind.to_ne_bytes()].concat();
        octets.extend(value);
        octets.resize(octets.len().next_multiple_of(4), 0);
        octets
    }

    fn message(attributes: &[u8]) -> Vec<u8> {
        let mut message = vec![0; BODY];
        message[4..6].copy_from_slice(&RTM_NEWLINK.to_ne_bytes());
        message.extend(attributes);
        message
    }

    #[test]
    fn the_id_is_found_behind_other_attributes() {
        let xdp = [attribute(2, &[1]), attribute(4, &77u32.to_ne_bytes())].concat();
        let all = [attribute(3, b"eth0\0"), attribute(IFLA_XDP | 1 << 15, &xdp)].concat();
        assert_eq!(program_id(&message(&all)), Some(77));
    }

    #[test]
    fn no_program_no_id() {
        assert_eq!(
            program_id(&message(&attribute(IFLA_XDP, &attribute(2, &[0])))),
            None
        );
        assert_eq!(program_id(&message(&[])), None);
        assert_eq!(
            program_id(&message(&[2, 0, 43, 0, 9])),
            None,
            "a length below its own header"
        );
        assert_eq!(program_id(&[]), None);
    }
}
