//! ARP (RFC 826) and Neighbour Discovery of IPv6 (RFC 4861), by which hosts find each other.

use super::{Octets, Part, ethernet};

/// EtherType of ARP.
const ARP: u16 = 0x0806;
/// ICMPv6, and its messages of Neighbour Discovery.
const ICMPV6: u8 = 58;
const SOLICITATION_OF_ROUTERS: u8 = 133;
const REDIRECT: u8 = 137;
/// Offsets in an IPv6 packet.
const NEXT_HEADER: usize = 6;
const MESSAGE: usize = 40;

/// Returns true for ARP, and for Neighbour Discovery.
#[inline(always)]
pub fn is_message(frame: &(impl Octets + ?Sized)) -> bool {
    let Ok(header) = ethernet::parse(frame) else {
        return false;
    };
    if header.ethertype != ethernet::IPV6 {
        return header.ethertype == ARP;
    }
    // One look at the end: of two, the compiler makes a number from a pointer, which Linux 6.12 and
    // before refuse.
    let Some(ip) = frame.part::<{ MESSAGE + 1 }>(header.payload) else {
        return false;
    };
    ip.octet::<NEXT_HEADER>() == ICMPV6
        && matches!(ip.octet::<MESSAGE>(), SOLICITATION_OF_ROUTERS..=REDIRECT)
}
