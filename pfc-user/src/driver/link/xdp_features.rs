//! Whether an interface takes frames of XDP: asked by the generic-netlink family `netdev` (Linux 6.3).

use std::io;

use rtnetlink::packet_core::NlasIterator;
use rtnetlink::sys::protocols::NETLINK_GENERIC;
use rtnetlink::sys::{Socket, SocketAddr};

// `linux/netlink.h`, `linux/genetlink.h`, `linux/netdev.h`.
const NLM_F_REQUEST: u16 = 1;
const NLMSG_ERROR: u16 = 2;
const GENL_ID_CTRL: u16 = 16;
const CTRL_CMD_GETFAMILY: u8 = 3;
const CTRL_ATTR_FAMILY_ID: u16 = 1;
const CTRL_ATTR_FAMILY_NAME: u16 = 2;
const NETDEV_CMD_DEV_GET: u8 = 1;
const NETDEV_A_DEV_IFINDEX: u16 = 1;
const NETDEV_A_DEV_XDP_FEATURES: u16 = 3;
const NETDEV_XDP_ACT_NDO_XMIT: u64 = 1 << 2;
/// Octets of `nlmsghdr` and `genlmsghdr`.
const HEADER: usize = 20;

/// Whether the interface with that index in the calling thread's network namespace takes frames of XDP; `None` where the kernel
/// does not tell. A veth does where its other end has a program or GRO.
pub fn takes_frames(interface: u32) -> io::Result<Option<bool>> {
    let mut socket = Socket::new(NETLINK_GENERIC)?;
    socket.bind_auto()?;
    socket.connect(&SocketAddr::new(0, 0))?;
    let family = match ask(&socket, GENL_ID_CTRL, CTRL_CMD_GETFAMILY, CTRL_ATTR_FAMILY_NAME, b"netdev\0", CTRL_ATTR_FAMILY_ID) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        family => family?,
    };
    let Some(family) = family.and_then(|octets| Some(u16::from_ne_bytes(octets.try_into().ok()?))) else { return Ok(None) };
    let index = interface.to_ne_bytes();
    let features = ask(&socket, family, NETDEV_CMD_DEV_GET, NETDEV_A_DEV_IFINDEX, &index, NETDEV_A_DEV_XDP_FEATURES)?;
    let features = features.and_then(|octets| Some(u64::from_ne_bytes(octets.try_into().ok()?)));
    Ok(features.map(|features| features & NETDEV_XDP_ACT_NDO_XMIT != 0))
}

/// Sends a request with one attribute, and returns the attribute `wanted` of the answer.
fn ask(socket: &Socket, family: u16, command: u8, kind: u16, value: &[u8], wanted: u16) -> io::Result<Option<Vec<u8>>> {
    socket.send(&request(family, command, kind, value), 0)?;
    let (answer, _) = socket.recv_from_full()?;
    attribute(&answer, wanted)
}

fn request(family: u16, command: u8, kind: u16, value: &[u8]) -> Vec<u8> {
    let length = HEADER + 4 + value.len().next_multiple_of(4);
    let mut octets = Vec::with_capacity(length);
    octets.extend((length as u32).to_ne_bytes());
    octets.extend(family.to_ne_bytes());
    octets.extend(NLM_F_REQUEST.to_ne_bytes());
    // Sequence number and port, which the kernel fills in; command, version 1.
    octets.extend([0; 8]);
    octets.extend([command, 1, 0, 0]);
    octets.extend((4 + value.len() as u16).to_ne_bytes());
    octets.extend(kind.to_ne_bytes());
    octets.extend(value);
    octets.resize(length, 0);
    octets
}

fn attribute(answer: &[u8], wanted: u16) -> io::Result<Option<Vec<u8>>> {
    let strange = || io::Error::other("the kernel's answer cannot be read");
    let body = answer.get(HEADER - 4..).ok_or_else(strange)?;
    if answer[4..6] == NLMSG_ERROR.to_ne_bytes() {
        let error = i32::from_ne_bytes(body.get(..4).and_then(|octets| octets.try_into().ok()).ok_or_else(strange)?);
        return Err(io::Error::from_raw_os_error(-error));
    }
    for attribute in NlasIterator::new(body.get(4..).ok_or_else(strange)?) {
        let attribute = attribute.map_err(|_| strange())?;
        if attribute.kind() == wanted {
            return Ok(Some(attribute.value().to_vec()));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attribute_is_found_and_an_error_is_told() {
        let mut answer = request(30, 1, 1, &7u32.to_ne_bytes());
        answer.extend([12, 0, 3, 0, 4, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(attribute(&answer, 3).unwrap(), Some(4u64.to_ne_bytes().to_vec()));
        assert_eq!(attribute(&answer, 1).unwrap(), Some(7u32.to_ne_bytes().to_vec()));
        assert_eq!(attribute(&answer, 2).unwrap(), None);
        let mut error = request(NLMSG_ERROR, 0, 0, &[]);
        error[HEADER - 4..HEADER].copy_from_slice(&(-libc::ENOENT).to_ne_bytes());
        assert_eq!(attribute(&error, 3).unwrap_err().kind(), io::ErrorKind::NotFound);
        assert!(attribute(&[0; 3], 3).is_err());
    }

    #[test]
    fn loopback_takes_none_and_an_interface_that_is_not_there_is_an_error() {
        let loopback = nix::net::if_::if_nametoindex("lo").unwrap();
        assert_ne!(takes_frames(loopback).unwrap(), Some(true));
        assert!(matches!(takes_frames(1 << 30), Err(_) | Ok(None)));
    }
}
