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
    follows: &[Ethernet, Vlan],
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

#[cfg(test)]
mod tests {
    use super::super::Protocol;
    use super::super::template::tests::{fixed, packet, render};

    #[test]
    fn a_tag_is_announced_by_its_tpid_and_announces_what_follows() {
        let mut packet = packet(&[Protocol::Ethernet, Protocol::Vlan, Protocol::Ipv4]);
        packet.headers[1].fields = vec![
            ("priority", fixed(5)),
            ("cfi", fixed(1)),
            ("id", fixed(0xabc)),
        ];
        let frame = render(&packet, 0, 60);
        assert_eq!(frame[12..18], [0x81, 0, 0xba, 0xbc, 0x08, 0]);
        packet.headers[1].fields.push(("tpid", fixed(0x88a8)));
        assert_eq!(render(&packet, 0, 60)[12..14], [0x88, 0xa8]);
    }
}
