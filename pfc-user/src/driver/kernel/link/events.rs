//! Events of links: the kernel announces each change.

use std::io;

use futures_util::stream::{Stream, StreamExt};
use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::{Socket, SocketAddr};
use rtnetlink::packet_core::{NetlinkMessage, NetlinkPayload};
use rtnetlink::packet_route::link::{LinkAttribute, LinkMessage};
use rtnetlink::packet_route::{AddressFamily, RouteNetlinkMessage};
use rtnetlink::{MulticastGroup, new_multicast_connection};

/// Something happened to a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkEvent {
    /// Its state, which may be as before.
    State {
        /// Interface.
        index: u32,
        /// Its name now.
        name: String,
        /// There is a link to the other end.
        carrier: bool,
        /// Largest layer-3 packet in octets.
        mtu: u32,
    },
    /// The interface left this namespace: it was removed, or moved to another one.
    Gone {
        /// Interface.
        index: u32,
    },
    /// The kernel had more to tell than the socket held: look at every link again.
    Missed,
}

/// The events of the calling thread's network namespace from now on. To be called in a tokio
/// runtime, which serves the socket.
pub fn events() -> io::Result<impl Stream<Item = LinkEvent>> {
    let (connection, _, messages) = new_multicast_connection(&[MulticastGroup::Link])?;
    tokio::spawn(connection);
    // A bridge tells in the same words, of a family of its own, which ports it has.
    let of_link = |link: &LinkMessage| link.header.interface_family == AddressFamily::Unspec;
    let event = move |payload| match payload {
        NetlinkPayload::InnerMessage(RouteNetlinkMessage::NewLink(link)) if of_link(&link) => {
            state(&link)
        }
        NetlinkPayload::InnerMessage(RouteNetlinkMessage::DelLink(link)) if of_link(&link) => {
            Some(LinkEvent::Gone {
                index: link.header.index,
            })
        }
        NetlinkPayload::Overrun(_) => Some(LinkEvent::Missed),
        _ => None,
    };
    Ok(messages.filter_map(move |(message, _)| std::future::ready(event(message.payload))))
}

/// Announcements of the kernel about the links of a network namespace, from this value's making on.
/// The kernel keeps them until they are read: no change is missed for having been undone.
pub struct Announced(Socket);

impl Announced {
    /// Begins in the calling thread's network namespace.
    pub fn begin() -> io::Result<Self> {
        let mut socket = Socket::new(NETLINK_ROUTE)?;
        socket.bind(&SocketAddr::new(0, 1 << (MulticastGroup::Link as u32 - 1)))?;
        socket.set_non_blocking(true)?;
        Ok(Self(socket))
    }

    /// The events so far that were not taken yet.
    pub fn take(&self) -> io::Result<Vec<LinkEvent>> {
        let mut events = Vec::new();
        loop {
            match self.0.recv_from_full() {
                Ok((octets, _)) => events.extend(states(&octets)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(events),
                Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => {
                    events.push(LinkEvent::Missed);
                }
                Err(error) => return Err(error),
            }
        }
    }
}

/// The states in the messages of one datagram.
fn states(mut octets: &[u8]) -> Vec<LinkEvent> {
    let mut states = Vec::new();
    while let Ok(message) = NetlinkMessage::<RouteNetlinkMessage>::deserialize(octets) {
        if let NetlinkPayload::InnerMessage(RouteNetlinkMessage::NewLink(link)) = &message.payload {
            states.extend(state(link));
        }
        let length = (message.header.length as usize).next_multiple_of(4);
        match octets.get(length..) {
            Some(rest) if length > 0 => octets = rest,
            _ => break,
        }
    }
    states
}

fn state(link: &LinkMessage) -> Option<LinkEvent> {
    Some(LinkEvent::State {
        index: link.header.index,
        name: super::name_in(link)?.to_owned(),
        carrier: *attribute!(link.attributes, LinkAttribute::Carrier)? != 0,
        mtu: *attribute!(link.attributes, LinkAttribute::Mtu)?,
    })
}
