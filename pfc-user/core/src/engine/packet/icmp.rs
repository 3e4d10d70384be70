//! Echo of ICMP (RFC 792) and of ICMPv6 (RFC 4443, 4).

use super::Protocol::{Ipv4, Ipv6, Segment};
use super::table::{LeftAlone, Table, computed, value};

/// Types of the requests.
const REQUEST: u128 = 8;
const REQUEST_V6: u128 = 128;

/// ICMP, whose checksum covers the message alone.
pub const V4: Table = Table {
    name: "icmp",
    octets: 8,
    number: Some(1),
    follows: &[Ipv4],
    fields: &[
        value("type", 0, 8, REQUEST),
        value("code", 8, 8, 0),
        computed("checksum", 16, 16, LeftAlone::MessageSum),
        value("identifier", 32, 16, 0),
        value("sequence_number", 48, 16, 0),
    ],
    ..Table::BASE
};

/// ICMPv6, whose checksum covers a pseudo-header, too.
pub const V6: Table = Table {
    name: "icmpv6",
    octets: 8,
    number: Some(58),
    follows: &[Ipv6, Segment],
    fields: &[
        value("type", 0, 8, REQUEST_V6),
        value("code", 8, 8, 0),
        computed("checksum", 16, 16, LeftAlone::PayloadSum),
        value("identifier", 32, 16, 0),
        value("sequence_number", 48, 16, 0),
    ],
    ..Table::BASE
};

#[cfg(test)]
mod tests {
    use pfc_ebpf::wire::{Octets as _, fold};

    use super::super::Protocol;
    use super::super::template::tests::{fixed, packet, render};

    #[test]
    fn messages_of_icmp_have_right_sums_and_those_of_v6_a_pseudo_header() {
        use Protocol::{Ethernet, Icmp, Icmpv6, Ipv4, Ipv6};
        for length in [70, 71, 102, 1500] {
            let mut v4 = packet(&[Ethernet, Ipv4, Icmp]);
            v4.headers[1].fields = vec![("src", fixed(0x0a00_0001)), ("dst", fixed(0x0a00_0002))];
            v4.headers[2].fields = vec![("identifier", fixed(0x1234))];
            let frame = render(&v4, 0, length);
            assert_eq!((frame[23], frame[34]), (1, 8));
            assert_eq!(frame[..].sum(34, length - 34), Some(0xffff), "{length}");
        }
        for length in [80, 81, 1500] {
            let mut v6 = packet(&[Ethernet, Ipv6, Icmpv6]);
            v6.headers[1].fields = vec![("src", fixed(5)), ("dst", fixed(7))];
            let frame = render(&v6, 0, length);
            assert_eq!((frame[20], frame[54]), (58, 128));
            let pseudo = frame[..].sum(22, 32).unwrap();
            let message = frame[..].sum(54, length - 54).unwrap();
            let rest = 58 + (length - 54) as u32;
            assert_eq!(fold(u32::from(pseudo) + u32::from(message) + rest), 0xffff);
        }
    }
}
