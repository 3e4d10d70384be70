//! One question, one answer: netlink requests beyond rtnetlink's, from the calling thread's network
//! namespace.

use std::fmt::Debug;
use std::io;

use netlink_packet_core::{
    DefaultNla, Emitable, NLM_F_REQUEST, NetlinkDeserializable, NetlinkMessage, NetlinkPayload,
    NetlinkSerializable, NlasIterator,
};
use netlink_sys::{Socket, SocketAddr};

/// Octets before the value of an attribute.
const ATTRIBUTE_HEADER: usize = 4;

/// Sends `request` and returns the kernel's answer; an error as the kernel gives it.
pub(super) fn ask<M: NetlinkSerializable + NetlinkDeserializable + Debug>(
    protocol: isize,
    request: M,
) -> io::Result<M> {
    let mut socket = Socket::new(protocol)?;
    socket.bind_auto()?;
    socket.connect(&SocketAddr::new(0, 0))?;
    let mut message =
        NetlinkMessage::new(Default::default(), NetlinkPayload::InnerMessage(request));
    message.header.flags = NLM_F_REQUEST;
    message.finalize();
    let mut octets = vec![0; message.buffer_len()];
    message.serialize(&mut octets);
    socket.send(&octets, 0)?;
    let (reply, _) = socket.recv_from_full()?;
    match NetlinkMessage::<M>::deserialize(&reply)
        .map_err(io::Error::other)?
        .payload
    {
        NetlinkPayload::InnerMessage(answer) => Ok(answer),
        NetlinkPayload::Error(error) => Err(error.to_io()),
        other => Err(io::Error::other(format!(
            "netlink: expected an answer, found {other:?}"
        ))),
    }
}

/// An attribute with that value, as octets.
pub(super) fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let attribute = DefaultNla::new(kind, value.to_vec());
    let mut octets = vec![0; attribute.buffer_len()];
    attribute.emit(&mut octets);
    octets
}

/// The values of the attributes of that kind; what cannot be read ends it.
pub(super) fn all(attributes: &[u8], kind: u16) -> impl Iterator<Item = &[u8]> {
    let of_kind = NlasIterator::new(attributes)
        .flatten()
        .filter(move |attribute| attribute.kind() == kind);
    of_kind.filter_map(|attribute| {
        attribute
            .into_inner()
            .get(ATTRIBUTE_HEADER..usize::from(attribute.length()))
    })
}

/// The value of the first attribute of that kind.
pub(super) fn find(attributes: &[u8], kind: u16) -> Option<&[u8]> {
    all(attributes, kind).next()
}

/// The number in the first attribute of that kind.
pub(super) fn find_u64(attributes: &[u8], kind: u16) -> Option<u64> {
    all(attributes, kind).find_map(|value| Some(u64::from_ne_bytes(value.try_into().ok()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_found_whatever_is_around_them() {
        let all = [
            attribute(1, b"eth0\0"),
            attribute(7 | 0x8000, &attribute(2, &9u64.to_ne_bytes())),
            attribute(3, &[5]),
        ]
        .concat();
        assert_eq!(find(&all, 3), Some(&[5][..]));
        assert_eq!(find_u64(find(&all, 7).unwrap(), 2), Some(9));
        assert_eq!(find(&all, 2), None);
        assert_eq!(find_u64(&all, 3), None, "another length");
        // A length beyond the end, and one below its own header.
        for broken in [&[9, 0, 3, 0, 1][..], &[2, 0, 3, 0], &[1]] {
            assert_eq!(find(broken, 3), None);
        }
    }
}
