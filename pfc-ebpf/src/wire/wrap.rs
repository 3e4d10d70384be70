//! Wrapping of a frame, by its outermost headers: an error that quotes it, or a tunnel. A stamp at
//! its end may be that of the frame within.

use super::{Octets, Part, ethernet, ip, segment};

/// No wrapping that is known.
pub const PLAIN: u64 = 1;
/// An error message of ICMP (RFC 792) or ICMPv6 (RFC 4443, 2.1), which quotes what it is about.
pub const QUOTED: u64 = 1 << 1;
/// GRE (RFC 2784), also that of a mirror (ERSPAN).
pub const GRE: u64 = 1 << 2;
/// IP in IP (RFC 2003, RFC 2473), and other protocols that [`segment::is_encapsulation`] knows.
pub const IP_IN_IP: u64 = 1 << 3;
/// A tunnel in UDP ([`segment::is_tunnel`]).
pub const UDP_TUNNEL: u64 = 1 << 4;
/// A fragment of IPv6. Its source made it (RFC 8200, 4.5), which is a tunnel's end: the sender of a
/// flow makes none.
pub const FRAGMENT: u64 = 1 << 5;
/// Anything.
pub const ALL: u64 = (1 << 6) - 1;

/// Headers that are looked at: four extension headers, which is as many as RFC 8200 puts in order
/// before a transport that can be read (4.1), and what stands behind them.
const MAX_HEADERS: usize = 5;

/// Protocol number of ICMP.
const ICMP: u8 = 1;
/// The first of ICMPv6's messages that is no error.
const INFORMATION: u8 = 128;

/// Returns the wrapping of the frame: one bit.
#[inline(always)]
pub fn wrap(frame: &(impl Octets + ?Sized)) -> u64 {
    let Ok(header) = ethernet::parse(frame) else {
        return PLAIN;
    };
    let Some((mut protocol, mut at)) = ip::next(frame, &header) else {
        return PLAIN;
    };
    for _ in 0..MAX_HEADERS {
        match protocol {
            segment::GRE => return GRE,
            segment::FRAGMENT => return FRAGMENT,
            _ if segment::is_encapsulation(protocol) => return IP_IN_IP,
            _ => {}
        }
        // One look at the end of the frame for all that is read of a header.
        let Some(begin) = frame.part::<4>(at) else {
            return PLAIN;
        };
        match protocol {
            segment::HOP_BY_HOP | segment::ROUTING | segment::DESTINATION_OPTIONS => {
                protocol = begin.octet::<0>();
                at += segment::extension(begin.octet::<1>());
            }
            // Unreachable, source quench, redirect, time exceeded, parameter problem.
            ICMP if matches!(begin.octet::<0>(), 3 | 4 | 5 | 11 | 12) => return QUOTED,
            ip::ICMPV6 if begin.octet::<0>() < INFORMATION => return QUOTED,
            ip::UDP if segment::is_tunnel(begin.word::<2>()) => return UDP_TUNNEL,
            _ => return PLAIN,
        }
    }
    PLAIN
}

#[cfg(test)]
mod tests {
    use super::*;

    const V4: [u8; 2] = [8, 0];
    const V6: [u8; 2] = [0x86, 0xdd];

    fn of(ethertype: [u8; 2], protocol: u8, payload: &[u8]) -> u64 {
        let mut frame = vec![0; 12];
        frame.extend([0x81, 0, 0, 5]);
        frame.extend(ethertype);
        let mut header = vec![0; if ethertype == V4 { 24 } else { 40 }];
        if ethertype == V4 {
            // With an option.
            (header[0], header[9]) = (0x46, protocol);
        } else {
            (header[0], header[6]) = (0x60, protocol);
        }
        frame.extend(header);
        frame.extend(payload);
        wrap(&frame[..])
    }

    /// An extension header before these octets.
    fn behind(next: u8, eights: u8, rest: &[u8]) -> Vec<u8> {
        let mut header = vec![0; 8 * (eights as usize + 1)];
        (header[0], header[1]) = (next, eights);
        [&header[..], rest].concat()
    }

    fn udp(port: u16) -> [u8; 4] {
        let [high, low] = port.to_be_bytes();
        [1, 2, high, low]
    }

    /// Protocol, its first octets, and the wrapping.
    fn wraps() -> Vec<(u8, [u8; 4], u64)> {
        let mut wraps = vec![
            (47, [0; 4], GRE),
            (44, [0; 4], FRAGMENT),
            (6, [3, 0, 0, 0], PLAIN),
            (17, [0x12, 0xb5, 1, 2], PLAIN),
            (17, udp(4791), PLAIN),
        ];
        wraps.extend([4, 41, 97, 108, 115, 137, 143].map(|number| (number, [0; 4], IP_IN_IP)));
        let ports = [2152, 4500, 4754, 4789, 4790, 6080, 6081, 6635, 8472];
        wraps.extend(ports.map(|port| (17, udp(port), UDP_TUNNEL)));
        wraps
    }

    #[test]
    fn quotations_and_tunnels_are_told_by_the_outermost_headers() {
        for (protocol, octets, expected) in wraps() {
            for ethertype in [V4, V6] {
                let found = of(ethertype, protocol, &octets);
                assert_eq!(found, expected, "{protocol} {octets:?}");
            }
        }
        assert_eq!(of(V4, 17, &[1, 2, 0x12]), PLAIN);
        for kind in 0..=u8::MAX {
            let is_error = [3, 4, 5, 11, 12].contains(&kind);
            let expected = if is_error { QUOTED } else { PLAIN };
            assert_eq!(of(V4, 1, &[kind, 0, 0, 0]), expected, "{kind}");
            let expected = if kind < 128 { QUOTED } else { PLAIN };
            assert_eq!(of(V6, 58, &[kind, 0, 0, 0]), expected, "{kind}");
        }
        assert_eq!(of([0x88, 0xb5], 1, &[3, 0, 0, 0]), PLAIN);
        assert_eq!(wrap(&[0u8; 5][..]), PLAIN);
    }

    #[test]
    fn extension_headers_are_stepped_over() {
        let mut wraps = wraps();
        wraps.extend([(58, [1, 0, 0, 0], QUOTED), (58, [128, 0, 0, 0], PLAIN)]);
        for (protocol, octets, expected) in wraps {
            for extension in [0, 43, 60] {
                let payload = behind(protocol, 2, &octets);
                let found = of(V6, extension, &payload);
                assert_eq!(found, expected, "{protocol} {octets:?} behind {extension}");
            }
            let options = behind(protocol, 6, &octets);
            let routing = behind(60, 1, &options);
            let all = behind(60, 0, &behind(43, 0, &routing));
            let found = of(V6, 0, &all);
            assert_eq!(found, expected, "{protocol} {octets:?} behind all");
        }
        let gre = behind(47, 2, &[0; 4]);
        assert_eq!(of(V6, 60, &gre[..3]), PLAIN, "cut in the extension header");
        let endless = behind(60, 0, &[]).repeat(20);
        assert_eq!(of(V6, 60, &endless), PLAIN);
    }
}
