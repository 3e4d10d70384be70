//! VXLAN (RFC 7348, 5).

use super::table::{Table, value};

/// UDP port of VXLAN (IANA).
pub const PORT: u128 = 4789;

/// The header. The flag is that of a valid VNI.
pub const TABLE: Table = Table {
    name: "vxlan",
    octets: 8,
    fields: &[
        value("flags", 0, 8, 8),
        value("reserved0", 8, 24, 0),
        value("vni", 32, 24, 0),
        value("reserved1", 56, 8, 0),
    ],
};
