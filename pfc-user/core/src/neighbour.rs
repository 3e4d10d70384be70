//! Questions and answers by which neighbours find each other: ARP (RFC 826) and Neighbour Discovery
//! of IPv6 (RFC 4861). A DUT that routes asks before it sends to a port.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use pfc_ebpf::wire::{Octets, ethernet, fold, ip, sum_of_words};

/// Shortest frame, without FCS.
const SHORTEST: usize = 60;

/// The first octets of an ARP packet: Ethernet, IPv4, their lengths, and the high octet of the
/// operation.
pub(crate) const ARP: [u8; 7] = [0, 1, 0x08, 0, 6, 4, 0];
/// Octets of an ARP packet.
pub(crate) const ARP_LENGTH: usize = 28;
/// Operations of ARP.
pub(crate) const REQUEST: u8 = 1;
pub(crate) const REPLY: u8 = 2;

/// A router would have lowered it: only a neighbour's frame has this (RFC 4861, 7.1.1).
pub(crate) const HOP_LIMIT: u8 = 255;
const SOLICITATION: u8 = 135;
pub(crate) const ADVERTISEMENT: u8 = 136;
/// Type, code, checksum, flags and target.
pub(crate) const MESSAGE_LENGTH: usize = 24;
const SOLICITED: u8 = 0x40;
const OVERRIDE: u8 = 0x20;
/// Options that hold a link-layer address, of one unit of eight octets.
const SOURCE_ADDRESS: [u8; 2] = [1, 1];
pub(crate) const TARGET_ADDRESS: [u8; 2] = [2, 1];
const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
const ALL_NODES_MAC: [u8; 6] = [0x33, 0x33, 0, 0, 0, 1];

/// A port as its neighbours know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Station {
    /// Its MAC address.
    pub mac: [u8; 6],
    /// Its IP address.
    pub ip: IpAddr,
}

impl Station {
    /// The question of this station for the MAC address of `target`, without FCS; `None` where that
    /// is an address of the other family.
    pub fn ask(&self, target: IpAddr) -> Option<Vec<u8>> {
        match (self.ip, target) {
            (IpAddr::V4(own), IpAddr::V4(target)) => {
                let target = [&[0; 6][..], &target.octets()].concat();
                Some(self.arp(&[0xff; 6], REQUEST, own, &target))
            }
            (IpAddr::V6(own), IpAddr::V6(target)) => {
                // The solicited-node address (RFC 4291, 2.7.1), and its MAC address (RFC 2464, 7).
                let [.., a, b, c] = target.octets();
                let mac = [0x33, 0x33, 0xff, a, b, c];
                let mut to = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 1, 0xff00, 0).octets();
                to[13..].copy_from_slice(&mac[3..]);
                let question = ([SOLICITATION, 0], SOURCE_ADDRESS);
                Some(self.discovery(&mac, [own, to.into()], question, target))
            }
            _ => None,
        }
    }

    /// The answer to `frame` (without FCS, untagged), where that asks for this station.
    pub fn answer(&self, frame: &[u8]) -> Option<Vec<u8>> {
        // A device may send a question back to the one that asked it.
        if frame.get(ethernet::SOURCE..ethernet::TYPE)? == self.mac {
            return None;
        }
        match (frame.word(ethernet::TYPE)?, self.ip) {
            (ethernet::ARP, IpAddr::V4(ip)) => self.reply(frame, ip),
            (ethernet::IPV6, IpAddr::V6(ip)) => self.advertise(frame, ip),
            _ => None,
        }
    }

    fn reply(&self, frame: &[u8], ip: Ipv4Addr) -> Option<Vec<u8>> {
        let question = frame[ethernet::LEN..].get(..ARP_LENGTH)?;
        let (sender, target) = (&question[8..18], &question[24..28]);
        if question[..7] != ARP || question[7] != REQUEST || target != ip.octets() {
            return None;
        }
        Some(self.arp(&sender[..6], REPLY, ip, sender))
    }

    /// An ARP packet of this station in a shortest frame; `target` is a MAC and an IP address.
    fn arp(&self, to: &[u8], operation: u8, own: Ipv4Addr, target: &[u8]) -> Vec<u8> {
        let mut frame = self.ethernet(to, ethernet::ARP);
        frame.extend(ARP);
        frame.push(operation);
        frame.extend(self.mac);
        frame.extend(own.octets());
        frame.extend(target);
        frame.resize(SHORTEST, 0);
        frame
    }

    fn advertise(&self, frame: &[u8], own: Ipv6Addr) -> Option<Vec<u8>> {
        let header = frame[ethernet::LEN..].get(..ip::IPV6_LEN)?;
        let length = usize::from(header.word(4)?);
        let message = frame[ethernet::LEN + ip::IPV6_LEN..].get(..length)?;
        let is_question = header[0] >> 4 == 6
            && header[6..8] == [ip::ICMPV6, HOP_LIMIT]
            && length >= MESSAGE_LENGTH
            && message[..2] == [SOLICITATION, 0]
            && message[8..MESSAGE_LENGTH] == own.octets()
            && sum(&header[8..40], message) == 0xffff;
        if !is_question {
            return None;
        }
        let asker = Ipv6Addr::from(*header[8..].first_chunk::<16>()?);
        // An asker without an address asks if any node has the one that it wants: all get the
        // answer.
        let (mac, to, flags) = if asker.is_unspecified() {
            (&ALL_NODES_MAC, ALL_NODES, OVERRIDE)
        } else {
            let given = message[MESSAGE_LENGTH..].strip_prefix(&SOURCE_ADDRESS);
            let mac = given.unwrap_or(&frame[ethernet::SOURCE..]).first_chunk()?;
            (mac, asker, SOLICITED | OVERRIDE)
        };
        let answer = ([ADVERTISEMENT, flags], TARGET_ADDRESS);
        Some(self.discovery(mac, [own, to], answer, own))
    }

    /// A message of Neighbour Discovery about `target` from this station: its type and flags, and
    /// the option in which it has the station's MAC address.
    fn discovery(
        &self,
        mac: &[u8; 6],
        [from, to]: [Ipv6Addr; 2],
        ([kind, flags], option): ([u8; 2], [u8; 2]),
        target: Ipv6Addr,
    ) -> Vec<u8> {
        let mut message = vec![kind, 0, 0, 0, flags, 0, 0, 0];
        message.extend(target.octets());
        message.extend(option);
        message.extend(self.mac);
        let addresses = [from.octets(), to.octets()].concat();
        let checksum = !sum(&addresses, &message);
        message[2..4].copy_from_slice(&checksum.to_be_bytes());
        let mut frame = self.ethernet(mac, ethernet::IPV6);
        frame.extend([0x60, 0, 0, 0]);
        frame.extend((message.len() as u16).to_be_bytes());
        frame.extend([ip::ICMPV6, HOP_LIMIT]);
        frame.extend(addresses);
        frame.extend(message);
        frame
    }

    fn ethernet(&self, destination: &[u8], ethertype: u16) -> Vec<u8> {
        [destination, &self.mac, &ethertype.to_be_bytes()].concat()
    }
}

/// The ones-complement sum of an ICMPv6 message and its pseudo-header; 0xffff where its checksum is
/// right.
fn sum(addresses: &[u8], message: &[u8]) -> u16 {
    let pseudo_header = sum_of_words(addresses) + message.len() as u32 + u32::from(ip::ICMPV6);
    fold(pseudo_header + sum_of_words(message))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAC: [u8; 6] = [2, 0, 0, 0, 0, 2];

    // Questions of 02:00:00:00:00:99 and answers to them, made by scapy.
    const ARP_PAIR: [&str; 2] = [
        "ffffffffffff02000000009908060001080006040001020000000099c6120009000000000000c6120002",
        "02000000009902000000000208060001080006040002020000000002c6120002020000000099c6120009",
    ];
    const ND_PAIR: [&str; 2] = [
        "3333ff00000202000000009986dd6000000000203aff20010db8000000000000000000000009ff02000000000000\
         00000001ff00000287001b870000000020010db80000000000000000000000020101020000000099",
        "02000000009902000000000286dd6000000000203aff20010db800000000000000000000000220010db800000000\
         000000000000000988008a696000000020010db80000000000000000000000020201020000000002",
    ];
    const DUPLICATE_PAIR: [&str; 2] = [
        "3333ff00000202000000009986dd6000000000183aff00000000000000000000000000000000ff02000000000000\
         00000001ff00000287004ceb0000000020010db8000000000000000000000002",
        "33330000000102000000000286dd6000000000203aff20010db8000000000000000000000002ff02000000000000\
         00000000000000018800f9272000000020010db80000000000000000000000020201020000000002",
    ];

    fn octets(hex: &str) -> Vec<u8> {
        let digits: Vec<u32> = hex.chars().map(|c| c.to_digit(16).unwrap()).collect();
        digits
            .chunks(2)
            .map(|pair| (pair[0] << 4 | pair[1]) as u8)
            .collect()
    }

    fn v4() -> Station {
        Station {
            mac: MAC,
            ip: "198.18.0.2".parse().unwrap(),
        }
    }

    fn v6() -> Station {
        Station {
            mac: MAC,
            ip: "2001:db8::2".parse().unwrap(),
        }
    }

    #[test]
    fn questions_are_answered_as_another_implementation_does() {
        let [question, answer] = ARP_PAIR.map(octets);
        let mut padded = answer;
        padded.resize(60, 0);
        assert_eq!(v4().answer(&question), Some(padded.clone()));
        // Devices pad to the shortest frame.
        let long = [question, vec![0; 18]].concat();
        assert_eq!(v4().answer(&long), Some(padded));
        for pair in [ND_PAIR, DUPLICATE_PAIR] {
            let [question, answer] = pair.map(octets);
            assert_eq!(v6().answer(&question), Some(answer));
        }
    }

    #[test]
    fn a_solicitation_is_asked_as_another_implementation_does() {
        let asker = Station {
            mac: [2, 0, 0, 0, 0, 0x99],
            ip: "2001:db8::9".parse().unwrap(),
        };
        assert_eq!(asker.ask(v6().ip), Some(octets(ND_PAIR[0])));
    }

    #[test]
    fn questions_for_others_and_answers_are_left_alone() {
        let [question, answer] = ARP_PAIR.map(octets);
        let other = |ip: &str| Station {
            ip: ip.parse().unwrap(),
            ..v4()
        };
        assert_eq!(other("198.18.0.3").answer(&question), None);
        assert_eq!(v6().answer(&question), None);
        assert_eq!(other("198.18.0.9").answer(&answer), None);
        let [question, answer] = ND_PAIR.map(octets);
        assert_eq!(other("2001:db8::3").answer(&question), None);
        assert_eq!(v4().answer(&question), None);
        let asker = Station {
            mac: [2, 0, 0, 0, 0, 0x99],
            ip: "2001:db8::9".parse().unwrap(),
        };
        assert_eq!(asker.answer(&answer), None);
        // Its own question, which came back.
        let own = Station {
            mac: [2, 0, 0, 0, 0, 0x99],
            ..v6()
        };
        assert_eq!(own.answer(&question), None);
    }

    #[test]
    fn no_damaged_or_shortened_question_is_answered_wrongly() {
        for (station, question) in [(v4(), ARP_PAIR[0]), (v6(), ND_PAIR[0])] {
            let question = octets(question);
            for length in 0..question.len() {
                assert_eq!(station.answer(&question[..length]), None, "{length} octets");
            }
        }
        // The checksum guards the message and the addresses, other fields have one value each;
        // those of Ethernet are nobody's, and the class and flow label may be any.
        let question = octets(ND_PAIR[0]);
        for bit in (ethernet::LEN * 8 + 32)..question.len() * 8 {
            let mut damaged = question.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(v6().answer(&damaged), None, "bit {bit}");
        }
    }

    #[test]
    fn without_its_option_the_asker_is_known_by_its_frame() {
        let mut question = octets(ND_PAIR[0]);
        question.truncate(ethernet::LEN + ip::IPV6_LEN + MESSAGE_LENGTH);
        let at = ethernet::LEN + ip::IPV6_LEN;
        question[ethernet::LEN + 5] = MESSAGE_LENGTH as u8;
        question[at + 2..at + 4].fill(0);
        let checksum = !sum(&question[ethernet::LEN + 8..at], &question[at..]);
        question[at + 2..at + 4].copy_from_slice(&checksum.to_be_bytes());
        let answer = v6().answer(&question).unwrap();
        assert_eq!(answer, octets(ND_PAIR[1]));
    }
}
