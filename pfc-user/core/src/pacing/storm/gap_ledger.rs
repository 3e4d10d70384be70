//! The account of a storm's frames and of the gaps between them, over all senders.
//!
//! A frame leaves some time between the `before` and the `after` of its [`Departure`]. Each sender
//! notes its departures one by one, and what is common to all is the latest `before` noted so far.
//! The gap of a departure reaches from there to its own `after`. That covers every time in which
//! nothing left: let it end with frame D, and take the first frame noted of those that left no
//! earlier than D. Whatever was noted before it left before the silence, and so did the latest
//! `before`; and its `after` is not before D left.

use std::sync::atomic::{AtomicU64, Ordering};

use pfc_ebpf::units::Nanos;

use super::silence;
use crate::evidence::pfc::{Departure, Gap, GapHistogram, LeftOut, Stall, StormReport};

/// Buckets per octave: a gap is known to a sixteenth of it.
const PER_OCTAVE: usize = 1 << PER_OCTAVE_BITS;
const PER_OCTAVE_BITS: u32 = 4;
const BUCKETS: usize = (Nanos::BITS - PER_OCTAVE_BITS + 1) as usize * PER_OCTAVE;
/// Gaps above the pause time that a sender lists; they fit without growing, which would cost time
/// while frames are due.
const ROOM: usize = 4096;
const NEVER: Departure = Departure {
    before: 0,
    after: 0,
};

/// The latest time that a frame of any sender left after; 0 before the first.
#[derive(Debug, Default)]
pub struct Latest(AtomicU64);

impl Latest {
    /// Notes a frame, and returns the latest time before it; `None` for the first of all.
    fn note(&self, before: Nanos) -> Option<Nanos> {
        match self.0.fetch_max(before, Ordering::AcqRel) {
            0 => None,
            latest => Some(latest),
        }
    }
}

/// The account of one sender.
#[derive(Debug)]
pub struct GapLedger {
    /// Gaps above it are listed.
    pause: Nanos,
    frames: u64,
    errors: u64,
    first: Departure,
    last: Departure,
    max_gap: Nanos,
    gaps: Vec<Gap>,
    gaps_left_out: LeftOut,
    stalls: Vec<Stall>,
    stalls_left_out: LeftOut,
    counts: Vec<u64>,
}

impl GapLedger {
    /// An empty one, which lists gaps above `pause`.
    pub fn new(pause: Nanos) -> Self {
        let mut counts = Vec::new();
        // Written now, so that the pages are there when the storm runs.
        counts.resize_with(BUCKETS, || std::hint::black_box(0));
        Self {
            pause,
            frames: 0,
            errors: 0,
            first: NEVER,
            last: NEVER,
            max_gap: 0,
            gaps: Vec::with_capacity(ROOM),
            gaps_left_out: LeftOut::default(),
            stalls: Vec::with_capacity(ROOM),
            stalls_left_out: LeftOut::default(),
            counts,
        }
    }

    /// A frame left.
    pub fn left(&mut self, departure: Departure, latest: &Latest) {
        if let Some(from) = latest.note(departure.before) {
            let gap = silence(from, departure);
            self.counts[bucket(gap.length())] += 1;
            self.gap(gap);
        }
        if self.frames == 0 {
            self.first = departure;
        }
        self.last = departure;
        self.frames += 1;
    }

    /// A frame was refused.
    pub fn refused(&mut self) {
        self.errors += 1;
    }

    /// The sender ran at `now`: a stall, if its frame was `due` long before.
    pub fn ran(&mut self, due: Nanos, now: Nanos) {
        if now <= due + Stall::ABOVE {
            return;
        }
        if self.stalls.len() < ROOM {
            self.stalls.push(Stall { from: due, to: now });
        } else {
            self.stalls_left_out.add(due, now);
        }
    }

    fn gap(&mut self, gap: Gap) {
        self.max_gap = self.max_gap.max(gap.length());
        if gap.length() <= self.pause {
            return;
        }
        if self.gaps.len() < ROOM {
            self.gaps.push(gap);
        } else {
            self.gaps_left_out.add(gap.from, gap.to);
        }
    }

    /// The account of all senders at the end of the storm, which is `now`; a frame that should have
    /// left and did not leaves a gap as well. When not a single frame left, the departures in
    /// it are zero.
    pub fn end(method: String, accounts: Vec<Self>, now: Nanos) -> StormReport {
        let mut all = accounts
            .into_iter()
            .reduce(Self::with)
            .unwrap_or_else(|| Self::new(0));
        if all.frames > 0 && now > all.last.before + all.pause {
            all.gap(Gap {
                from: all.last.before,
                to: now,
            });
        }
        all.gaps.sort_by_key(|gap| gap.from);
        all.stalls.sort_by_key(|stall| stall.from);
        StormReport {
            method,
            frames: all.frames,
            errors: all.errors,
            first: all.first,
            last: all.last,
            max_gap: all.max_gap,
            gaps: all.gaps,
            gaps_left_out: all.gaps_left_out,
            stalls: all.stalls,
            stalls_left_out: all.stalls_left_out,
            histogram: GapHistogram(
                all.counts
                    .into_iter()
                    .enumerate()
                    .filter(|(_, count)| *count > 0)
                    .map(|(index, count)| (below(index), count))
                    .collect(),
            ),
        }
    }

    fn with(mut self, other: Self) -> Self {
        if other.frames > 0 {
            if self.frames == 0 || other.first.before < self.first.before {
                self.first = other.first;
            }
            if other.last.before > self.last.before {
                self.last = other.last;
            }
        }
        self.frames += other.frames;
        self.errors += other.errors;
        self.max_gap = self.max_gap.max(other.max_gap);
        self.gaps.extend(other.gaps);
        self.gaps_left_out.merge(other.gaps_left_out);
        self.stalls.extend(other.stalls);
        self.stalls_left_out.merge(other.stalls_left_out);
        self.counts
            .iter_mut()
            .zip(other.counts)
            .for_each(|(count, other)| *count += other);
        self
    }
}

/// The bucket of a gap: the number itself at first, then its highest bits and how many are left.
fn bucket(gap: Nanos) -> usize {
    let shift = (Nanos::BITS - PER_OCTAVE_BITS)
        .saturating_sub(gap.leading_zeros())
        .saturating_sub(1);
    shift as usize * PER_OCTAVE + (gap >> shift) as usize
}

/// The first length that is beyond a bucket.
fn below(bucket: usize) -> Nanos {
    let shift = (bucket / PER_OCTAVE).saturating_sub(1);
    let next = (bucket - shift * PER_OCTAVE) as u128 + 1;
    Nanos::try_from(next << shift).unwrap_or(Nanos::MAX)
}

#[cfg(test)]
mod tests;
