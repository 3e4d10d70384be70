//! Filters of captures: which of the received frames are kept.

use pfc_ebpf::wire::{Octets, ethernet};

/// Most tags before an IP header that are looked behind.
const TAGS: usize = 2;

/// Origin of a field's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum From {
    /// The first octet of the frame.
    Frame,
    /// The tag control information of its first VLAN tag.
    Tag,
    /// The IPv4 header of a frame with at most two tags.
    Ipv4,
    /// The IPv6 header of such a frame.
    Ipv6,
}

/// A field, and the value that it has to have. A frame without the field is not kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Filter {
    /// Origin of its place.
    pub from: From,
    /// Bits between the origin and the field.
    pub bit: usize,
    /// Width in bits, at most 128.
    pub bits: usize,
    /// Value of the field, in the low bits.
    pub value: u128,
    /// Bits of the field that are not compared.
    pub ignored: u128,
    /// True if frames with that value are the ones that are not kept.
    pub negate: bool,
}

impl Filter {
    /// Returns true if this filter keeps the frame.
    pub fn keeps(&self, frame: &[u8]) -> bool {
        let begin = begin(frame, self.from);
        let found = begin.and_then(|begin| bits(frame, begin * 8 + self.bit, self.bits));
        found.is_some_and(|found| ((found ^ self.value) & !self.ignored == 0) != self.negate)
    }
}

/// The octet at which `from` begins; `None` if the frame has none.
fn begin(frame: &[u8], from: From) -> Option<usize> {
    let is_tag = |at| matches!(frame.word(at), Some(ethernet::C_TAG | ethernet::S_TAG));
    let tags = || (0..TAGS).take_while(|tag| is_tag(12 + 4 * tag)).count();
    let header = |kind| {
        let at = 12 + 4 * tags();
        (frame.word(at) == Some(kind)).then_some(at + 2)
    };
    match from {
        From::Frame => Some(0),
        From::Tag => is_tag(12).then_some(14),
        From::Ipv4 => header(ethernet::IPV4),
        From::Ipv6 => header(ethernet::IPV6),
    }
}

/// Returns `count` bits from the bit `from` on; `None` if the frame ends before.
fn bits(frame: &[u8], from: usize, count: usize) -> Option<u128> {
    let to = from.checked_add(count)?;
    if to > frame.len() * 8 {
        return None;
    }
    let bit = |at: usize| u128::from(frame[at / 8] >> (7 - at % 8) & 1);
    Some((from..to).fold(0, |bits, at| bits << 1 | bit(at)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An IPv4 frame with DSCP 46 and protocol 17, behind these tags.
    fn frame(tags: &[u16]) -> Vec<u8> {
        let mut frame = vec![0xfe; 6];
        frame.extend([2, 0, 0, 0, 0, 1]);
        for tag in tags {
            frame.extend(ethernet::C_TAG.to_be_bytes());
            frame.extend(tag.to_be_bytes());
        }
        frame.extend(ethernet::IPV4.to_be_bytes());
        frame.extend([0x45, 46 << 2, 0, 20, 0, 0, 0, 0, 64, 17, 0, 0]);
        frame.extend([192, 0, 2, 1, 192, 0, 2, 2]);
        frame
    }

    fn filter(from: From, bit: usize, bits: usize, value: u128) -> Filter {
        Filter {
            from,
            bit,
            bits,
            value,
            ignored: 0,
            negate: false,
        }
    }

    #[test]
    fn fields_are_found_behind_tags() {
        for tags in [&[][..], &[3 << 13 | 7], &[3 << 13 | 7, 9]] {
            let frame = frame(tags);
            assert!(filter(From::Ipv4, 8, 8, 46 << 2).keeps(&frame));
            assert!(filter(From::Ipv4, 128, 32, 0xc000_0202).keeps(&frame));
            assert!(!filter(From::Ipv4, 72, 8, 6).keeps(&frame));
            assert!(filter(From::Frame, 0, 48, 0xfefe_fefe_fefe).keeps(&frame));
            assert!(!filter(From::Ipv6, 0, 4, 6).keeps(&frame));
            assert_eq!(filter(From::Tag, 0, 3, 3).keeps(&frame), !tags.is_empty());
            assert_eq!(filter(From::Tag, 4, 12, 7).keeps(&frame), !tags.is_empty());
        }
        assert!(
            !filter(From::Ipv4, 8, 8, 0).keeps(&frame(&[1, 2, 3])),
            "three tags"
        );
    }

    #[test]
    fn bits_of_the_mask_are_not_compared_and_negation_turns_a_field_alone() {
        let frame = frame(&[]);
        let source = Filter {
            ignored: 0xff,
            ..filter(From::Ipv4, 96, 32, 0xc000_02aa)
        };
        assert!(source.keeps(&frame));
        let others = Filter {
            negate: true,
            ..source
        };
        assert!(!others.keeps(&frame));
        // A field that is not there fails either way.
        for negate in [false, true] {
            let beyond = Filter {
                negate,
                ..filter(From::Frame, frame.len() * 8 - 7, 8, 0)
            };
            assert!(!beyond.keeps(&frame), "{negate}");
        }
    }
}
