//! An entry of an MPLS label stack (RFC 3032, 2.1).

use super::Protocol::{Ethernet, Gre, GreSum, Ipv4, Ipv6, Mpls, Vlan};
use super::table::{LeftAlone, Table, computed, value};

/// The first label that is not reserved.
const LABEL: u128 = 16;

/// The entry.
pub const TABLE: Table = Table {
    name: "mpls",
    octets: 4,
    // Unicast with downstream-assigned labels (RFC 5332).
    ether_type: Some(0x8847),
    behind: &[Ethernet, Vlan, Mpls, Gre, GreSum],
    bears: &[Ethernet, Ipv4, Ipv6],
    fields: &[
        value("label", 0, 20, LABEL),
        value("traffic_class", 20, 3, 0),
        computed("bottom_of_stack", 23, 1, LeftAlone::Bottom),
        value("time_to_live", 24, 8, 64),
    ],
    ..Table::BASE
};
