//! An interface of a port towards its neighbours: it answers for its address, and asks for the MAC
//! address of its next hop. No clock is asked.

use std::net::{IpAddr, Ipv6Addr};

use pfc_ebpf::units::{Nanos, SECOND};
use pfc_ebpf::wire::{Octets, ethernet, ip};

use super::plan::Interface;
use crate::neighbour::{self, Station};

/// Time from one question to the next without an answer, as RFC 1122 (2.3.2.1) allows and RFC 4861
/// (10) has it.
const AGAIN: Nanos = SECOND;
/// Time after which a next hop that has answered is asked again, lest a device forget the interface
/// or change.
const REFRESH: Nanos = 30 * SECOND;

const VLAN_ID: u16 = 0x0fff;
const PRIORITY_ALONE: u16 = 0;

/// An interface, and what it knows of its next hop.
#[derive(Clone, Debug)]
pub struct Host {
    station: Station,
    gateway: IpAddr,
    vlans: Vec<u16>,
    mac: Option<[u8; 6]>,
    ask_at: Nanos,
}

impl Host {
    /// Makes an interface of a plan, which knows no neighbour yet.
    pub fn new(interface: &Interface) -> Self {
        Self {
            station: Station {
                mac: interface.mac,
                ip: interface.address,
            },
            gateway: interface.gateway,
            vlans: interface.vlans.clone(),
            mac: None,
            ask_at: 0,
        }
    }

    /// The next hop's MAC address, once it has answered.
    pub const fn mac(&self) -> Option<[u8; 6]> {
        self.mac
    }

    /// Time of the next question.
    pub const fn ask_at(&self) -> Nanos {
        self.ask_at
    }

    /// The question that is due at `now`.
    pub fn ask(&mut self, now: Nanos) -> Option<Vec<u8>> {
        if now < self.ask_at {
            return None;
        }
        self.ask_at = now + if self.mac.is_some() { REFRESH } else { AGAIN };
        // The check of a plan refuses a gateway of another family.
        let frame = self.station.ask(self.gateway)?;
        Some(self.tagged(frame))
    }

    /// Takes a frame without FCS; returns the answer, where it asks for this interface.
    pub fn receive(&mut self, frame: &[u8], now: Nanos) -> Option<Vec<u8>> {
        let frame = self.untagged(frame)?;
        if let Some(mac) = self.answered(&frame) {
            self.mac = Some(mac);
            self.ask_at = now + REFRESH;
        }
        let answer = self.station.answer(&frame)?;
        Some(self.tagged(answer))
    }

    /// The MAC address of the next hop, where the frame has it.
    fn answered(&self, frame: &[u8]) -> Option<[u8; 6]> {
        let body = frame.get(ethernet::LEN..)?;
        match (frame.word(ethernet::TYPE)?, self.gateway) {
            // A question from the next hop has its address as an answer has (RFC 826).
            (ethernet::ARP, IpAddr::V4(gateway)) => {
                let packet = body.get(..neighbour::ARP_LENGTH)?;
                let is_known = packet[..7] == neighbour::ARP
                    && [neighbour::REQUEST, neighbour::REPLY].contains(&packet[7])
                    && packet[14..18] == gateway.octets();
                is_known.then(|| packet[8..].first_chunk().copied())?
            }
            (ethernet::IPV6, IpAddr::V6(gateway)) => advertised(body, gateway),
            _ => None,
        }
    }

    /// The frame without this interface's tags; `None` where it has others. A tag of VLAN 0 has a
    /// priority alone, and is of no VLAN (IEEE 802.1Q, 9.6).
    fn untagged(&self, frame: &[u8]) -> Option<Vec<u8>> {
        let mut at = ethernet::TYPE;
        let mut vlans = self.vlans.iter().filter(|vlan| **vlan != PRIORITY_ALONE);
        while let Some(ethernet::C_TAG | ethernet::S_TAG) = frame.word(at) {
            let vlan = frame.word(at + 2)? & VLAN_ID;
            if vlan != PRIORITY_ALONE && vlans.next() != Some(&vlan) {
                return None;
            }
            at += ethernet::TAG_LEN;
        }
        if vlans.next().is_some() {
            return None;
        }
        Some([frame.get(..ethernet::TYPE)?, &frame[at..]].concat())
    }

    fn tagged(&self, mut frame: Vec<u8>) -> Vec<u8> {
        for vlan in self.vlans.iter().rev() {
            let tag = [ethernet::C_TAG.to_be_bytes(), vlan.to_be_bytes()];
            frame.splice(ethernet::TYPE..ethernet::TYPE, tag.into_iter().flatten());
        }
        frame
    }
}

/// The MAC address in a Neighbour Advertisement of `gateway` (RFC 4861, 4.4).
fn advertised(packet: &[u8], gateway: Ipv6Addr) -> Option<[u8; 6]> {
    let (header, message) = packet.split_at_checked(ip::IPV6_LEN)?;
    let is_of_gateway = header[6..8] == [ip::ICMPV6, neighbour::HOP_LIMIT]
        && message.first() == Some(&neighbour::ADVERTISEMENT)
        && message.get(8..neighbour::MESSAGE_LENGTH)? == gateway.octets();
    let mut options = message.get(neighbour::MESSAGE_LENGTH..)?;
    while is_of_gateway && options.len() >= 8 {
        if options.starts_with(&neighbour::TARGET_ADDRESS) {
            return options[2..].first_chunk().copied();
        }
        // Lengths are in units of eight octets; one of 0 would have no end.
        options = options.get(usize::from(options[1]).max(1) * 8..)?;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::plan::PortIndex;

    fn interface(address: &str, gateway: &str, last: u8, vlans: &[u16]) -> Host {
        Host::new(&Interface {
            name: "interface".into(),
            port: PortIndex(0),
            mac: [2, 0, 0, 0, 0, last],
            vlans: vlans.to_vec(),
            address: address.parse().unwrap(),
            prefix: 24,
            gateway: gateway.parse().unwrap(),
        })
    }

    const PAIRS: [[&str; 2]; 2] = [["198.18.0.1", "198.18.0.2"], ["2001:db8::1", "2001:db8::2"]];

    #[test]
    fn two_interfaces_find_each_other_behind_their_tags() {
        for ([here, there], vlans) in PAIRS
            .into_iter()
            .flat_map(|pair| [(pair, vec![]), (pair, vec![7]), (pair, vec![7, 4000])])
        {
            let mut one = interface(here, there, 1, &vlans);
            let mut other = interface(there, here, 2, &vlans);
            let question = one.ask(5).unwrap();
            let answer = other.receive(&question, 6).unwrap();
            assert_eq!(one.receive(&answer, 7), None);
            assert_eq!(one.mac(), Some([2, 0, 0, 0, 0, 2]), "{here}, {vlans:?}");
        }
    }

    #[test]
    fn frames_of_another_vlan_are_not_for_an_interface() {
        let [here, there] = PAIRS[0];
        let question = interface(here, there, 1, &[7]).ask(0).unwrap();
        for vlans in [vec![], vec![8], vec![7, 7]] {
            let mut other = interface(there, here, 2, &vlans);
            assert_eq!(other.receive(&question, 1), None, "{vlans:?}");
            assert_eq!(other.mac(), None);
        }
    }

    #[test]
    fn tags_with_a_priority_alone_are_of_no_vlan() {
        for [here, there] in PAIRS {
            for vlans in [vec![], vec![7]] {
                let question = interface(here, there, 1, &vlans).ask(0).unwrap();
                let mut tagged = question.clone();
                // Priority 3.
                tagged.splice(ethernet::TYPE..ethernet::TYPE, [0x81, 0, 0x60, 0]);
                let answer = interface(there, here, 2, &vlans).receive(&question, 1);
                assert_eq!(
                    interface(there, here, 2, &vlans).receive(&tagged, 1),
                    answer
                );
                assert!(answer.is_some());
                let mut other = interface(there, here, 2, &[8]);
                assert_eq!(other.receive(&tagged, 1), None);
            }
        }
    }

    #[test]
    fn a_reply_tells_the_next_hop_whatever_the_priority_in_its_tag() {
        let untagged: &[u16] = &[];
        for [here, there] in PAIRS {
            for (vlans, tags, is_known) in [
                (untagged, untagged, true),
                // Priority 3, and one that may be dropped; a VLAN of another.
                (untagged, &[0x6000], true),
                (untagged, &[0x1000], true),
                (untagged, &[7], false),
                (&[7], &[7], true),
                (&[7], &[0xc007], true),
                (&[7], &[0x1007], true),
                (&[7], &[0x6000, 7], true),
                (&[7], untagged, false),
                (&[7], &[0x6000], false),
                (&[7], &[8], false),
            ] {
                let question = interface(here, there, 1, &[]).ask(0).unwrap();
                let mut reply = interface(there, here, 2, &[])
                    .receive(&question, 1)
                    .unwrap();
                for tag in tags.iter().rev() {
                    let [high, low] = tag.to_be_bytes();
                    reply.splice(ethernet::TYPE..ethernet::TYPE, [0x81, 0, high, low]);
                }
                let mut one = interface(here, there, 1, vlans);
                assert_eq!(one.receive(&reply, 2), None);
                let mac = is_known.then_some([2, 0, 0, 0, 0, 2]);
                assert_eq!(one.mac(), mac, "{here}: {tags:x?} for {vlans:?}");
            }
        }
    }

    #[test]
    fn the_next_hop_is_asked_each_second_until_it_answers() {
        let [here, there] = PAIRS[0];
        let mut one = interface(here, there, 1, &[]);
        let question = one.ask(0).unwrap();
        assert_eq!(one.ask(AGAIN - 1), None);
        assert_eq!(one.ask(AGAIN), Some(question.clone()));
        let answer = interface(there, here, 2, &[]).receive(&question, 0);
        one.receive(&answer.unwrap(), AGAIN);
        assert_eq!(one.ask(3 * AGAIN), None);
        assert_eq!(one.ask(AGAIN + REFRESH), Some(question));
    }

    #[test]
    fn what_others_say_is_not_taken_for_the_next_hop() {
        let [here, there] = PAIRS[0];
        let mut one = interface(here, there, 1, &[]);
        let mut third = interface("198.18.0.3", here, 3, &[]);
        one.receive(&third.ask(0).unwrap(), 0);
        assert_eq!(one.mac(), None);
        for length in 0..60 {
            let question = interface(there, here, 2, &[]).ask(0).unwrap();
            one.receive(&question[..length], 0);
            assert_eq!(one.mac().is_some(), length >= 42, "{length} octets");
            one = interface(here, there, 1, &[]);
        }
    }
}
