//! Events of links: the kernel announces each change.

use std::io;

use futures_util::stream::{Stream, StreamExt};
use rtnetlink::packet_core::NetlinkPayload;
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

fn state(link: &LinkMessage) -> Option<LinkEvent> {
    let carrier = link
        .attributes
        .iter()
        .find_map(|attribute| match attribute {
            LinkAttribute::Carrier(carrier) => Some(*carrier != 0),
            _ => None,
        })?;
    let mtu = link
        .attributes
        .iter()
        .find_map(|attribute| match attribute {
            LinkAttribute::Mtu(mtu) => Some(*mtu),
            _ => None,
        })?;
    Some(LinkEvent::State {
        index: link.header.index,
        name: super::name_in(link)?.to_owned(),
        carrier,
        mtu,
    })
}
