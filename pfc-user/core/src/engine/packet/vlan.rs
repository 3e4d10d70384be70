//! The tag of IEEE 802.1Q (9.5). Its TPID stands in the type field of the header before; what
//! follows the tag control information is the type of the header after.

use super::Protocol::{Ethernet, Vlan};
use super::table::{Field, LeftAlone, Place, Table, computed, value};

/// TPID of a customer tag.
pub const TPID: u128 = 0x8100;
/// Name of the field that stands in the header before.
pub const TPID_FIELD: &str = "tpid";

/// The tag.
pub const TABLE: Table = Table {
    name: "vlan",
    octets: 4,
    ether_type: Some(TPID),
    behind: &[Ethernet, Vlan],
    fields: &[
        value("priority", 0, 3, 0),
        value("cfi", 3, 1, 0),
        value("id", 4, 12, 0),
        computed("ether_type", 16, 16, LeftAlone::EtherType),
        Field {
            name: TPID_FIELD,
            place: Place::TypeBefore,
            bits: 16,
            left_alone: LeftAlone::Value(TPID),
        },
    ],
    ..Table::BASE
};
