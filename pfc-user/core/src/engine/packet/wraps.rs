//! Encapsulations in which a frame still is the packet's own.

use pfc_ebpf::wire::wrap;

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
                Some(Value::Fixed(port)) if !wrap::TUNNELS.map(u128::from).contains(port) => {
                    wrap::PLAIN
                }
                Some(_) => wrap::UDP_TUNNEL,
            },
            Protocol::Ipv4 | Protocol::Ipv6 => {
                let says = ["protocol", "next_header"];
                let is_set = says.iter().any(|name| header.field(name).is_some());
                let within = before.is_some_and(|before| {
                    matches!(
                        before.protocol,
                        Protocol::Ipv4 | Protocol::Ipv6 | Protocol::Segment
                    )
                });
                match (is_set, within) {
                    (true, _) => wrap::ALL,
                    (false, true) => wrap::IP_IN_IP,
                    (false, false) => wrap::PLAIN,
                }
            }
            Protocol::SegmentRouting if header.field("next_header").is_some() => wrap::ALL,
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
        use Protocol::{Ethernet, Ipv4, Ipv6, Udp, Vxlan};
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
        assert_eq!(
            of(&[ip.clone(), header(Udp, &[("dst_port", 4789)])]),
            tunnel
        );
        let walk = Value::List(vec![1, 2]);
        let mut walks = udp.clone();
        walks.fields = vec![("dst_port", walk)];
        assert_eq!(of(&[ip.clone(), walks]), tunnel);
        let within = of(&[ip.clone(), header(Ipv6, &[]), udp]);
        assert_eq!(within, wrap::PLAIN | wrap::IP_IN_IP);
        assert_eq!(of(&[header(Ipv4, &[("protocol", 1)])]), wrap::ALL);
    }
}
