//! UDP (RFC 768).

use super::Protocol::{Ipv4, Ipv6, Segment};
use super::table::{LeftAlone, Table, computed, value};

/// The header.
pub const TABLE: Table = Table {
    name: "udp",
    octets: 8,
    number: Some(17),
    follows: &[Ipv4, Ipv6, Segment],
    fields: &[
        value("src_port", 0, 16, 0),
        computed("dst_port", 16, 16, LeftAlone::Port),
        computed("length", 32, 16, LeftAlone::Rest(0)),
        computed("checksum", 48, 16, LeftAlone::PayloadSum),
    ],
    ..Table::BASE
};
