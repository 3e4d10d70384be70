//! VXLAN (RFC 7348, 5).

use pfc_ebpf::wire::wrap;

use super::Protocol::{Ethernet, Udp};
use super::table::{Table, value};

/// The header. The flag is that of a valid VNI.
pub const TABLE: Table = Table {
    name: "vxlan",
    octets: 8,
    port: Some(4789),
    wrap: wrap::UDP_TUNNEL,
    behind: &[Udp],
    bears: &[Ethernet],
    fields: &[
        value("flags", 0, 8, 8),
        value("reserved0", 8, 24, 0),
        value("vni", 32, 24, 0),
        value("reserved1", 56, 8, 0),
    ],
    ..Table::BASE
};
