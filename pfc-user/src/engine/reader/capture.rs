//! Frames captured at a port.

use std::collections::VecDeque;
use std::mem;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use pfc_ebpf::abi::flow::RecordHead;
use pfc_ebpf::units::Nanos;
use validator_core::engine::plan::{Captures, Keeps};
use validator_core::engine::{Captured, CapturedFrame};

use crate::driver::kernel::clock;

/// Octets of memory for frames: eight seconds of 1 Gbit/s in long ones.
pub const ROOM: usize = 1 << 30;
/// Octets of memory that a frame takes beyond its own.
const OVERHEAD: usize = size_of::<CapturedFrame>();
const HEAD: usize = size_of::<RecordHead>();

/// A capture.
pub struct Capture {
    frames: Frames,
    missed: u64,
    captures: Captures,
    /// Octets of memory.
    room: usize,
    used: usize,
    /// One moment by both clocks.
    moment: (Nanos, SystemTime),
}

/// The frames of a capture.
enum Frames {
    /// More may come.
    Open(VecDeque<CapturedFrame>),
    /// Frames that a caller was given.
    Given(Arc<Vec<CapturedFrame>>),
}

impl Frames {
    fn open(&mut self) -> &mut VecDeque<CapturedFrame> {
        if let Self::Given(frames) = self {
            let frames = Arc::unwrap_or_clone(mem::take(frames));
            *self = Self::Open(frames.into());
        }
        match self {
            Self::Open(frames) => frames,
            Self::Given(_) => unreachable!("they were opened above"),
        }
    }

    fn give(&mut self) -> Arc<Vec<CapturedFrame>> {
        let frames = match self {
            Self::Open(frames) => Arc::new(mem::take(frames).into()),
            Self::Given(frames) => Arc::clone(frames),
        };
        *self = Self::Given(Arc::clone(&frames));
        frames
    }
}

impl Capture {
    /// Begins with nothing captured yet, and room for `room` octets.
    pub fn begin(room: usize, captures: Captures) -> Self {
        Self {
            frames: Frames::Open(VecDeque::new()),
            missed: 0,
            captures,
            room,
            used: 0,
            moment: (clock::now(), SystemTime::now()),
        }
    }

    /// Adds what the program kept of a frame.
    pub fn add(&mut self, item: &[u8]) {
        let Some((time, frame)) = record(item) else {
            return;
        };
        if !self
            .captures
            .filters
            .iter()
            .all(|filter| filter.keeps(frame))
        {
            return;
        }
        let needed = frame.len() + OVERHEAD;
        // Later frames that are shorter would fit, and the capture would have a hole.
        let is_full = self.captures.keeps == Keeps::First && self.missed > 0;
        if is_full || !self.make_room(needed) {
            self.missed += 1;
            return;
        }
        self.used += needed;
        let frame = CapturedFrame {
            at: self.at(time),
            octets: frame.to_vec(),
        };
        self.frames.open().push_back(frame);
    }

    /// Lets go of the oldest frames where the newest are kept; false if there is no room even so.
    fn make_room(&mut self, needed: usize) -> bool {
        while self.used + needed > self.room && self.captures.keeps == Keeps::Newest {
            let Some(oldest) = self.frames.open().pop_front() else {
                break;
            };
            self.used -= oldest.octets.len() + OVERHEAD;
            self.missed += 1;
        }
        self.used + needed <= self.room
    }

    /// Frames that it had no room for.
    pub fn missed(&self) -> u64 {
        self.missed
    }

    /// All of it.
    pub fn captured(&mut self) -> Captured {
        Captured {
            frames: self.frames.give(),
            missed: self.missed,
        }
    }

    /// The wall time of a monotonic one.
    fn at(&self, time: Nanos) -> SystemTime {
        let (moment, wall) = self.moment;
        if time >= moment {
            wall + Duration::from_nanos(time - moment)
        } else {
            wall - Duration::from_nanos(moment - time)
        }
    }
}

/// Time of arrival and octets in a record of the program.
pub fn record(item: &[u8]) -> Option<(Nanos, &[u8])> {
    let (head, frame) = item.split_at_checked(HEAD)?;
    let time = Nanos::from_ne_bytes(*head.first_chunk()?);
    Some((time, frame))
}

#[cfg(test)]
mod tests {
    use super::*;
    use validator_core::engine::filter::{Filter, From};

    /// Room for two frames of 60 octets, to which frames of these lengths came: what is left of
    /// them, and how many are missed.
    fn kept(keeps: Keeps, lengths: &[usize]) -> (Vec<(u8, usize)>, u64) {
        let captures = Captures {
            keeps,
            ..Captures::default()
        };
        let mut capture = Capture::begin(2 * (60 + OVERHEAD), captures);
        for (number, length) in (1..).zip(lengths) {
            let mut item = vec![0; HEAD];
            item.resize(HEAD + length, number);
            capture.add(&item);
        }
        let captured = capture.captured();
        assert_eq!(captured.missed, capture.missed());
        let frames = captured.frames.iter();
        let frames = frames.map(|frame| (frame.octets[0], frame.octets.len()));
        (frames.collect(), captured.missed)
    }

    #[test]
    fn what_fits_is_kept_either_way() {
        for keeps in [Keeps::First, Keeps::Newest] {
            assert_eq!(kept(keeps, &[60, 60]), (vec![(1, 60), (2, 60)], 0));
        }
    }

    #[test]
    fn the_first_frames_are_kept_up_to_the_first_that_is_missed() {
        let (frames, missed) = kept(Keeps::First, &[60, 61, 20, 60]);
        assert_eq!((frames, missed), (vec![(1, 60)], 3));
    }

    #[test]
    fn the_newest_frames_are_kept_and_a_long_one_takes_the_room_of_several() {
        let (frames, missed) = kept(Keeps::Newest, &[60, 60, 60]);
        assert_eq!((frames, missed), (vec![(2, 60), (3, 60)], 1));
        let (frames, missed) = kept(Keeps::Newest, &[60, 60, 100, 20]);
        assert_eq!((frames, missed), (vec![(3, 100), (4, 20)], 2));
    }

    #[test]
    fn frames_that_a_filter_leaves_out_take_no_room_and_are_not_missed() {
        let first_octet = Filter {
            from: From::Frame,
            bit: 0,
            bits: 8,
            value: 2,
            ignored: 0,
            negate: false,
        };
        let captures = Captures {
            filters: vec![first_octet],
            keeps: Keeps::First,
        };
        let mut capture = Capture::begin(60 + OVERHEAD, captures);
        for number in [1, 3, 2, 4] {
            let mut item = vec![0; HEAD];
            item.resize(HEAD + 60, number);
            capture.add(&item);
        }
        let captured = capture.captured();
        assert_eq!((captured.frames.len(), captured.missed), (1, 0));
    }

    #[test]
    fn frames_that_were_given_away_stay_and_more_may_come() {
        let mut capture = Capture::begin(ROOM, Captures::default());
        capture.add(&[0; HEAD + 60]);
        let [first, again] = [capture.captured(), capture.captured()];
        assert!(Arc::ptr_eq(&first.frames, &again.frames));
        capture.add(&[0; HEAD + 61]);
        assert_eq!(
            (first.frames.len(), capture.captured().frames.len()),
            (1, 2)
        );
    }

    #[test]
    fn a_frame_longer_than_the_room_is_missed() {
        let (frames, missed) = kept(Keeps::Newest, &[60, 1000]);
        assert_eq!((frames, missed), (Vec::new(), 2));
    }
}
