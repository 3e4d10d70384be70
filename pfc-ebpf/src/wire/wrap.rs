//! Wrapping of a frame, by its outermost headers: an error that quotes it, or a tunnel. A stamp at
//! its end may be that of the frame within.

use super::{Octets, Part, ethernet, ip};

/// No wrapping that is known.
pub const PLAIN: u64 = 1;
/// An error message of ICMP (RFC 792) or ICMPv6 (RFC 4443, 2.1), which quotes what it is about.
pub const QUOTED: u64 = 1 << 1;
/// GRE (RFC 2784), also that of a mirror (ERSPAN).
pub const GRE: u64 = 1 << 2;
/// IP in IP (RFC 2003, RFC 2473).
pub const IP_IN_IP: u64 = 1 << 3;
/// A tunnel in UDP ([`TUNNELS`]).
pub const UDP_TUNNEL: u64 = 1 << 4;
/// Anything.
pub const ALL: u64 = (1 << 5) - 1;

/// Ports of VXLAN (RFC 7348), of Linux' own VXLAN before it, and of Geneve (RFC 8926).
pub const TUNNELS: [u16; 3] = [4789, 8472, 6081];

/// Protocol numbers (IANA).
const ICMP: u8 = 1;
const IPV4_IN_IP: u8 = 4;
const IPV6_IN_IP: u8 = 41;
const GRE_IN_IP: u8 = 47;
const ICMPV6: u8 = 58;
/// The first of ICMPv6's messages that is no error.
const INFORMATION: u8 = 128;

/// Returns the wrapping of the frame: one bit.
#[inline(always)]
pub fn wrap(frame: &(impl Octets + ?Sized)) -> u64 {
    let Ok(header) = ethernet::parse(frame) else {
        return PLAIN;
    };
    let Some((protocol, payload)) = ip::next(frame, &header) else {
        return PLAIN;
    };
    match protocol {
        GRE_IN_IP => GRE,
        IPV4_IN_IP | IPV6_IN_IP => IP_IN_IP,
        ICMP | ICMPV6 => {
            let Some(begin) = frame.part::<1>(payload) else {
                return PLAIN;
            };
            let kind = begin.octet::<0>();
            let is_error = match protocol {
                // Unreachable, source quench, redirect, time exceeded, parameter problem.
                ICMP => matches!(kind, 3 | 4 | 5 | 11 | 12),
                _ => kind < INFORMATION,
            };
            if is_error { QUOTED } else { PLAIN }
        }
        ip::UDP => {
            let Some(port) = frame.word(payload + 2) else {
                return PLAIN;
            };
            let [vxlan, linux, geneve] = TUNNELS;
            if port == vxlan || port == linux || port == geneve {
                UDP_TUNNEL
            } else {
                PLAIN
            }
        }
        _ => PLAIN,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(ethertype: [u8; 2], protocol: u8, payload: &[u8]) -> u64 {
        let mut frame = vec![0; 12];
        frame.extend([0x81, 0, 0, 5]);
        frame.extend(ethertype);
        let mut header = vec![0; if ethertype == [8, 0] { 24 } else { 40 }];
        if ethertype == [8, 0] {
            // With an option.
            (header[0], header[9]) = (0x46, protocol);
        } else {
            (header[0], header[6]) = (0x60, protocol);
        }
        frame.extend(header);
        frame.extend(payload);
        wrap(&frame[..])
    }

    #[test]
    fn quotations_and_tunnels_are_told_by_the_outermost_headers() {
        const V4: [u8; 2] = [8, 0];
        const V6: [u8; 2] = [0x86, 0xdd];
        for ethertype in [V4, V6] {
            assert_eq!(of(ethertype, 47, &[]), GRE);
            assert_eq!(of(ethertype, 4, &[]), IP_IN_IP);
            assert_eq!(of(ethertype, 41, &[]), IP_IN_IP);
            assert_eq!(of(ethertype, 6, &[3, 0, 0, 0]), PLAIN);
            assert_eq!(of(ethertype, 17, &[1, 2, 0x12, 0xb5]), UDP_TUNNEL);
            assert_eq!(of(ethertype, 17, &[0x12, 0xb5, 1, 2]), PLAIN);
            assert_eq!(of(ethertype, 17, &[]), PLAIN);
        }
        assert_eq!(of(V4, 1, &[11]), QUOTED);
        assert_eq!(of(V4, 1, &[8]), PLAIN);
        assert_eq!(of(V6, 58, &[1]), QUOTED);
        assert_eq!(of(V6, 58, &[128]), PLAIN);
        assert_eq!(of([0x88, 0xb5], 1, &[3]), PLAIN);
        assert_eq!(wrap(&[0u8; 5][..]), PLAIN);
    }
}
