//! IPv4 without options (RFC 791).

use super::Protocol::{Ethernet, Ipv4, Ipv6, Segment, Vlan};
use super::table::{LeftAlone, Table, computed, value};

/// Any private protocol (IANA), where no known header follows.
const ANY: u128 = 61;

/// The header. `priority` is the whole second octet: DSCP and ECN (RFC 2474, RFC 3168).
pub const TABLE: Table = Table {
    name: "ipv4",
    octets: 20,
    ether_type: Some(0x0800),
    number: Some(4),
    follows: &[Ethernet, Vlan, Ipv4, Ipv6, Segment],
    fields: &[
        value("version", 0, 4, 4),
        value("header_length", 4, 4, 5),
        value("priority", 8, 8, 0),
        computed("total_length", 16, 16, LeftAlone::Rest(0)),
        value("identification", 32, 16, 0),
        value("reserved", 48, 1, 0),
        value("dont_fragment", 49, 1, 0),
        value("more_fragments", 50, 1, 0),
        value("fragment_offset", 51, 13, 0),
        value("time_to_live", 64, 8, 64),
        computed("protocol", 72, 8, LeftAlone::Protocol(ANY)),
        computed("header_checksum", 80, 16, LeftAlone::HeaderSum),
        value("src", 96, 32, 0),
        value("dst", 128, 32, 0),
    ],
    ..Table::BASE
};
