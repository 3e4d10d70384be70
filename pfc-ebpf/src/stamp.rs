//! The stamp that each test frame carries at the start of its UDP payload.
//!
//! ```text
//! octet 0       2      4              6                11           16       18
//!       | magic | run  | flow | phase | sequence (40)  | time (40)  | check  |
//!                        (13)   (3)
//! ```
//! All big-endian. `check` makes the ones-complement sum of the nine words 0xffff, so that a
//! damaged stamp is told from damage elsewhere in the frame.
//!
//! One layout serves every frame: its 18 octets fit the smallest frame that Ethernet has, 64 octets
//! with FCS, with IPv4 and no tag; 68 with one. For that, numbers are as long as a repetition needs
//! and no longer: a flow has at most 2^40 frames (15 minutes of the smallest frames at 800 Gbit/s),
//! and a frame may be under way for 9 minutes before its age is misread.

use crate::wire::{Part, fold, is_right};

/// UDP destination port of test frames; the source port tells flows apart for hashing.
pub const UDP_PORT: u16 = 50_000;
/// UDP source port of flow 0, the first of the dynamic ports (RFC 6335).
pub const FIRST_SOURCE_PORT: u16 = 49_152;
/// Flows that source ports tell apart: all dynamic ports.
pub const SOURCE_PORTS: u16 = 16_384;
/// First two octets; another layout has another.
pub const MAGIC: u16 = 0x5632;
/// Length in octets.
pub const LEN: usize = 18;
/// Flows that stamps tell apart.
pub const FLOWS: u16 = 1 << (16 - PHASE_BITS);
/// Sequence numbers and times are kept to 40 bits: 18 minutes of nanoseconds.
pub const MASK_40: u64 = (1 << 40) - 1;
/// Bits of the phase, in one word with the flow.
const PHASE_BITS: u32 = 3;
const _: () = assert!(Phase::COUNT <= 1 << PHASE_BITS);

numbered! {
    /// The phase of a repetition in which a frame was sent. No frame is sent in `Drain`.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
    #[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
    Phase {
        /// Traffic without a storm.
        Baseline = 0,
        /// Traffic during the storm.
        Storm = 1,
        /// The storm has stopped; what the DUT held arrives.
        Drain = 2,
        /// Traffic after the drain.
        Resume = 3,
        /// Running traffic, with single XOFF and XON frames.
        Probe = 4,
    }
}

impl Phase {
    /// This phase's bit in [`crate::abi::account::FlowConfig::log_phases`].
    pub const fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// A stamp's content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// The repetition that sent the frame.
    pub run: u16,
    /// Index of the flow, below [`FLOWS`].
    pub flow: u16,
    /// Phase in which it was sent.
    pub phase: Phase,
    /// Counts up from 0 in each flow, through all phases; 40 bits.
    pub sequence: u64,
    /// CLOCK_MONOTONIC before the send, nanoseconds, low 40 bits.
    pub time: u64,
}

/// The defect of octets that are no stamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DamagedStamp;

/// Flow and phase in one word.
#[inline(always)]
pub const fn flow_and_phase(flow: u16, phase: Phase) -> u16 {
    flow << PHASE_BITS | phase as u16
}

/// A stamp's words in network order, and the check behind them.
#[inline(always)]
pub(crate) fn with_check(words: [u16; 8]) -> [u8; LEN] {
    let mut out = [0; LEN];
    let mut sum = 0u32;
    let mut i = 0;
    while i < words.len() {
        let [high, low] = words[i].to_be_bytes();
        out[2 * i] = high;
        out[2 * i + 1] = low;
        sum += words[i] as u32;
        i += 1;
    }
    let [high, low] = (!fold(sum)).to_be_bytes();
    out[LEN - 2] = high;
    out[LEN - 1] = low;
    out
}

impl Stamp {
    /// The octets as they stand in the frame.
    #[inline(always)]
    pub fn emit(&self) -> [u8; LEN] {
        with_check([
            MAGIC,
            self.run,
            flow_and_phase(self.flow, self.phase),
            (self.sequence >> 24) as u16,
            (self.sequence >> 8) as u16,
            (self.sequence << 8) as u16 | (self.time >> 32) as u16 & 0xff,
            (self.time >> 16) as u16,
            self.time as u16,
        ])
    }

    /// Reads a stamp; an error when the magic, the phase or the check is wrong.
    pub fn parse(octets: &[u8; LEN]) -> Result<Self, DamagedStamp> {
        Self::read(*octets)
    }

    /// Reads a stamp from its [`LEN`] octets; an error as of [`Stamp::parse`].
    #[inline(always)]
    pub fn read(octets: impl Part) -> Result<Self, DamagedStamp> {
        let (a, b) = (
            octets.summand::<0>() + octets.summand::<4>(),
            octets.summand::<8>() + octets.summand::<12>(),
        );
        let last = u16::from_be(octets.word::<16>()) as u64;
        let flow = octets.word::<4>();
        let Some(phase) = Phase::from_number(flow as u8 & ((1 << PHASE_BITS) - 1)) else {
            return Err(DamagedStamp);
        };
        if octets.word::<0>() != MAGIC || !is_right(a + b + last) {
            return Err(DamagedStamp);
        }
        Ok(Self {
            run: octets.word::<2>(),
            flow: flow >> PHASE_BITS,
            phase,
            sequence: octets.quad::<6>() >> 24,
            time: octets.quad::<10>() >> 16 & MASK_40,
        })
    }

    /// True if the frame had been sent by `time` (CLOCK_MONOTONIC nanoseconds), by the sender's
    /// clock.
    #[inline(always)]
    pub const fn is_sent_by(&self, time: u64) -> bool {
        self.age(time) >= 0
    }

    /// One-way latency of a frame that arrived at `now` (CLOCK_MONOTONIC nanoseconds).
    #[inline(always)]
    pub const fn latency(&self, now: u64) -> u64 {
        latency(self.time, now)
    }

    /// Nanoseconds from the stamp's time to `time`, negative where it is later: the nearer way
    /// round the 40 bits.
    #[inline(always)]
    const fn age(&self, time: u64) -> i64 {
        apart_40(self.time, time)
    }
}

/// One-way latency of a frame with that time in its stamp that arrived at `now` (CLOCK_MONOTONIC
/// nanoseconds).
#[inline(always)]
pub const fn latency(time: u64, now: u64) -> u64 {
    let age = apart_40(time, now);
    // Clocks of two CPUs may differ by a little: a stamp of the near future is no latency of 18
    // minutes.
    if age < 0 { 0 } else { age as u64 }
}

/// Distance from one number to another by their low 40 bits, the nearer way round.
#[inline(always)]
pub const fn apart_40(from: u64, to: u64) -> i64 {
    (to.wrapping_sub(from) << 24) as i64 >> 24
}

/// Odd, and no near fraction of a power of two: its multiples by the numbers in any regular series
/// fall evenly.
const SPREAD: u64 = 0xd1b5_4a32_d192_ed03;

/// True if the frame of that sequence number is in a sample of one in `every`, a power of two up to
/// 2^32.
///
/// Not by the sequence number itself: of a DUT that deals the frames of a flow to two, four, ...
/// lanes in turn, such a sample would be of the frames of one lane alone.
#[inline(always)]
pub const fn is_sampled(sequence: u64, every: u64) -> bool {
    sequence.wrapping_mul(SPREAD) >> 32 & every.wrapping_sub(1) == 0
}

/// The bucket of a latency: its significant bits, at most 31 (see
/// [`crate::abi::account::LATENCY_BUCKETS`]). By halves, for BPF has no instruction that counts
/// zeros.
#[inline(always)]
pub const fn significant_bits(latency: u64) -> usize {
    if latency >> 31 > 0 {
        return 31;
    }
    let (mut rest, mut bits) = (latency as u32, 0);
    let mut half = 16;
    while half > 0 {
        if rest >> half > 0 {
            rest >>= half;
            bits += half;
        }
        half /= 2;
    }
    bits + rest as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAMP: Stamp = Stamp {
        run: 0x0102,
        flow: FLOWS - 2,
        phase: Phase::Resume,
        sequence: 0x12_3456_789a,
        time: 0xfe_dcba_9876,
    };

    #[test]
    fn what_is_emitted_is_parsed_again() {
        assert_eq!(Stamp::parse(&STAMP.emit()), Ok(STAMP));
    }

    #[test]
    fn the_layout_is_as_documented() {
        let stamp = Stamp {
            run: 0x0102,
            flow: 0x0403 >> 3,
            phase: Phase::Resume,
            sequence: 0x05_0607_0809,
            time: 0x0a_0b0c_0d0e,
        };
        // 0x5632 + 0x0102 + 0x0403 + 0x0506 + 0x0708 + 0x090a + 0x0b0c + 0x0d0e = 0x8869.
        let octets = [
            0x56, 0x32, 1, 2, 4, 3, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 0x77, 0x96,
        ];
        assert_eq!(stamp.emit(), octets);
    }

    #[test]
    fn the_largest_numbers_fit() {
        for phase in Phase::ALL {
            let stamp = Stamp {
                run: u16::MAX,
                flow: FLOWS - 1,
                phase,
                sequence: MASK_40,
                time: MASK_40,
            };
            assert_eq!(Stamp::parse(&stamp.emit()), Ok(stamp));
        }
    }

    #[test]
    fn every_flipped_bit_is_noticed() {
        for bit in 0..LEN * 8 {
            let mut octets = STAMP.emit();
            octets[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Stamp::parse(&octets), Err(DamagedStamp), "bit {bit}");
        }
    }

    #[test]
    fn the_bucket_of_a_latency_is_its_number_of_bits() {
        let exact = |latency: u64| (u64::BITS - latency.leading_zeros()).min(31) as usize;
        for bit in 0..64 {
            let power = 1u64 << bit;
            for latency in [power - 1, power, power + 1] {
                assert_eq!(significant_bits(latency), exact(latency), "{latency}");
            }
        }
        assert_eq!(significant_bits(u64::MAX), 31);
    }

    #[test]
    fn a_sample_is_of_one_in_so_many_wherever_it_begins() {
        for every in [1, 2, 16, 256] {
            for first in [0, 12_345, 1 << 40] {
                let sampled = (first..first + (1 << 16))
                    .filter(|sequence| is_sampled(*sequence, every))
                    .count() as u64;
                assert!(
                    sampled.abs_diff((1 << 16) / every) <= 8,
                    "{sampled} of 65536, one in {every}"
                );
            }
        }
    }

    #[test]
    fn of_every_lane_that_frames_are_dealt_to_in_turn_about_one_in_sixteen_is_sampled() {
        for lanes in 1..=64 {
            for lane in 0..lanes {
                let sampled: Vec<_> = (0..1024)
                    .filter(|turn| is_sampled(lane + turn * lanes, 16))
                    .collect();
                assert!(
                    (48..=80).contains(&sampled.len()),
                    "lane {lane} of {lanes}: {} of 1024",
                    sampled.len()
                );
                // Nor is any lane left alone for long.
                let ends = [0].into_iter().chain(sampled).chain([1024]);
                let longest = ends
                    .clone()
                    .zip(ends.skip(1))
                    .map(|(from, to)| to - from)
                    .max()
                    .unwrap();
                assert!(longest <= 256, "lane {lane} of {lanes}: {longest} frames");
            }
        }
    }

    #[test]
    fn a_frame_is_sent_by_the_time_in_its_stamp() {
        assert!(STAMP.is_sent_by(STAMP.time) && STAMP.is_sent_by(STAMP.time + 1));
        assert!(!STAMP.is_sent_by(STAMP.time - 1));
    }

    #[test]
    fn latency_survives_the_wrap_of_40_bits() {
        let stamp = Stamp {
            time: MASK_40 - 9,
            ..STAMP
        };
        assert_eq!(stamp.latency((7 << 40) + 10), 20);
        assert_eq!(STAMP.latency(STAMP.time - 1), 0);
    }
}
