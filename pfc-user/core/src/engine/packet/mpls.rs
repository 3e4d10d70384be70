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
    follows: &[Ethernet, Vlan, Mpls, Gre, GreSum],
    carries: &[Ethernet, Ipv4, Ipv6],
    fields: &[
        value("label", 0, 20, LABEL),
        value("traffic_class", 20, 3, 0),
        computed("bottom_of_stack", 23, 1, LeftAlone::Bottom),
        value("time_to_live", 24, 8, 64),
    ],
    ..Table::BASE
};

#[cfg(test)]
mod tests {
    use super::super::Protocol;
    use super::super::template::tests::{packet, render};

    #[test]
    fn labels_are_announced_and_the_last_one_says_so() {
        use Protocol::{Ethernet, Ipv4, Mpls, Udp};
        let frame = render(&packet(&[Ethernet, Mpls, Mpls, Ipv4, Udp]), 0, 80);
        // Label 16, and the bottom of the stack.
        let labels = [0x88, 0x47, 0, 1, 0, 64, 0, 1, 1, 64, 0x45];
        assert_eq!(frame[12..23], labels);
    }
}
