//! The stamp of a flow's frames: their last octets, behind any headers.
//!
//! ```text
//! octet 0       2      4            6               11          16       18
//!       | magic | flow | generation | sequence (40) | time (40) | check  |
//! ```
//! All big-endian. `check` makes the ones-complement sum of the nine words 0xffff. So the stamp
//! adds nothing to any checksum that covers it, wherever it begins: at an odd octet its words are
//! summed with their octets swapped, and 0xffff swapped is the same (RFC 1071, 2B). Frames are made
//! with zeros in its place, and stamped without a checksum being touched.
//!
//! The stamp stands at the end, for there it is found behind whatever headers, tags and tunnels a
//! frame has, and also where a device adds or takes off one.
//!
//! Fields that differ from frame to frame are as in a [`crate::stamp::Stamp`], so that one
//! generator in the kernel ([`crate::abi::generate`]) makes both. A frame may be under way for 9
//! minutes before its age is misread.
//!
//! Frames without the room for that have a short stamp, which a TCP segment in 64 octets still
//! holds:
//!
//! ```text
//! octet 0                   2          4       6
//!       | flow, generation  | sequence | check |
//! ```
//! The flow has the low 13 bits of its word, and the generation the high three. Whether a frame has
//! a short stamp is known by its flow alone, as nothing else tells: one frame in 65536 has such a
//! sum by chance.

use crate::stamp::{MASK_40, apart_40, with_check};
use crate::wire::{Part, is_right};

/// First two octets; another layout has another.
pub const MAGIC: u16 = 0x5646;
/// Length in octets: what an Ethernet frame of 64 octets has room for behind IPv4 and UDP.
pub const LEN: usize = crate::stamp::LEN;
/// Length of a short stamp in octets: what an Ethernet frame of 64 octets has room for behind IPv4
/// and TCP.
pub const SHORT_LEN: usize = 6;
/// Bits of a flow's place in a short stamp.
pub const SHORT_FLOW_BITS: u32 = 13;
/// Sequence numbers behind the highest one that a short stamp can have. Any other is ahead of it.
const SHORT_BEHIND: u16 = 512;

/// Content that a stamp has room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Everything.
    Whole,
    /// Flow and sequence number, without the time.
    Short,
}

impl Form {
    /// Octets.
    #[expect(clippy::len_without_is_empty, reason = "no stamp is empty")]
    pub const fn len(self) -> usize {
        match self {
            Self::Whole => LEN,
            Self::Short => SHORT_LEN,
        }
    }
}

/// Octets that a frame within a tunnel leaves for an FCS of its own. The stamp stands before them.
pub const INNER_FCS: usize = 4;
/// A stamp's content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowStamp {
    /// Place of the flow in the maps.
    pub flow: u16,
    /// The start that the frame belongs to: no two in a row have the same at one place.
    pub generation: u16,
    /// Counts up from 0 with each start, and from 0 again after 2^40 frames.
    pub sequence: u64,
    /// CLOCK_MONOTONIC before the send, nanoseconds, low 40 bits.
    pub time: u64,
}

/// Octets that are no whole stamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoStamp {
    /// The magic differs.
    Foreign,
    /// The magic of a stamp, and another sum.
    Damaged,
}

impl FlowStamp {
    /// The octets as they stand in the frame.
    pub fn emit(&self) -> [u8; LEN] {
        with_check([
            MAGIC,
            self.flow,
            self.generation,
            (self.sequence >> 24) as u16,
            (self.sequence >> 8) as u16,
            (self.sequence << 8) as u16 | (self.time >> 32) as u16 & 0xff,
            (self.time >> 16) as u16,
            self.time as u16,
        ])
    }

    /// The octets of a short stamp as they stand in the frame.
    pub fn emit_short(&self) -> [u8; SHORT_LEN] {
        let place = short_place(self.flow, self.generation);
        let [a, b, c] = short_stamp(place, self.sequence as u16).map(u16::to_be_bytes);
        [a[0], a[1], b[0], b[1], c[0], c[1]]
    }

    /// Reads a stamp.
    #[inline(always)]
    pub fn read(octets: impl Part) -> Result<Self, NoStamp> {
        if octets.word::<0>() != MAGIC {
            return Err(NoStamp::Foreign);
        }
        let sum = octets.summand::<0>()
            + octets.summand::<4>()
            + octets.summand::<8>()
            + octets.summand::<12>()
            + u16::from_be(octets.word::<16>()) as u64;
        if !is_right(sum) {
            return Err(NoStamp::Damaged);
        }
        Ok(Self::content(octets))
    }

    /// Returns the fields of a stamp, be it whole or not.
    #[inline(always)]
    pub fn content(octets: impl Part) -> Self {
        Self {
            flow: octets.word::<2>(),
            generation: octets.word::<4>(),
            sequence: octets.quad::<6>() >> 24,
            time: octets.quad::<8>() & MASK_40,
        }
    }
}

const FLOW_MASK: u16 = (1 << SHORT_FLOW_BITS) - 1;
/// The bits of a generation that a short stamp has.
pub const SHORT_GENERATIONS: u16 = u16::MAX >> SHORT_FLOW_BITS;

/// First word of a short stamp.
pub const fn short_place(flow: u16, generation: u16) -> u16 {
    generation << SHORT_FLOW_BITS | flow & FLOW_MASK
}

/// The words of a short stamp, by the first one and the sequence number.
#[inline(always)]
pub const fn short_stamp(place: u16, sequence: u16) -> [u16; 3] {
    [
        place,
        sequence,
        !crate::wire::fold(place as u32 + sequence as u32),
    ]
}

/// A short stamp's content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShortStamp {
    /// Place of the flow in the maps.
    pub flow: u16,
    /// The low three bits of the start's generation.
    pub generation: u16,
    /// The low 16 bits of the sequence number.
    pub sequence: u16,
}

impl ShortStamp {
    /// Reads a short stamp; `None` where the sum is another's.
    #[inline(always)]
    pub fn read(octets: [u8; SHORT_LEN]) -> Option<Self> {
        let [a, b, c, d, e, f] = octets;
        let word = |high, low| u16::from_be_bytes([high, low]);
        let (place, sequence) = (word(a, b), word(c, d));
        if !is_right(place as u64 + sequence as u64 + word(e, f) as u64) {
            return None;
        }
        Some(Self {
            flow: place & FLOW_MASK,
            generation: place >> SHORT_FLOW_BITS,
            sequence,
        })
    }

    /// The whole sequence number, `next` being the one after the highest that was seen: up to 512
    /// behind it, else ahead of it. So up to 65,023 frames may be lost in a row. `None` where it
    /// would be below 0.
    #[inline(always)]
    pub const fn whole_sequence(&self, next: u64) -> Option<u64> {
        let ahead = self.sequence.wrapping_sub(next as u16);
        if ahead < SHORT_BEHIND.wrapping_neg() {
            return Some(next + ahead as u64);
        }
        next.checked_sub(ahead.wrapping_neg() as u64)
    }
}

/// The whole sequence number of which a stamp has the low 40 bits: the one nearest to `next`, the
/// number after the highest that was seen. `None` where it would be below 0.
#[inline(always)]
pub const fn whole_sequence(low: u64, next: u64) -> Option<u64> {
    let ahead = apart_40(next, low);
    let whole = next as i64 + ahead;
    if whole < 0 { None } else { Some(whole as u64) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Octets;

    const STAMP: FlowStamp = FlowStamp {
        flow: 0x0102,
        generation: 0x0304,
        sequence: 0x05_0607_0809,
        time: 0x0a_0b0c_0d0e,
    };

    #[test]
    fn what_is_emitted_is_read_again_up_to_the_largest_numbers() {
        let largest = FlowStamp {
            flow: u16::MAX,
            generation: u16::MAX,
            sequence: MASK_40,
            time: MASK_40,
        };
        for stamp in [STAMP, largest] {
            assert_eq!(FlowStamp::read(stamp.emit()), Ok(stamp));
        }
    }

    #[test]
    fn the_layout_is_as_documented() {
        // 0x5646 + 0x0102 + 0x0304 + 0x0506 + 0x0708 + 0x090a + 0x0b0c + 0x0d0e = 0x877e.
        let octets = [
            0x56, 0x46, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 0x78, 0x81,
        ];
        assert_eq!(STAMP.emit(), octets);
    }

    #[test]
    fn it_adds_nothing_to_a_sum_wherever_it_begins() {
        for begin in 0..4 {
            let mut octets: Vec<u8> = (1..40).collect();
            octets[begin..begin + LEN].fill(0);
            let before = octets[..].sum(0, octets.len());
            octets[begin..begin + LEN].copy_from_slice(&STAMP.emit());
            assert_eq!(octets[..].sum(0, octets.len()), before, "from {begin}");
        }
    }

    #[test]
    fn a_short_stamp_is_read_again_and_adds_nothing_to_a_sum() {
        for (flow, generation, sequence) in [(0, 0, 0), (8191, 7, 0xffff), (258, 5, 0x0708)] {
            let stamp = FlowStamp {
                flow,
                generation: 0x1230 | generation & 7,
                sequence: 0x3_0000 | u64::from(sequence),
                time: 9,
            };
            let octets = stamp.emit_short();
            let generation = stamp.generation & 7;
            let read = ShortStamp {
                flow,
                generation,
                sequence,
            };
            assert_eq!(ShortStamp::read(octets), Some(read));
            for begin in 0..2 {
                let mut frame = [0; SHORT_LEN + 1];
                frame[begin..begin + SHORT_LEN].copy_from_slice(&octets);
                assert_eq!(frame[..].sum(0, 7), Some(0xffff));
            }
        }
        // 0xa102 + 0x0708 = 0xa80a.
        let stamp = FlowStamp {
            generation: 5,
            flow: 0x102,
            sequence: 0x0708,
            time: 0,
        };
        assert_eq!(stamp.emit_short(), [0xa1, 2, 7, 8, 0x57, 0xf5]);
    }

    #[test]
    fn every_flipped_bit_of_a_short_stamp_is_noticed_and_zeros_are_none() {
        for bit in 0..SHORT_LEN * 8 {
            let mut octets = STAMP.emit_short();
            octets[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(ShortStamp::read(octets), None, "bit {bit}");
        }
        assert_eq!(ShortStamp::read([0; SHORT_LEN]), None);
    }

    #[test]
    fn short_sequence_numbers_go_on_after_16_bits_and_after_a_long_loss() {
        let whole = |sequence, next| {
            ShortStamp {
                flow: 0,
                generation: 0,
                sequence,
            }
            .whole_sequence(next)
        };
        assert_eq!(whole(5, 3), Some(5));
        assert_eq!(whole(2, 0xffff), Some(0x1_0002));
        assert_eq!(whole(0xffff, 0x1_0002), Some(0xffff));
        assert_eq!(whole(0xffff, 0), None);
        // 512 behind at most; 65,023 ahead.
        assert_eq!(whole(0xfe00, 0x1_0000), Some(0xfe00));
        assert_eq!(whole(0xfdff, 0x1_0000), Some(0x1_fdff));
    }

    #[test]
    fn every_flipped_bit_is_noticed() {
        for bit in 0..LEN * 8 {
            let mut octets = STAMP.emit();
            octets[bit / 8] ^= 1 << (bit % 8);
            let expected = if bit < 16 {
                NoStamp::Foreign
            } else {
                NoStamp::Damaged
            };
            assert_eq!(FlowStamp::read(octets), Err(expected), "bit {bit}");
        }
    }

    #[test]
    fn sequence_numbers_go_on_after_40_bits() {
        assert_eq!(whole_sequence(5, 3), Some(5));
        assert_eq!(whole_sequence(2, MASK_40 + 2), Some(MASK_40 + 3));
        assert_eq!(whole_sequence(MASK_40, MASK_40 + 2), Some(MASK_40));
        assert_eq!(whole_sequence(MASK_40, 0), None);
    }
}
