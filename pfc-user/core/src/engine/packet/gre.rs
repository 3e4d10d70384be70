//! GRE (RFC 2784), without a checksum and with one.

use pfc_ebpf::wire::wrap;

use super::Protocol::{Ethernet, Ipv4, Ipv6, Segment};
use super::table::{Field, LeftAlone, Table, computed, value};

const RESERVED0: Field = value("reserved0", 1, 12, 0);
const VERSION: Field = value("version", 13, 3, 0);
const PROTOCOL: Field = computed("protocol", 16, 16, LeftAlone::EtherType);

/// GRE without a checksum.
pub const PLAIN: Table = Table {
    name: "gre",
    octets: 4,
    number: Some(47),
    wrap: wrap::GRE,
    follows: &[Ipv4, Ipv6, Segment],
    carries: &[Ethernet, Ipv4, Ipv6],
    fields: &[
        value("checksum_present", 0, 1, 0),
        RESERVED0,
        VERSION,
        PROTOCOL,
    ],
    ..Table::BASE
};

/// GRE with a checksum of the header and all that follows.
pub const WITH_SUM: Table = Table {
    name: "gre with a checksum",
    octets: 8,
    fields: &[
        value("checksum_present", 0, 1, 1),
        RESERVED0,
        VERSION,
        PROTOCOL,
        computed("checksum", 32, 16, LeftAlone::MessageSum),
        value("reserved1", 48, 16, 0),
    ],
    ..PLAIN
};

#[cfg(test)]
mod tests {
    use pfc_ebpf::wire::{Octets as _, ip, udp};

    use super::super::Protocol;
    use super::super::template::tests::{packet, render};

    #[test]
    fn tunnels_announce_what_follows_and_their_sum_covers_it() {
        use Protocol::{Ethernet, Gre, GreSum, Ipv4, Ipv6, Udp};
        let frame = render(&packet(&[Ethernet, Ipv4, Gre, Ipv6, Udp]), 0, 120);
        assert_eq!((frame[23], &frame[34..38]), (47, &[0, 0, 0x86, 0xdd][..]));
        let stack = [Ethernet, Ipv4, GreSum, Ethernet, Ipv4, Udp];
        let frame = render(&packet(&stack), 0, 120);
        assert_eq!(frame[34..38], [0x80, 0, 0x65, 0x58]);
        assert_eq!(frame[..].sum(34, 120 - 34), Some(0xffff));
        let inner = &frame[42..];
        let ip = ip::parse_v4(inner, 14).unwrap();
        assert!(udp::is_intact(inner, &ip, &udp::parse(inner, &ip).unwrap()));
    }
}
