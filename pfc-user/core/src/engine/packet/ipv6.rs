//! IPv6 (RFC 8200). Extension headers are headers of their own.

use super::Protocol::{Ethernet, Ipv4, Ipv6, Segment, Vlan};
use super::table::{LeftAlone, Table, computed, value};

/// Octets of the header.
const OCTETS: usize = 40;
/// No next header (RFC 8200, 4.7).
pub const NOTHING: u128 = 59;

/// The header.
pub const TABLE: Table = Table {
    name: "ipv6",
    octets: OCTETS,
    ether_type: Some(0x86dd),
    number: Some(41),
    follows: &[Ethernet, Vlan, Ipv4, Ipv6, Segment],
    fields: &[
        value("version", 0, 4, 6),
        value("traffic_class", 4, 8, 0),
        value("flow_label", 12, 20, 0),
        computed("payload_length", 32, 16, LeftAlone::Rest(OCTETS)),
        computed("next_header", 48, 8, LeftAlone::Protocol(NOTHING)),
        value("hop_limit", 56, 8, 64),
        value("src", 64, 128, 0),
        value("dst", 192, 128, 0),
    ],
    ..Table::BASE
};
