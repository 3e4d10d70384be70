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

use crate::stamp::MASK_40;
use crate::wire::{Part, is_right};

/// First two octets; another layout has another.
pub const MAGIC: u16 = 0x5646;
/// Length in octets: what an Ethernet frame of 64 octets has room for behind IPv4 and UDP.
pub const LEN: usize = 18;
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
        let words = [
            MAGIC,
            self.flow,
            self.generation,
            (self.sequence >> 24) as u16,
            (self.sequence >> 8) as u16,
            (self.sequence << 8) as u16 | (self.time >> 32) as u16 & 0xff,
            (self.time >> 16) as u16,
            self.time as u16,
        ];
        let sum = words.iter().fold(0, |sum, word| sum + *word as u32);
        let check = !crate::wire::fold(sum);
        let mut out = [0; LEN];
        let (places, _) = out.as_chunks_mut::<2>();
        for (place, word) in places.iter_mut().zip(words.into_iter().chain([check])) {
            *place = word.to_be_bytes();
        }
        out
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

    /// One-way latency of a frame that arrived at `now` (CLOCK_MONOTONIC nanoseconds); 0 where the
    /// clocks of two CPUs differ by more than it took.
    #[inline(always)]
    pub const fn latency(&self, now: u64) -> u64 {
        let age = (now.wrapping_sub(self.time) << 24) as i64 >> 24;
        if age < 0 { 0 } else { age as u64 }
    }
}

/// The whole sequence number of which a stamp has the low 40 bits: the one nearest to `next`, the
/// number after the highest that was seen. `None` where it would be below 0.
#[inline(always)]
pub const fn whole_sequence(low: u64, next: u64) -> Option<u64> {
    let ahead = (low.wrapping_sub(next) << 24) as i64 >> 24;
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

    #[test]
    fn latency_survives_the_40_bits_and_is_never_negative() {
        let stamp = FlowStamp {
            time: MASK_40,
            ..STAMP
        };
        assert_eq!(stamp.latency((1 << 40) + 9), 10);
        assert_eq!(stamp.latency(MASK_40 - 7), 0);
    }
}
