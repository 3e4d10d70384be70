//! An entry of an MPLS label stack (RFC 3032, 2.1).

use super::table::{LeftAlone, Table, computed, value};

/// The first label that is not reserved.
const LABEL: u128 = 16;

/// The entry.
pub const TABLE: Table = Table {
    name: "mpls",
    octets: 4,
    fields: &[
        value("label", 0, 20, LABEL),
        value("traffic_class", 20, 3, 0),
        computed("bottom_of_stack", 23, 1, LeftAlone::Bottom),
        value("time_to_live", 24, 8, 64),
    ],
};
