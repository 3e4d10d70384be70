//! TCP segments in tunnels, each in the frame that carries it on the wire.

use crate::watch::lab::MACS;

/// Octets of TCP payload of a segment.
pub const PAYLOAD: u32 = 900;
/// DSCP of the outermost IP header.
pub const DSCP: u8 = 26;

const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
const BRIDGED: u16 = 0x6558;
/// Source and destination.
const ADDRESSES: [u8; 8] = [192, 0, 2, 2, 192, 0, 2, 1];
const ADDRESSES_6: [u8; 32] = {
    let mut both = [0; 32];
    (both[0], both[1], both[15]) = (0xfd, 0, 2);
    (both[16], both[17], both[31]) = (0xfd, 0, 1);
    both
};

/// Makes the frame with the segment that begins at that sequence number.
type Make = fn(u32) -> Vec<u8>;

/// Frames by what is in what, from the outside in.
pub const TUNNELS: [(&str, Make); 11] = [
    ("TCP", |at| ethernet(IPV4, &v4(6, &tcp(&ADDRESSES, at)))),
    (EXTENDED, |at| {
        let options = extension(6, 1, &tcp(&ADDRESSES_6, at));
        ethernet(IPV6, &v6(60, &options))
    }),
    (VXLAN, |at| {
        let inner = ethernet(IPV4, &v4(6, &tcp(&ADDRESSES, at)));
        ethernet(IPV4, &v4(17, &vxlan(&inner)))
    }),
    (VXLAN, |at| {
        let inner = ethernet(IPV6, &v6(6, &tcp(&ADDRESSES_6, at)));
        ethernet(IPV4, &v4(17, &vxlan(&inner)))
    }),
    ("GRE", |at| {
        let inner = v4(6, &tcp(&ADDRESSES, at));
        ethernet(IPV4, &v4(47, &gre(false, IPV4, &inner)))
    }),
    ("GRE of frames with a key", |at| {
        let inner = ethernet(IPV4, &v4(6, &tcp(&ADDRESSES, at)));
        ethernet(IPV4, &v4(47, &gre(true, BRIDGED, &inner)))
    }),
    ("IPv4 in IPv4", |at| {
        ethernet(IPV4, &v4(4, &v4(6, &tcp(&ADDRESSES, at))))
    }),
    ("IPv6 in IPv4", |at| {
        ethernet(IPV4, &v4(41, &v6(6, &tcp(&ADDRESSES_6, at))))
    }),
    ("IPv4 in IPv6", |at| {
        ethernet(IPV6, &v6(4, &v4(6, &tcp(&ADDRESSES, at))))
    }),
    ("IPv6 in IPv6", |at| {
        ethernet(IPV6, &v6(41, &v6(6, &tcp(&ADDRESSES_6, at))))
    }),
    ("SRv6", |at| {
        let inner = v6(6, &tcp(&ADDRESSES_6, at));
        ethernet(IPV6, &v6(43, &extension(41, 2, &inner)))
    }),
];

/// TCP behind an extension header of IPv6.
pub const EXTENDED: &str = "destination options";
/// The kernel merges it where a device of its kind listens.
pub const VXLAN: &str = "VXLAN";

fn ethernet(ethertype: u16, payload: &[u8]) -> Vec<u8> {
    let [to, from] = [MACS[0], [2, 0, 0, 0, 1, 0]];
    [&to[..], &from, &ethertype.to_be_bytes(), payload].concat()
}

/// Behind a header that says "do not fragment".
fn v4(protocol: u8, payload: &[u8]) -> Vec<u8> {
    let [high, low] = (20 + payload.len() as u16).to_be_bytes();
    let mut header = [
        0x45,
        DSCP << 2,
        high,
        low,
        0,
        0,
        0x40,
        0,
        64,
        protocol,
        0,
        0,
    ];
    let sum = checksum(&[&header, &ADDRESSES]);
    header[10..].copy_from_slice(&sum);
    [&header[..], &ADDRESSES, payload].concat()
}

fn v6(next: u8, payload: &[u8]) -> Vec<u8> {
    let [high, low] = (payload.len() as u16).to_be_bytes();
    let header = [0x60 | DSCP >> 2, DSCP << 6, 0, 0, high, low, next, 64];
    [&header[..], &ADDRESSES_6, payload].concat()
}

/// Behind an extension header of padding, which is one to a routing header too: of an unknown type,
/// with no segment left.
fn extension(next: u8, eights: u8, payload: &[u8]) -> Vec<u8> {
    let padding = vec![0; 8 * usize::from(eights)];
    [&[next, eights, 1, 0, 0, 0, 0, 0], &*padding, payload].concat()
}

fn vxlan(frame: &[u8]) -> Vec<u8> {
    let [high, low] = (16 + frame.len() as u16).to_be_bytes();
    let udp = [0xc0, 0, 0x12, 0xb5, high, low, 0, 0];
    let vni = [8, 0, 0, 0, 0, 0, 7, 0];
    [&udp, &vni, frame].concat()
}

fn gre(has_key: bool, ethertype: u16, payload: &[u8]) -> Vec<u8> {
    let flags = [if has_key { 0x20 } else { 0 }, 0];
    let key: &[u8] = if has_key { &[0, 0, 0, 9] } else { &[] };
    [&flags, &ethertype.to_be_bytes()[..], key, payload].concat()
}

fn tcp(addresses: &[u8], sequence: u32) -> Vec<u8> {
    let mut segment = vec![0x10, 0, 0, 80];
    segment.extend(sequence.to_be_bytes());
    // Acknowledges octet 1, and nothing else is set; the window is open.
    segment.extend([0, 0, 0, 1, 0x50, 0x10, 0xff, 0xff, 0, 0, 0, 0]);
    segment.extend((0..PAYLOAD).map(|at| (sequence + at) as u8));
    let pseudo = [&[0, 6][..], &(segment.len() as u16).to_be_bytes()].concat();
    let sum = checksum(&[addresses, &pseudo, &segment]);
    segment[16..18].copy_from_slice(&sum);
    segment
}

/// Checksum of parts of an even length (RFC 1071).
fn checksum(parts: &[&[u8]]) -> [u8; 2] {
    let pairs = parts.iter().flat_map(|part| part.as_chunks().0);
    let mut sum: u32 = pairs.map(|pair| u32::from(u16::from_be_bytes(*pair))).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    (!(sum as u16)).to_be_bytes()
}
