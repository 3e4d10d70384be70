//! Source addresses of MAC control frames: by them a port knows its tester's own.

use std::collections::BTreeSet;

use pfc_ebpf::wire::ethernet::MAC_CONTROL;
use pfc_ebpf::wire::mac_control::number;

use super::{Header, Packet, Protocol, Value};

/// Offset of the EtherType in a frame, and of its end.
const TYPE: usize = 12;
const TYPE_END: usize = TYPE + 2;
/// Offset of the source address.
const SOURCE: usize = 6;
/// Frames of a walk that are looked at: a walk of few values may have any number of frames.
const LOOKED_AT: u64 = 65_536;

impl Packet {
    /// Adds the source addresses of the packet's frames, as 48-bit numbers, if they are MAC control
    /// frames, as long as there are at most `most`; false: there are more.
    pub fn add_control_sources(&self, sources: &mut BTreeSet<u64>, most: usize) -> bool {
        let Some(header) = self.headers.first().filter(|header| header.is_control()) else {
            return true;
        };
        let mut add = |source: u64| {
            sources.contains(&source) || sources.len() < most && sources.insert(source)
        };
        if header.protocol == Protocol::Custom {
            let source = header.octets[SOURCE..].first_chunk::<6>();
            return source.is_none_or(|source| add(number(*source)));
        }
        let source = header.field("src").unwrap_or(&Value::Fixed(0));
        if let Some(source) = source.constant(48) {
            return add(source as u64);
        }
        // A walk is as long as it has frames, though its values may come again.
        let frames = source.walk();
        (0..frames.min(LOOKED_AT)).all(|frame| add(source.at(frame, 48) as u64))
            && frames <= LOOKED_AT
    }
}

impl Header {
    fn is_control(&self) -> bool {
        let control = Value::Fixed(MAC_CONTROL.into());
        match self.protocol {
            Protocol::PfcPause | Protocol::EthernetPause => true,
            Protocol::Ethernet => self.field("ether_type") == Some(&control),
            Protocol::Custom => {
                self.octets.get(TYPE..TYPE_END) == Some(&MAC_CONTROL.to_be_bytes()[..])
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: [u64; 0] = [];

    fn sources(protocol: Protocol, fields: &[(&'static str, Value)], octets: &[u8]) -> Vec<u64> {
        let packet = Packet {
            headers: vec![Header {
                protocol,
                fields: fields.to_vec(),
                octets: octets.to_vec(),
            }],
            ..Packet::default()
        };
        let mut found = BTreeSet::new();
        assert!(packet.add_control_sources(&mut found, 10));
        found.into_iter().collect()
    }

    #[test]
    fn every_source_of_a_control_frame_is_known_whatever_header_makes_it() {
        let list = || Value::List(vec![7, 5, 7]);
        let up = Value::Increment {
            start: 1,
            step: 2,
            count: 3,
        };
        assert_eq!(sources(Protocol::PfcPause, &[], &[]), [0]);
        assert_eq!(sources(Protocol::PfcPause, &[("src", list())], &[]), [5, 7]);
        assert_eq!(
            sources(Protocol::EthernetPause, &[("src", up)], &[]),
            [1, 3, 5]
        );
        let kind = |kind| [("src", list()), ("ether_type", Value::Fixed(kind))];
        assert_eq!(sources(Protocol::Ethernet, &kind(0x8808), &[]), [5, 7]);
        assert_eq!(sources(Protocol::Ethernet, &kind(0x0800), &[]), NONE);
        assert_eq!(sources(Protocol::Ethernet, &[("src", list())], &[]), NONE);
        let custom = [1, 0x80, 0xc2, 0, 0, 1, 2, 0, 0, 0, 0, 9, 0x88, 8, 1, 1];
        assert_eq!(sources(Protocol::Custom, &[], &custom), [0x0200_0000_0009]);
        assert_eq!(sources(Protocol::Custom, &[], &custom[..13]), NONE);
    }

    #[test]
    fn more_sources_than_there_is_room_for_are_warned() {
        let walk = |count, step| {
            let src = Value::Increment {
                start: 0,
                step,
                count,
            };
            let header = Header {
                fields: vec![("src", src)],
                ..Header::new(Protocol::PfcPause)
            };
            let mut found = BTreeSet::from([3]);
            let packet = Packet {
                headers: vec![header],
                ..Packet::default()
            };
            (packet.add_control_sources(&mut found, 4), found.len())
        };
        assert_eq!(walk(4, 1), (true, 4));
        assert_eq!(walk(u64::MAX, 1), (false, 4));
        // One value, and two.
        assert_eq!(walk(u64::MAX, 0), (true, 2));
        assert_eq!(walk(u64::MAX, 1 << 47), (false, 3));
    }
}
