//! Encapsulations in which a frame still is the packet's own.

use pfc_ebpf::wire::{segment, wrap};

use super::{Header, Packet, Protocol, Value};

impl Packet {
    /// Returns the encapsulations as bits of [`wrap`]. A device may take a tunnel off; a tunnel
    /// that it adds, or an error that quotes the frame, makes another frame of it.
    pub fn wraps(&self) -> u64 {
        let headers = self.headers.iter().enumerate();
        headers.fold(wrap::PLAIN, |wraps, (place, header)| {
            wraps | self.wraps_of(place, header)
        })
    }

    fn wraps_of(&self, place: usize, header: &Header) -> u64 {
        let before = place.checked_sub(1).map(|place| &self.headers[place]);
        let sets = |names: [&str; 2]| names.iter().any(|name| header.field(name).is_some());
        match header.protocol {
            // Custom octets may mean anything.
            Protocol::Custom => wrap::ALL,
            Protocol::Icmp | Protocol::Icmpv6 => match header.field("type") {
                // Echo, and its reply.
                None | Some(Value::Fixed(0 | 8 | 128 | 129)) => wrap::PLAIN,
                Some(_) => wrap::QUOTED,
            },
            Protocol::Udp => match header.field("dst_port") {
                None => wrap::PLAIN,
                Some(Value::Fixed(port)) if !u16::try_from(*port).is_ok_and(segment::is_tunnel) => {
                    wrap::PLAIN
                }
                Some(_) => wrap::UDP_TUNNEL,
            },
            Protocol::Ipv4 | Protocol::Ipv6 => {
                let within = before.is_some_and(|before| {
                    matches!(
                        before.protocol,
                        Protocol::Ipv4 | Protocol::Ipv6 | Protocol::Segment
                    )
                });
                match (sets(["protocol", "next_header"]), within) {
                    (true, _) => wrap::ALL,
                    (false, true) => wrap::IP_IN_IP,
                    (false, false) => wrap::PLAIN,
                }
            }
            // Parsers take what follows for something else, or look for it elsewhere.
            Protocol::SegmentRouting if sets(["next_header", "hdr_ext_len"]) => wrap::ALL,
            protocol => protocol.table().map_or(wrap::PLAIN, |table| table.wrap),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(protocol: Protocol, fields: &[(&'static str, u128)]) -> Header {
        let fields = fields.iter();
        Header {
            fields: fields
                .map(|(name, value)| (*name, Value::Fixed(*value)))
                .collect(),
            ..Header::new(protocol)
        }
    }

    #[test]
    fn a_packet_is_its_own_in_what_its_headers_say_alone() {
        use Protocol::{Ethernet, Ipv4, Ipv6, Segment, SegmentRouting, Udp, Vxlan};
        let of = |rest: &[Header]| {
            let ethernet = header(Ethernet, &[]);
            let headers = [&[ethernet], rest].concat();
            Packet {
                headers,
                ..Packet::default()
            }
            .wraps()
        };
        let (ip, udp) = (header(Ipv4, &[]), header(Udp, &[("dst_port", 9)]));
        assert_eq!(of(&[]), wrap::PLAIN);
        assert_eq!(of(&[ip.clone(), udp.clone()]), wrap::PLAIN);
        let tunnel = wrap::PLAIN | wrap::UDP_TUNNEL;
        assert_eq!(of(&[ip.clone(), udp.clone(), header(Vxlan, &[])]), tunnel);
        let to_port = |port| of(&[ip.clone(), header(Udp, &[("dst_port", port)])]);
        for port in [2152, 4789, 4790, 6635] {
            assert_eq!(to_port(port), tunnel, "{port}");
        }
        assert_eq!(to_port(4791), wrap::PLAIN);
        let walk = Value::List(vec![1, 2]);
        let mut walks = udp.clone();
        walks.fields = vec![("dst_port", walk)];
        assert_eq!(of(&[ip.clone(), walks]), tunnel);
        let within = of(&[ip.clone(), header(Ipv6, &[]), udp]);
        assert_eq!(within, wrap::PLAIN | wrap::IP_IN_IP);
        assert_eq!(of(&[header(Ipv4, &[("protocol", 1)])]), wrap::ALL);
        let segments = |fields: &[(&'static str, u128)]| {
            let routing = header(SegmentRouting, fields);
            of(&[header(Ipv6, &[]), routing, header(Segment, &[])])
        };
        assert_eq!(segments(&[]), wrap::PLAIN);
        assert_eq!(segments(&[("next_header", 4)]), wrap::ALL);
        assert_eq!(segments(&[("hdr_ext_len", 4)]), wrap::ALL);
    }
}
