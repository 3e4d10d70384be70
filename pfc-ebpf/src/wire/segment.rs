//! Headers that stand before every segment of what the stack holds as one packet.
//!
//! Segmentation cuts the payload of the innermost TCP or UDP, and puts all headers up to there
//! before each piece, those of tunnels too (Linux, `skb_segment`).

use super::{ethernet, ip, udp};

/// Headers that are followed: two tunnels in each other, each with tags and extension headers.
pub const MAX_HEADERS: usize = 20;
/// Octets that are read at a time.
pub const READ: usize = 8;

/// Hop-by-hop options (RFC 8200, 4.3); a protocol number, as are those below.
pub const HOP_BY_HOP: u8 = 0;
/// IPv4 in IP (RFC 2003).
const IPV4: u8 = 4;
/// IPv6 in IP (RFC 2473).
const IPV6: u8 = 41;
/// Routing header, that of SRv6 too (RFC 8754).
pub const ROUTING: u8 = 43;
/// Fragment header (RFC 8200, 4.5).
pub const FRAGMENT: u8 = 44;
/// GRE (RFC 2784).
pub const GRE: u8 = 47;
/// Encapsulating security payload (RFC 4303).
const ESP: u8 = 50;
/// Authentication header (RFC 4302).
const AUTHENTICATION: u8 = 51;
/// Destination options (RFC 8200, 4.6).
pub const DESTINATION_OPTIONS: u8 = 60;
/// Ethernet in IP (RFC 3378).
const ETHER_IP: u8 = 97;
/// Compressed payload (RFC 3173).
const COMPRESSED: u8 = 108;
/// L2TP, version 3 (RFC 3931, 4.1.1).
const L2TP: u8 = 115;
/// Mobility header (RFC 6275, 6.1).
const MOBILITY: u8 = 135;
/// MPLS in IP (RFC 4023).
const MPLS: u8 = 137;
/// Host identity protocol (RFC 7401).
const HIP: u8 = 139;
/// Shim6 (RFC 5533).
const SHIM6: u8 = 140;
/// Ethernet in SRv6 (RFC 8986, 4.9).
const ETHERNET: u8 = 143;
/// Experiments (RFC 3692).
const EXPERIMENT: u8 = 253;
const OTHER_EXPERIMENT: u8 = 254;

/// Returns true for the extension headers of IPv6 that IANA lists, but for the fragment header.
#[inline(always)]
pub const fn is_extension(protocol: u8) -> bool {
    matches!(
        protocol,
        HOP_BY_HOP
            | ROUTING
            | ESP
            | AUTHENTICATION
            | DESTINATION_OPTIONS
            | MOBILITY
            | HIP
            | SHIM6
            | EXPERIMENT
            | OTHER_EXPERIMENT
    )
}

/// Returns true for a protocol number behind which another frame or packet stands.
#[inline(always)]
pub const fn is_encapsulation(protocol: u8) -> bool {
    matches!(
        protocol,
        IPV4 | IPV6 | GRE | ETHER_IP | COMPRESSED | L2TP | MPLS | ETHERNET
    )
}

/// Octets of an extension header with that many times eight behind its first eight (RFC 8200, 4).
#[inline(always)]
pub const fn extension(eights: u8) -> usize {
    (eights as usize + 1) * 8
}

/// UDP ports of VXLAN: that of RFC 7348, and the one that Linux had before.
const VXLAN: [u16; 2] = [4789, 8472];
/// UDP port of GENEVE (RFC 8926).
const GENEVE: u16 = 6081;
/// UDP ports of tunnels whose headers are not read here: GTP-U, ESP, GRE, VXLAN-GPE, GUE, MPLS.
const OTHER_TUNNELS: [u16; 6] = [2152, 4500, 4754, 4790, 6080, 6635];

/// Returns true for a UDP port behind which another frame or packet stands.
#[inline(always)]
pub const fn is_tunnel(port: u16) -> bool {
    // Most ports are below the lowest or above the highest: two comparisons tell.
    port >= OTHER_TUNNELS[0]
        && port <= VXLAN[1]
        && (port == VXLAN[0] || port == VXLAN[1] || port == GENEVE || is_other_tunnel(port))
}

#[inline(always)]
const fn is_other_tunnel(port: u16) -> bool {
    let [gtp_u, esp, gre, vxlan_gpe, gue, mpls] = OTHER_TUNNELS;
    port == gtp_u || port == esp || port == gre || port == vxlan_gpe || port == gue || port == mpls
}

/// A way through the headers of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Walk {
    /// Offset of the next header.
    at: u64,
    /// Kind of the next header: a protocol number of IP, or one of those below.
    what: u64,
    /// [`Headers::removed`].
    removed: u64,
}

/// Kind of the header that the EtherType in the lower 16 bits names.
const ETHERTYPE: u32 = 1 << 16;
/// Headers that no number stands for.
const AT_FRAME: u32 = 1 << 17;
const AT_VXLAN: u32 = AT_FRAME + 1;
const AT_GENEVE: u32 = AT_FRAME + 2;
/// Headers by their number.
const AT_IPV4: u32 = ETHERTYPE | ethernet::IPV4 as u32;
const AT_IPV6: u32 = ETHERTYPE | ethernet::IPV6 as u32;
const AT_C_TAG: u32 = ETHERTYPE | ethernet::C_TAG as u32;
const AT_S_TAG: u32 = ETHERTYPE | ethernet::S_TAG as u32;
const AT_TCP: u32 = ip::TCP as u32;
const AT_UDP: u32 = ip::UDP as u32;
const AT_HOP_BY_HOP: u32 = HOP_BY_HOP as u32;
const AT_ROUTING: u32 = ROUTING as u32;
const AT_OPTIONS: u32 = DESTINATION_OPTIONS as u32;
const AT_GRE: u32 = GRE as u32;
/// EtherType of a frame in GRE (RFC 1701) or GENEVE.
const BRIDGED: u16 = 0x6558;

/// Octets of the headers of VXLAN and, without options, of GENEVE.
const TUNNEL: usize = 8;

impl Walk {
    /// Walk that is at the first octet of a frame.
    pub const START: Self = Self {
        at: 0,
        what: AT_FRAME as u64,
        removed: 0,
    };
}

/// Octets of headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Headers {
    /// Octets of headers before each segment.
    pub repeated: usize,
    /// Octets of headers that stand in the packet and leave with no segment: the hop-by-hop header
    /// of BIG TCP over IPv6, which the stack removes (`ipv6_hopopt_jumbo_remove`, Linux 5.19).
    pub removed: usize,
}

/// Next step after a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Another header.
    On(Walk),
    /// The payload that is cut.
    End(Headers),
    /// Something that is not known here, or the frame ends.
    Lost,
}

/// Reads the headers of a whole frame. `read(at)` returns [`READ`] octets from `at`, or `None`
/// where the frame ends before. `None`: the innermost payload is of neither TCP nor UDP, or behind
/// something that is not known here.
pub fn headers(read: impl Fn(usize) -> Option<[u8; READ]>) -> Option<Headers> {
    let mut walk = Walk::START;
    for _ in 0..MAX_HEADERS {
        match step(walk, &read) {
            Step::On(next) => walk = next,
            Step::End(headers) => return Some(headers),
            Step::Lost => return None,
        }
    }
    None
}

/// Reads one header.
#[inline(always)]
pub fn step(walk: Walk, read: impl Fn(usize) -> Option<[u8; READ]>) -> Step {
    let (at, removed) = (walk.at as usize, walk.removed as usize);
    let what = kind(walk.what as u32);
    let on = |length: usize, what: u32| {
        Step::On(Walk {
            at: (at + length) as u64,
            what: what as u64,
            removed: removed as u64,
        })
    };
    let end = |length: usize| {
        Step::End(Headers {
            repeated: at + length - removed,
            removed,
        })
    };
    // Where in the header the fields stand that tell what follows.
    let place = match what {
        AT_FRAME => 6,
        AT_IPV4 | AT_TCP => 8,
        _ => 0,
    };
    let Some(part) = read(at + place) else {
        return Step::Lost;
    };
    let word = u16::from_be_bytes([part[2], part[3]]);
    let ethertype = |number: u16| ETHERTYPE | number as u32;
    match what {
        AT_FRAME => on(
            ethernet::LEN,
            ethertype(u16::from_be_bytes([part[6], part[7]])),
        ),
        AT_C_TAG | AT_S_TAG => on(ethernet::TAG_LEN, ethertype(word)),
        AT_IPV4 => match read(at) {
            Some([first @ 0x45..=0x4f, ..]) => on((first & 15) as usize * 4, part[1] as u32),
            _ => Step::Lost,
        },
        AT_IPV6 => on(ip::IPV6_LEN, part[6] as u32),
        AT_HOP_BY_HOP if is_jumbo(&part) => Step::On(Walk {
            at: (at + JUMBO) as u64,
            what: part[0] as u64,
            removed: (removed + JUMBO) as u64,
        }),
        AT_HOP_BY_HOP | AT_ROUTING | AT_OPTIONS => on(extension(part[1]), part[0] as u32),
        AT_GRE if part[0] & !GRE_KNOWN == 0 && part[1] & 7 == 0 => {
            on(gre(part[0]), ethertype(word))
        }
        AT_UDP if word == VXLAN[0] || word == VXLAN[1] => on(udp::LEN, AT_VXLAN),
        AT_UDP if word == GENEVE => on(udp::LEN, AT_GENEVE),
        AT_UDP if !is_other_tunnel(word) => end(udp::LEN),
        // A frame follows: the VNI is valid, and there is no Generic Protocol Extension.
        AT_VXLAN if part[0] & 0x0c == 0x08 => on(TUNNEL, AT_FRAME),
        AT_GENEVE if part[0] >> 6 == 0 => {
            on(TUNNEL + (part[0] & 0x3f) as usize * 4, ethertype(word))
        }
        AT_TCP if part[4] >> 4 >= 5 => end((part[4] >> 4) as usize * 4),
        _ => Step::Lost,
    }
}

/// Returns one name for what several numbers stand for.
#[inline(always)]
const fn kind(what: u32) -> u32 {
    const PROTOCOL_IPV4: u32 = IPV4 as u32;
    const PROTOCOL_IPV6: u32 = IPV6 as u32;
    const PROTOCOL_ETHERNET: u32 = ETHERNET as u32;
    const TYPE_BRIDGED: u32 = ETHERTYPE | BRIDGED as u32;
    match what {
        PROTOCOL_IPV4 => AT_IPV4,
        PROTOCOL_IPV6 => AT_IPV6,
        PROTOCOL_ETHERNET | TYPE_BRIDGED => AT_FRAME,
        other => other,
    }
}

/// Octets of a hop-by-hop header that has the jumbo payload option alone (RFC 2675, 2).
const JUMBO: usize = 8;

/// Returns true for that header before TCP.
#[inline(always)]
pub const fn is_jumbo(header: &[u8; READ]) -> bool {
    header[0] == ip::TCP && header[1] == 0 && header[2] == 0xc2 && header[3] == 4
}

/// Flags of GRE that say what the header has (RFC 2784, 2.1; RFC 2890, 2). All others are 0.
const GRE_CHECKSUM: u8 = 0x80;
const GRE_KEY: u8 = 0x20;
const GRE_SEQUENCE: u8 = 0x10;
const GRE_KNOWN: u8 = GRE_CHECKSUM | GRE_KEY | GRE_SEQUENCE;

/// Octets of a GRE header with these flags.
#[inline(always)]
const fn gre(flags: u8) -> usize {
    4 + 4
        * ((flags & GRE_CHECKSUM != 0) as usize
            + (flags & GRE_KEY != 0) as usize
            + (flags & GRE_SEQUENCE != 0) as usize)
}

#[cfg(test)]
mod tests;
