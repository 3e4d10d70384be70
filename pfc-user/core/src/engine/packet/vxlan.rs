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
    follows: &[Udp],
    carries: &[Ethernet],
    fields: &[
        value("flags", 0, 8, 8),
        value("reserved0", 8, 24, 0),
        value("vni", 32, 24, 0),
        value("reserved1", 56, 8, 0),
    ],
    ..Table::BASE
};

#[cfg(test)]
mod tests {
    use pfc_ebpf::flow_stamp::{FlowStamp, LEN};
    use pfc_ebpf::wire::{Octets as _, ip, udp};

    use super::super::template::tests::{STAMP, WHOLE, packet, render};
    use super::super::{Protocol, Template};

    #[test]
    fn a_packet_in_a_tunnel_leaves_room_for_an_fcs_and_is_right() {
        use Protocol::{Ethernet, Ipv4, Udp, Vxlan};
        let packet = packet(&[Ethernet, Ipv4, Udp, Vxlan, Ethernet, Ipv4, Udp]);
        let mut frame = render(&packet, 0, 200);
        Template::new(&packet, &[], WHOLE).stamp(&mut frame, &STAMP);
        let stamp: [u8; LEN] = *frame[..196].last_chunk().unwrap();
        assert_eq!(FlowStamp::read(stamp), Ok(STAMP));
        let octets = &frame[..];
        assert_eq!(octets.word(36), Some(4789), "the port of VXLAN");
        for (at, length) in [(14, 186), (64, 132)] {
            let ip = ip::parse_v4(octets, at).unwrap();
            assert_eq!(octets.word(at + 2), Some(length), "total length");
            let udp = udp::parse(octets, &ip).unwrap();
            assert!(udp::is_intact(octets, &ip, &udp), "at {at}");
        }
    }
}
