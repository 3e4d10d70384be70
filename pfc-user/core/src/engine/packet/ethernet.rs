//! Ethernet II (IEEE 802.3, 3.2).

use super::table::{LeftAlone, Table, computed, value};

/// The header.
pub const TABLE: Table = Table {
    name: "ethernet",
    octets: 14,
    // EtherType of frames in GRE (RFC 1701).
    ether_type: Some(0x6558),
    fields: &[
        value("dst", 0, 48, 0),
        value("src", 48, 48, 0),
        computed("ether_type", 96, 16, LeftAlone::EtherType),
    ],
    ..Table::BASE
};
