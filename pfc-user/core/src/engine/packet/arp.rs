//! ARP for IPv4 over Ethernet (RFC 826).

use super::Protocol::{Ethernet, Vlan};
use super::table::{Table, value};

/// The packet, which is no header of another.
pub const TABLE: Table = Table {
    name: "arp",
    octets: 28,
    ether_type: Some(0x0806),
    follows: &[Ethernet, Vlan],
    fields: &[
        value("hardware_type", 0, 16, 1),
        value("protocol_type", 16, 16, 0x0800),
        value("hardware_length", 32, 8, 6),
        value("protocol_length", 40, 8, 4),
        value("operation", 48, 16, 1),
        value("sender_hardware_addr", 64, 48, 0),
        value("sender_protocol_addr", 112, 32, 0),
        value("target_hardware_addr", 144, 48, 0),
        value("target_protocol_addr", 192, 32, 0),
    ],
    ..Table::BASE
};

#[cfg(test)]
mod tests {
    use super::super::Protocol;
    use super::super::template::tests::{packet, render};

    #[test]
    fn a_request_for_ipv4_over_ethernet_is_the_default() {
        let frame = render(&packet(&[Protocol::Ethernet, Protocol::Arp]), 0, 60);
        assert_eq!(frame[12..22], [8, 6, 0, 1, 8, 0, 6, 4, 0, 1]);
    }
}
