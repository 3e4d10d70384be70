//! The segment routing header of IPv6 (RFC 8754, 2), and the segments behind it, each a header of
//! its own.

use super::Protocol::{Ipv6, Segment, SegmentRouting};
use super::ipv6;
use super::table::{Field, LeftAlone, Table, computed, value};

/// Routing type (RFC 8754, 2).
const SEGMENT_ROUTING: u128 = 4;

/// The header up to its segments. `segments_left` is what the OTG model says of it.
pub const TABLE: Table = Table {
    name: "segment_routing",
    octets: 8,
    number: Some(43),
    follows: &[Ipv6, Segment],
    fields: &[
        computed("next_header", 0, 8, LeftAlone::Protocol(ipv6::NOTHING)),
        // Length in units of 8 octets, without the first (RFC 8200, 4.4).
        segments("hdr_ext_len", 8, 2, 0),
        value("routing_type", 16, 8, SEGMENT_ROUTING),
        segments("segments_left", 24, 1, 0),
        segments("last_entry", 32, 1, 1),
        value("protected", 41, 1, 0),
        value("oam", 42, 1, 0),
        value("alert", 43, 1, 0),
        value("tag", 48, 16, 0),
    ],
    ..Table::BASE
};

/// A segment.
pub const SEGMENT: Table = Table {
    name: "segment",
    octets: 16,
    follows: &[SegmentRouting, Segment],
    fields: &[value("segment", 0, 128, 0)],
    ..Table::BASE
};

const fn segments(name: &'static str, at: usize, each: u128, less: u128) -> Field {
    computed(name, at, 8, LeftAlone::Segments { each, less })
}

#[cfg(test)]
mod tests {
    use super::super::template::tests::{WHOLE, fixed, packet, render};
    use super::super::{Packet, Protocol, Template};

    /// UDP or TCP over IPv6, with two segments, of which so many are left.
    fn segmented(upper: Protocol, left: Option<u128>) -> Packet {
        use Protocol::{Ethernet, Ipv6, Segment, SegmentRouting};
        let address = |last: u128| fixed(0xfc00 << 112 | last);
        let mut packet = packet(&[Ethernet, Ipv6, SegmentRouting, Segment, Segment, upper]);
        let headers = &mut packet.headers;
        headers[1].fields = vec![("src", address(1)), ("dst", address(2))];
        headers[2].fields = vec![
            ("protected", fixed(1)),
            ("alert", fixed(1)),
            ("tag", fixed(0x1234)),
        ];
        let left = left.map(|left| ("segments_left", fixed(left)));
        headers[2].fields.extend(left);
        headers[3].fields = vec![("segment", address(10))];
        headers[4].fields = vec![("segment", address(11))];
        if upper == Protocol::Udp {
            headers[5].fields = vec![("src_port", fixed(1)), ("dst_port", fixed(2))];
        }
        packet
    }

    #[test]
    fn segment_routing_is_as_scapy_makes_it() {
        // bytes(Ether(...)/IPv6(src="fc00::1", dst="fc00::2")/IPv6ExtHdrSegmentRouting(
        //     addresses=["fc00::a", "fc00::b"], segleft=2, lastentry=1, protected=1, alert=1,
        //     tag=0x1234)/UDP(sport=1, dport=2)/bytes(range(24))); TCP with flags and window 0.
        let ip = |length, left| {
            format!(
                "{:024}86dd60000000{length}2b40\
                 fc000000000000000000000000000001fc000000000000000000000000000002\
                 {left}01501234\
                 fc00000000000000000000000000000afc00000000000000000000000000000b",
                0
            )
        };
        let payload: String = (0..24).map(|octet| format!("{octet:02x}")).collect();
        let udp = |sum| format!("000100020020{sum}{payload}");
        let tcp = format!("000000000000000000000000500000003330{:04}{payload}", 0);
        for (packet, expected) in [
            (
                segmented(Protocol::Udp, None),
                ip("0048", "11040402") + &udp("830e"),
            ),
            (
                segmented(Protocol::Udp, Some(0)),
                ip("0048", "11040400") + &udp("8316"),
            ),
            (
                segmented(Protocol::Tcp, None),
                ip("0054", "06040402") + &tcp,
            ),
        ] {
            assert_eq!(packet.check(200, WHOLE), [""; 0]);
            let mut frame = Vec::new();
            Template::new(&packet, &[], None).render(0, expected.len() / 2, &mut frame);
            let found: String = frame.iter().map(|octet| format!("{octet:02x}")).collect();
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn extension_headers_announce_each_other_and_what_follows_their_segments() {
        use Protocol::{Ethernet, Ipv4, Ipv6, Segment, SegmentRouting, Udp};
        let stack = [
            Ethernet,
            Ipv6,
            SegmentRouting,
            Segment,
            SegmentRouting,
            Segment,
            Segment,
            Segment,
            Ipv4,
            Udp,
        ];
        let frame = render(&packet(&stack), 0, 300);
        // Next header, length, type, segments left, last entry.
        assert_eq!(frame[20], 43);
        assert_eq!(frame[54..59], [43, 2, 4, 1, 0]);
        assert_eq!(frame[78..83], [4, 6, 4, 3, 2]);
        assert_eq!(frame[134], 0x45);
        for (stack, follows) in [
            (
                vec![Ethernet, SegmentRouting, Segment],
                "header 2 (segment_routing): it cannot stand behind ethernet",
            ),
            (
                vec![Ethernet, Ipv6, SegmentRouting, Udp],
                "header 4 (udp): it cannot stand behind segment_routing",
            ),
            (
                vec![Ethernet, Ipv6, Segment],
                "header 3 (segment): it cannot stand behind ipv6",
            ),
        ] {
            assert_eq!(packet(&stack).check(1500, WHOLE), [follows]);
        }
    }
}
