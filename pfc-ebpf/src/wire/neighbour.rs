//! ARP (RFC 826) and Neighbour Discovery of IPv6 (RFC 4861), by which hosts find each other.

use super::{Octets, Part, ethernet, ip};

/// The first and the last of Neighbour Discovery's messages.
const SOLICITATION_OF_ROUTERS: u8 = 133;
const REDIRECT: u8 = 137;
/// Offset of the next header in an IPv6 packet.
const NEXT_HEADER: usize = 6;

/// Returns true for ARP, and for Neighbour Discovery.
#[inline(always)]
pub fn is_message(frame: &(impl Octets + ?Sized)) -> bool {
    let Ok(header) = ethernet::parse(frame) else {
        return false;
    };
    if header.ethertype != ethernet::IPV6 {
        return header.ethertype == ethernet::ARP;
    }
    // One look at the end: of two, the compiler makes a number from a pointer, which Linux 6.12 and
    // before refuse.
    let Some(packet) = frame.part::<{ ip::IPV6_LEN + 1 }>(header.payload) else {
        return false;
    };
    packet.octet::<NEXT_HEADER>() == ip::ICMPV6
        && matches!(
            packet.octet::<{ ip::IPV6_LEN }>(),
            SOLICITATION_OF_ROUTERS..=REDIRECT
        )
}
