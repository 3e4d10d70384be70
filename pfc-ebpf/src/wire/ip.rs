//! IPv4 with options (RFC 791) and the base header of IPv6 (RFC 8200).

use super::{Malformed, Octets, Part, is_right};

/// Protocol number of TCP.
pub const TCP: u8 = 6;
/// Protocol number of UDP.
pub const UDP: u8 = 17;
/// Protocol number of ICMPv6.
pub const ICMPV6: u8 = 58;
/// Length of an IPv4 header without options.
pub const IPV4_LEN: usize = 20;
/// Length of the IPv6 base header.
pub const IPV6_LEN: usize = 40;
/// More-fragments bit and fragment offset, beside the reserved and the don't-fragment bits.
const FRAGMENT: u16 = 0x3fff;

/// Part of the IP header that a checksum of the payload covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Addresses {
    /// Offset of source and destination, one after the other.
    pub at: usize,
    /// Octets of both: 8 or 32.
    pub length: usize,
}

/// A whole IP header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// DSCP, 0 to 63.
    pub dscp: u8,
    /// Protocol of the payload; for IPv6 the first next header, which may be an extension header.
    pub protocol: u8,
    /// A fragment: its payload cannot be read by itself.
    pub fragment: bool,
    /// Source and destination address.
    pub addresses: Addresses,
    /// Offset of the payload.
    pub payload: usize,
    /// Octets of payload, all of them in the frame.
    pub length: usize,
}

/// First octet of an IPv4 header without options.
const PLAIN: u8 = 0x45;

/// Reads the IPv4 header at `at`.
#[inline(always)]
pub fn parse_v4(frame: &(impl Octets + ?Sized), at: usize) -> Result<Header, Malformed> {
    let Some(fixed) = frame.part::<IPV4_LEN>(at) else {
        return Err(short(frame, at));
    };
    let first = fixed.octet::<0>();
    if first == PLAIN {
        return without_options(frame, fixed, at);
    }
    if first >> 4 != 4 {
        return Err(Malformed::IpVersion);
    }
    let header = (first & 15) as usize * 4;
    if header < IPV4_LEN {
        return Err(Malformed::Ipv4Truncated);
    }
    if frame.sum(at, header).ok_or(Malformed::Ipv4Truncated)? != 0xffff {
        return Err(Malformed::Ipv4Checksum);
    }
    read_v4(frame, fixed, at, header)
}

/// Reads the IPv4 header `fixed`, which stands at `at`, if it has no options; `None`: it has some,
/// or is none.
#[inline(always)]
pub fn parse_plain_v4(
    frame: &(impl Octets + ?Sized),
    fixed: impl Part,
    at: usize,
) -> Option<Result<Header, Malformed>> {
    if fixed.octet::<0>() == PLAIN {
        Some(without_options(frame, fixed, at))
    } else {
        None
    }
}

#[inline(always)]
fn without_options(
    frame: &(impl Octets + ?Sized),
    fixed: impl Part,
    at: usize,
) -> Result<Header, Malformed> {
    let (a, b) = (
        fixed.summand::<0>() + fixed.summand::<4>(),
        fixed.summand::<8>() + fixed.summand::<12>(),
    );
    if !is_right(a + b + fixed.summand::<16>()) {
        return Err(Malformed::Ipv4Checksum);
    }
    read_v4(frame, fixed, at, IPV4_LEN)
}

/// Reads what is behind the checks.
#[inline(always)]
fn read_v4(
    frame: &(impl Octets + ?Sized),
    fixed: impl Part,
    at: usize,
    header: usize,
) -> Result<Header, Malformed> {
    let total = match fixed.word::<2>() {
        0 if frame.is_merged() => frame.length() - at,
        total => total as usize,
    };
    if total < header || at + total > frame.length() {
        return Err(Malformed::Ipv4Truncated);
    }
    Ok(Header {
        dscp: fixed.octet::<1>() >> 2,
        protocol: fixed.octet::<9>(),
        fragment: fixed.word::<6>() & FRAGMENT != 0,
        addresses: Addresses {
            at: at + 12,
            length: 8,
        },
        payload: at + header,
        length: total - header,
    })
}

/// The defect of an IPv4 header that is cut short.
#[inline(always)]
fn short(frame: &(impl Octets + ?Sized), at: usize) -> Malformed {
    match frame.part::<2>(at) {
        Some(begin) if begin.octet::<0>() >> 4 != 4 => Malformed::IpVersion,
        _ => Malformed::Ipv4Truncated,
    }
}

/// Reads the IPv6 header at `at`.
#[inline(always)]
pub fn parse_v6(frame: &(impl Octets + ?Sized), at: usize) -> Result<Header, Malformed> {
    let Some(begin) = frame.part::<8>(at) else {
        return Err(match frame.word(at) {
            Some(first) if first >> 12 != 6 => Malformed::IpVersion,
            _ => Malformed::Ipv6Truncated,
        });
    };
    let first = begin.word::<0>();
    if first >> 12 != 6 {
        return Err(Malformed::IpVersion);
    }
    let length = begin.word::<4>() as usize;
    if at + IPV6_LEN + length > frame.length() {
        return Err(Malformed::Ipv6Truncated);
    }
    Ok(Header {
        dscp: (first >> 6) as u8 & 63,
        protocol: begin.octet::<6>(),
        fragment: false,
        addresses: Addresses {
            at: at + 8,
            length: 32,
        },
        payload: at + IPV6_LEN,
        length,
    })
}

/// Protocol of what the IP packet behind an Ethernet header carries, and where that begins; `None`
/// where it is none. Nothing is checked.
#[inline(always)]
pub fn next(
    frame: &(impl Octets + ?Sized),
    ethernet: &super::ethernet::Header,
) -> Option<(u8, usize)> {
    let at = ethernet.payload;
    match ethernet.ethertype {
        super::ethernet::IPV4 => {
            let fixed = frame.part::<IPV4_LEN>(at)?;
            Some((
                fixed.octet::<9>(),
                at + (fixed.octet::<0>() & 15) as usize * 4,
            ))
        }
        super::ethernet::IPV6 => Some((frame.part::<8>(at)?.octet::<6>(), at + IPV6_LEN)),
        _ => None,
    }
}

/// Where the IP packet behind an Ethernet header ends by its own length; `None` where it is none.
/// Nothing is checked.
#[inline(always)]
pub fn end(frame: &(impl Octets + ?Sized), ethernet: &super::ethernet::Header) -> Option<usize> {
    let at = ethernet.payload;
    match ethernet.ethertype {
        super::ethernet::IPV4 => Some(at + frame.word(at + 2)? as usize),
        super::ethernet::IPV6 => Some(at + IPV6_LEN + frame.word(at + 4)? as usize),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // A widely published checksum example, with its checksum 0xb861.
    const V4: [u8; 20] = [
        0x45, 0x00, 0x00, 0x73, 0x00, 0x00, 0x40, 0x00, 0x40, 0x11, 0xb8, 0x61, 0xc0, 0xa8, 0x00,
        0x01, 0xc0, 0xa8, 0x00, 0xc7,
    ];

    fn v4() -> Vec<u8> {
        let mut packet = V4.to_vec();
        packet.resize(0x73, 0);
        packet
    }

    fn with_checksum(mut packet: Vec<u8>) -> Vec<u8> {
        let header = (packet[0] & 15) as usize * 4;
        packet[10..12].fill(0);
        let sum = packet[..].sum(0, header).unwrap();
        packet[10..12].copy_from_slice(&(!sum).to_be_bytes());
        packet
    }

    #[test]
    fn ipv4_is_read() {
        let header = parse_v4(&*v4(), 0).unwrap();
        assert_eq!(header.dscp, 0);
        assert_eq!(header.protocol, UDP);
        assert!(!header.fragment, "only don't-fragment is set");
        assert_eq!((header.payload, header.length), (20, 0x73 - 20));
    }

    #[test]
    fn options_move_the_payload() {
        let mut packet = v4();
        packet[0] = 0x4f;
        let header = parse_v4(&*with_checksum(packet), 0).unwrap();
        assert_eq!((header.payload, header.length), (60, 0x73 - 60));
    }

    #[test]
    fn ecn_is_no_part_of_the_dscp() {
        let mut packet = v4();
        packet[1] = 0xb9;
        assert_eq!(parse_v4(&*with_checksum(packet), 0).unwrap().dscp, 46);
    }

    #[test]
    fn fragments_are_told() {
        for flags in [[0x20, 0x00], [0x00, 0x01], [0x1f, 0xff]] {
            let mut packet = v4();
            packet[6..8].copy_from_slice(&flags);
            assert!(parse_v4(&*with_checksum(packet), 0).unwrap().fragment);
        }
    }

    #[test]
    fn each_flipped_bit_of_an_ipv4_header_is_noticed() {
        for bit in 0..160 {
            let mut packet = v4();
            packet[bit / 8] ^= 0x80 >> (bit % 8);
            assert!(parse_v4(&*packet, 0).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn ipv4_lengths_have_to_fit() {
        assert_eq!(parse_v4(&v4()[..0x72], 0), Err(Malformed::Ipv4Truncated));
        assert_eq!(parse_v4(&v4()[..19], 0), Err(Malformed::Ipv4Truncated));
        assert_eq!(parse_v4(&v4()[..1], 0), Err(Malformed::Ipv4Truncated));
        let mut packet = v4();
        packet[2..4].copy_from_slice(&[0, 19]);
        assert_eq!(
            parse_v4(&*with_checksum(packet), 0),
            Err(Malformed::Ipv4Truncated)
        );
        let mut packet = v4();
        packet[0] = 0x44;
        assert_eq!(parse_v4(&*packet, 0), Err(Malformed::Ipv4Truncated));
    }

    #[test]
    fn ipv6_is_read() {
        let mut packet = vec![0u8; 48];
        packet[..8].copy_from_slice(&[0x6b, 0x91, 0x23, 0x45, 0, 8, UDP, 64]);
        let header = parse_v6(&*packet, 0).unwrap();
        assert_eq!(
            (header.dscp, header.protocol, header.payload, header.length),
            (46, UDP, 40, 8)
        );
        assert_eq!(parse_v6(&packet[..47], 0), Err(Malformed::Ipv6Truncated));
        assert_eq!(parse_v6(&packet[..7], 0), Err(Malformed::Ipv6Truncated));
        packet[0] = 0x4b;
        assert_eq!(parse_v6(&*packet, 0), Err(Malformed::IpVersion));
    }
}
