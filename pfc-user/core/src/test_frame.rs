//! The frames of a flow: equal but for their stamp.

use std::net::{IpAddr, Ipv6Addr};

use pfc_ebpf::abi::account::Config;
use pfc_ebpf::filling;
use pfc_ebpf::stamp::{self, FIRST_SOURCE_PORT, SOURCE_PORTS, Stamp};
use pfc_ebpf::wire::{ethernet, fold, ip, sum_of_words, udp};

use crate::plan::FlowPlan;

/// ECN-capable transport (RFC 3168), so that a congested DUT marks instead of dropping early.
const ECT_1: u8 = 0b01;
const HOPS: u8 = 64;

/// Addresses between which test frames go. Both IP addresses are IPv4 or both are IPv6.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Addresses {
    /// The tx port's MAC address.
    pub source_mac: [u8; 6],
    /// The rx port's, or the gateway's where the DUT routes.
    pub destination_mac: [u8; 6],
    /// The tx port's IP address.
    pub source_ip: IpAddr,
    /// The rx port's IP address.
    pub destination_ip: IpAddr,
}

impl Addresses {
    /// Writes the addresses into the configuration of a program, which knows damaged test frames
    /// by them.
    pub fn write_to(&self, config: &mut Config) {
        let octets = match (self.source_ip, self.destination_ip) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                [source.octets(), destination.octets()].concat()
            }
            (source, destination) => {
                [mapped(source).octets(), mapped(destination).octets()].concat()
            }
        };
        config.ipv6 = self.source_ip.is_ipv6().into();
        config.addresses = [0; 8];
        for (long, octets) in config.addresses.iter_mut().zip(octets.as_chunks().0) {
            *long = u32::from_ne_bytes(*octets);
        }
    }
}

fn mapped(address: IpAddr) -> Ipv6Addr {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    }
}

/// Reason why a flow has no frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// Shorter than headers and stamp.
    #[error(
        "flow {flow}: frames must have at least {min} octets (without FCS) with these \
         headers and the stamp, found {found}"
    )]
    TooShort {
        /// Flow.
        flow: u16,
        /// Octets needed.
        min: usize,
        /// Octets asked for.
        found: usize,
    },
    /// Longer than an IP packet can be.
    #[error(
        "flow {flow}: frames must have at most {max} octets (without FCS), the most that IP \
         can say, found {found}"
    )]
    TooLong {
        /// Flow.
        flow: u16,
        /// Octets possible.
        max: usize,
        /// Octets asked for.
        found: usize,
    },
    /// One IPv4, one IPv6 address.
    #[error(
        "source and destination address must be of one IP version, found {source_ip} and \
         {destination_ip}"
    )]
    MixedVersions {
        /// Source.
        source_ip: IpAddr,
        /// Destination.
        destination_ip: IpAddr,
    },
}

/// The frame of a flow, complete but for the stamp.
#[derive(Clone, Debug)]
pub struct FrameTemplate {
    octets: Vec<u8>,
    stamp_at: usize,
}

impl FrameTemplate {
    /// The frame of `flow`: Ethernet, a priority tag (VLAN ID 0) if the flow has a PCP, IP, UDP,
    /// room for the stamp, and the filling up to its length.
    pub fn new(flow: &FlowPlan, addresses: &Addresses) -> Result<Self, FrameError> {
        let tag = flow.pcp.map_or(0, |_| ethernet::TAG_LEN);
        let ip_at = ethernet::LEN + tag;
        let ip_length = match addresses.source_ip {
            IpAddr::V4(_) => ip::IPV4_LEN,
            IpAddr::V6(_) => ip::IPV6_LEN,
        };
        let udp_at = ip_at + ip_length;
        let stamp_at = udp_at + udp::LEN;
        check_length(flow, stamp_at + stamp::LEN, ip_at + usize::from(u16::MAX))?;

        let mut octets = Vec::with_capacity(flow.length);
        push_ethernet(&mut octets, flow, addresses);
        let addresses_sum = push_ip(&mut octets, flow, addresses)?;
        push_udp(&mut octets, flow, udp_at, addresses_sum);
        Ok(Self { octets, stamp_at })
    }

    /// Makes `frame` a frame of this flow, yet without a stamp.
    pub fn copy_to(&self, frame: &mut Vec<u8>) {
        frame.clear();
        frame.extend_from_slice(&self.octets);
    }

    /// Stamps a frame that [`Self::copy_to`] made, in place of a stamp that it may have.
    pub fn stamp(&self, frame: &mut [u8], stamp: &Stamp) {
        frame[self.stamp_at..self.stamp_at + stamp::LEN].copy_from_slice(&stamp.emit());
    }

    /// The frame without a stamp, and where that goes.
    pub fn octets(&self) -> (&[u8], usize) {
        (&self.octets, self.stamp_at)
    }

    /// Octets of the frame, without FCS.
    pub fn length(&self) -> usize {
        self.octets.len()
    }
}

fn check_length(flow: &FlowPlan, min: usize, max: usize) -> Result<(), FrameError> {
    let (flow, found) = (flow.id, flow.length);
    if found < min {
        return Err(FrameError::TooShort { flow, min, found });
    }
    if found > max {
        return Err(FrameError::TooLong { flow, max, found });
    }
    Ok(())
}

fn push_ethernet(octets: &mut Vec<u8>, flow: &FlowPlan, addresses: &Addresses) {
    octets.extend(addresses.destination_mac);
    octets.extend(addresses.source_mac);
    if let Some(pcp) = flow.pcp {
        octets.extend(ethernet::C_TAG.to_be_bytes());
        octets.extend((u16::from(pcp.get()) << 13).to_be_bytes());
    }
    let ethertype = match addresses.source_ip {
        IpAddr::V4(_) => ethernet::IPV4,
        IpAddr::V6(_) => ethernet::IPV6,
    };
    octets.extend(ethertype.to_be_bytes());
}

/// Appends the IP header; returns the sum of its addresses, for the pseudo-header of UDP.
fn push_ip(
    octets: &mut Vec<u8>,
    flow: &FlowPlan,
    addresses: &Addresses,
) -> Result<u32, FrameError> {
    let at = octets.len();
    let traffic_class = flow.dscp.get() << 2 | ECT_1;
    match (addresses.source_ip, addresses.destination_ip) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            octets.extend([0x45, traffic_class]);
            octets.extend(((flow.length - at) as u16).to_be_bytes());
            // Identification 0 with "don't fragment": an atomic datagram (RFC 6864).
            octets.extend([0, 0, 0x40, 0, HOPS, ip::UDP, 0, 0]);
            octets.extend(source.octets());
            octets.extend(destination.octets());
            let checksum = !fold(sum_of_words(&octets[at..]));
            octets[at + 10..at + 12].copy_from_slice(&checksum.to_be_bytes());
            Ok(sum_of_words(&octets[at + 12..]))
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            let payload = (flow.length - at - ip::IPV6_LEN) as u16;
            octets.extend([0x60 | traffic_class >> 4, traffic_class << 4, 0, 0]);
            octets.extend(payload.to_be_bytes());
            octets.extend([ip::UDP, HOPS]);
            octets.extend(source.octets());
            octets.extend(destination.octets());
            Ok(sum_of_words(&octets[at + 8..]))
        }
        (source_ip, destination_ip) => Err(FrameError::MixedVersions {
            source_ip,
            destination_ip,
        }),
    }
}

/// Appends the UDP header, zeros for the stamp, and the filling.
fn push_udp(octets: &mut Vec<u8>, flow: &FlowPlan, at: usize, addresses_sum: u32) {
    let length = (flow.length - at) as u16;
    octets.extend((FIRST_SOURCE_PORT + flow.id % SOURCE_PORTS).to_be_bytes());
    octets.extend(stamp::UDP_PORT.to_be_bytes());
    octets.extend(length.to_be_bytes());
    octets.extend([0, 0]);
    let begin = octets.len() + stamp::LEN;
    octets.resize(begin, 0);
    octets.extend((0..flow.length - begin).map(filling::octet));
    // The words of every stamp add up to 0xffff, which is zero in ones-complement arithmetic, so
    // that the checksum of the frame does not depend on the stamp.
    let pseudo_header = addresses_sum + u32::from(ip::UDP) + u32::from(length);
    let checksum = match !fold(pseudo_header + sum_of_words(&octets[at..])) {
        // Zero would say that there is no checksum (RFC 768; forbidden in RFC 8200).
        0 => 0xffff,
        checksum => checksum,
    };
    octets[at + 6..at + 8].copy_from_slice(&checksum.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use pfc_ebpf::stamp::{MASK_40, Phase};
    use pfc_ebpf::units::{Dscp, Priority};

    use super::*;
    use crate::plan::{PortName, Role};

    fn v4() -> Addresses {
        Addresses {
            source_mac: [2, 0, 0, 0, 0, 1],
            destination_mac: [2, 0, 0, 0, 0, 2],
            source_ip: Ipv4Addr::new(192, 0, 2, 1).into(),
            destination_ip: Ipv4Addr::new(198, 51, 100, 2).into(),
        }
    }

    fn v6() -> Addresses {
        let ip = |last| Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0xffff, 0xffff, 0xffff, last).into();
        Addresses {
            source_ip: ip(1),
            destination_ip: ip(2),
            ..v4()
        }
    }

    fn flow(pcp: Option<u8>, length: usize) -> FlowPlan {
        FlowPlan {
            from: PortName::TX,
            to: PortName::RX,
            id: 9,
            role: Role::Test,
            priority: Priority::from_low_bits(3),
            dscp: Dscp::new(46).unwrap(),
            pcp: pcp.map(Priority::from_low_bits),
            rate: 1_000_000,
            length,
        }
    }

    fn stamp(sequence: u64, time: u64) -> Stamp {
        Stamp {
            run: 0xbeef,
            flow: 9,
            phase: Phase::Storm,
            sequence,
            time,
        }
    }

    fn stamped(template: &FrameTemplate, stamp: &Stamp) -> Vec<u8> {
        let mut frame = Vec::new();
        template.copy_to(&mut frame);
        template.stamp(&mut frame, stamp);
        frame
    }

    /// True if the UDP checksum is right. Sums octet by octet, as RFC 768 words it, and includes
    /// the checksum field, so that the sum of an intact datagram is 0xffff.
    fn udp_verifies(frame: &[u8], ip_at: usize) -> bool {
        let v4 = frame[ip_at] >> 4 == 4;
        let (addresses, udp_at) = if v4 {
            (ip_at + 12..ip_at + 20, ip_at + 20)
        } else {
            (ip_at + 8..ip_at + 40, ip_at + 40)
        };
        let udp = &frame[udp_at..];
        assert_eq!(usize::from(u16::from_be_bytes([udp[4], udp[5]])), udp.len());
        assert_ne!(&udp[6..8], [0, 0]);
        let mut message = frame[addresses].to_vec();
        message.extend([0, 17]);
        message.extend((udp.len() as u16).to_be_bytes());
        message.extend(udp);
        if message.len() % 2 == 1 {
            message.push(0);
        }
        let mut total = 0u16;
        for word in message.chunks_exact(2) {
            let (next, carry) = total.overflowing_add(u16::from_be_bytes([word[0], word[1]]));
            total = next + u16::from(carry);
        }
        total == 0xffff
    }

    #[test]
    fn the_udp_checksum_is_right_for_every_stamp_length_and_header() {
        for addresses in [v4(), v6()] {
            for pcp in [None, Some(5)] {
                for length in [84, 85, 1024, 1025, 9018] {
                    let template = FrameTemplate::new(&flow(pcp, length), &addresses).unwrap();
                    // Multiples of large odd numbers: all words change each time.
                    for i in 0..500u64 {
                        let stamp = stamp(
                            i.wrapping_mul(0x9e37_79b9_7f4a_7c15) & MASK_40,
                            i.wrapping_mul(0xd1b5_4a32_d192_ed03) & MASK_40,
                        );
                        let frame = stamped(&template, &stamp);
                        assert_eq!(frame.len(), length);
                        assert!(
                            udp_verifies(&frame, if pcp.is_some() { 18 } else { 14 }),
                            "{addresses:?} {pcp:?} {length} {stamp:?}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn a_checksum_of_zero_is_sent_as_ffff() {
        // The last word of an address runs through all values, so that at least one checksum comes
        // out as zero.
        let mut zeros = 0;
        for word in 0..=u16::MAX {
            let [high, low] = word.to_be_bytes();
            let addresses = Addresses {
                source_ip: Ipv4Addr::new(10, 0, high, low).into(),
                ..v4()
            };
            let octets = FrameTemplate::new(&flow(None, 64), &addresses)
                .unwrap()
                .octets;
            if octets[40..42] == [0xff, 0xff] {
                zeros += 1;
                assert_eq!(
                    fold(sum_of_words(&octets[26..40]) + 17 + 30 + sum_of_words(&octets[42..])),
                    0xffff
                );
            }
        }
        assert!(zeros > 0);
    }

    #[test]
    fn headers_are_laid_out_as_the_standards_say() {
        let frame = stamped(
            &FrameTemplate::new(&flow(Some(5), 100), &v4()).unwrap(),
            &stamp(1, 2),
        );
        assert_eq!(
            frame[..18],
            [2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x81, 0, 0xa0, 0, 8, 0]
        );
        assert_eq!(
            frame[18..28],
            [0x45, 46 << 2 | 1, 0, 82, 0, 0, 0x40, 0, 64, 17]
        );
        assert_eq!(fold(sum_of_words(&frame[18..38])), 0xffff);
        assert_eq!(frame[38..44], [0xc0, 9, 0xc3, 0x50, 0, 62]);
        assert_eq!(
            Stamp::parse(frame[46..64].try_into().unwrap()),
            Ok(stamp(1, 2))
        );

        let frame = stamped(
            &FrameTemplate::new(&flow(None, 100), &v6()).unwrap(),
            &stamp(1, 2),
        );
        assert_eq!(frame[12..22], [0x86, 0xdd, 0x6b, 0x90, 0, 0, 0, 46, 17, 64]);
        assert_eq!(
            Stamp::parse(frame[62..80].try_into().unwrap()),
            Ok(stamp(1, 2))
        );
    }

    #[test]
    fn a_new_stamp_replaces_the_old_one_and_nothing_else() {
        let template = FrameTemplate::new(&flow(None, 200), &v4()).unwrap();
        let mut twice = stamped(&template, &stamp(1, 2));
        template.stamp(&mut twice, &stamp(8, 9));
        assert_eq!(twice, stamped(&template, &stamp(8, 9)));
    }

    #[test]
    fn lengths_that_cannot_be_are_refused_with_the_bound() {
        let min = |pcp, addresses: &Addresses| match FrameTemplate::new(&flow(pcp, 59), addresses) {
            Err(FrameError::TooShort { min, .. }) => min,
            other => panic!("{other:?}"),
        };
        assert_eq!(
            (
                min(None, &v4()),
                min(Some(0), &v4()),
                min(None, &v6()),
                min(Some(0), &v6())
            ),
            (60, 64, 80, 84)
        );
        // The smallest of Ethernet, of 64 octets with FCS.
        assert!(FrameTemplate::new(&flow(None, 60), &v4()).is_ok());
        assert!(matches!(
            FrameTemplate::new(&flow(None, 65_550), &v4()),
            Err(FrameError::TooLong { max: 65_549, .. })
        ));
    }

    #[test]
    fn addresses_of_two_ip_versions_are_refused() {
        let addresses = Addresses {
            destination_ip: v6().destination_ip,
            ..v4()
        };
        let error = FrameTemplate::new(&flow(None, 100), &addresses).unwrap_err();
        assert_eq!(
            error.to_string(),
            "source and destination address must be of one IP version, found 192.0.2.1 and \
             2001:db8::ffff:ffff:ffff:2"
        );
    }
}
