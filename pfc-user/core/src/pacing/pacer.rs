//! Pacing of flows: one token bucket a flow, at layer-1 rate. No I/O; time is an argument.
//!
//! Each priority has a clock of its own, which stands still while the DUT's XOFF holds the priority
//! back, so that the frames not sent in that time are not owed afterwards.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

use pfc_ebpf::abi::account::PauseState;
use pfc_ebpf::pacing::{Bucket, withheld};
use pfc_ebpf::units::{LineRate, Nanos, Priority};

const SECOND: u128 = 1_000_000_000;
/// Catching up with less than this would lose frames to the sender's ordinary ticks.
const MIN_LATENESS: Nanos = 1_000_000;

/// Pause state of each priority.
pub type Pauses = [PauseState; Priority::COUNT];

/// Properties of a flow that its pacing depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Paced {
    /// Priority that an XOFF holds back.
    pub priority: Priority,
    /// Layer-1 rate in bit/s.
    pub rate: u64,
    /// Bits of layer 1 in a frame.
    pub bits: u64,
}

/// Errors of a set of flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PacingError {
    /// A rate of zero.
    #[error("flow number {index} must have a rate above 0")]
    NoRate {
        /// Its index, from 0.
        index: usize,
    },
    /// More than the line takes.
    #[error(
        "the flows' rates must add up to at most the line rate, {line_rate}, found {found} bit/s"
    )]
    AboveLineRate {
        /// Line rate.
        line_rate: LineRate,
        /// Sum of the rates.
        found: u128,
    },
    /// One frame of each flow and the shortest time to catch up make more.
    #[error(
        "the largest burst must be at least {min} ns of line rate for these flows, found {found} ns"
    )]
    BurstTooSmall {
        /// Nanoseconds needed.
        min: Nanos,
        /// Nanoseconds allowed.
        found: Nanos,
    },
}

/// Tells which flow's frame is due next.
#[derive(Debug)]
pub struct Pacer {
    flows: Vec<Flow>,
    lanes: [Lane; Priority::COUNT],
    now: Nanos,
    max_lateness: Nanos,
}

#[derive(Debug)]
struct Flow {
    paced: Paced,
    bucket: Bucket,
}

/// The flows of a priority.
#[derive(Debug, Default)]
struct Lane {
    due: BinaryHeap<Reverse<(Nanos, usize)>>,
    paused: bool,
    /// For how long its clock has stood still.
    behind: Nanos,
}

/// Leave for a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Token {
    /// The flow's index.
    pub flow: usize,
    /// Its bucket as it was.
    before: Bucket,
}

/// Longest time that a flow may be late without losing tokens. It keeps a burst beyond the flows'
/// rates, over all flows, within `max_burst` at line rate.
pub fn max_lateness(
    flows: &[Paced],
    line_rate: LineRate,
    max_burst: Nanos,
) -> Result<Nanos, PacingError> {
    if let Some(index) = flows.iter().position(|flow| flow.rate == 0) {
        return Err(PacingError::NoRate { index });
    }
    let line = u128::from(line_rate.bits_per_second());
    let rates = flows.iter().map(|flow| u128::from(flow.rate)).sum::<u128>();
    if rates > line {
        return Err(PacingError::AboveLineRate {
            line_rate,
            found: rates,
        });
    }
    // A bucket holds at most one frame and what accrues in that time.
    let frames = flows.iter().map(|flow| u128::from(flow.bits)).sum::<u128>() * SECOND;
    let min = (frames + rates * u128::from(MIN_LATENESS)).div_ceil(line) as Nanos;
    if max_burst < min {
        return Err(PacingError::BurstTooSmall {
            min,
            found: max_burst,
        });
    }
    let max_lateness = (u128::from(max_burst) * line - frames)
        .checked_div(rates)
        .unwrap_or(0);
    Ok(Nanos::try_from(max_lateness).unwrap_or(Nanos::MAX))
}

impl Pacer {
    /// Buckets for `flows`. What is sent at once beyond the flows' rates never exceeds `max_burst`
    /// at line rate, over all flows; tokens that would are lost.
    pub fn new(
        flows: &[Paced],
        line_rate: LineRate,
        max_burst: Nanos,
    ) -> Result<Self, PacingError> {
        let max_lateness = max_lateness(flows, line_rate, max_burst)?;
        let flows = flows
            .iter()
            .map(|&paced| Flow {
                paced,
                bucket: Bucket::default(),
            })
            .collect();
        Ok(Self {
            flows,
            lanes: Default::default(),
            now: 0,
            max_lateness,
        })
    }

    /// Begins at `now` with no priority paused, at `load` percent (1 to 100) of the flows' rates. The
    /// flows are [staggered](Bucket::staggered).
    pub fn start(&mut self, now: Nanos, load: u8) {
        self.now = now;
        for lane in &mut self.lanes {
            lane.due.clear();
            lane.paused = false;
            lane.behind = 0;
        }
        let flows = self.flows.len();
        for (index, flow) in self.flows.iter_mut().enumerate() {
            let Paced { rate, bits, .. } = flow.paced;
            flow.bucket = Bucket::staggered(now, bits, rate, load, index, flows);
            self.lanes[flow.paced.priority.index()]
                .due
                .push(Reverse((flow.bucket.ready(), index)));
        }
    }

    /// Lets time pass to `now`, at which the priorities' `pauses` are these; nothing more leaves of
    /// those that are paused. Returns when since the last call each priority's clock stood
    /// still (see [`withheld`]): an empty span where it did not.
    pub fn advance(&mut self, now: Nanos, pauses: &Pauses) -> [Range<Nanos>; Priority::COUNT] {
        let before = self.now;
        self.now = self.now.max(now);
        std::array::from_fn(|index| {
            let (pause, lane) = (&pauses[index], &mut self.lanes[index]);
            let (from, to) = withheld(pause, before, self.now);
            lane.behind += to - from;
            lane.paused = pause.until > self.now;
            from..to
        })
    }

    /// Takes the token of the flow whose frame has been due the longest; `None` when none is due.
    pub fn take(&mut self) -> Option<Token> {
        let (ready, lane) = self.first()?;
        if ready > self.now {
            return None;
        }
        let lane = &mut self.lanes[lane];
        let Reverse((_, index)) = lane.due.pop()?;
        let bucket = &mut self.flows[index].bucket;
        let token = Token {
            flow: index,
            before: *bucket,
        };
        bucket.take(self.now - lane.behind, self.max_lateness);
        lane.due.push(Reverse((bucket.ready(), index)));
        Some(token)
    }

    /// Gives back tokens whose frames did not leave, the latest taken first: as if they had not
    /// been taken, so that frames which had to wait do not leave beside the largest burst, but in
    /// it.
    pub fn give_back(&mut self, tokens: impl Iterator<Item = Token>) {
        for Token {
            flow: index,
            before,
        } in tokens
        {
            let flow = &mut self.flows[index];
            flow.bucket = before;
            let due = &mut self.lanes[flow.paced.priority.index()].due;
            due.retain(|Reverse((_, other))| *other != index);
            due.push(Reverse((before.ready(), index)));
        }
    }

    /// Time at which the next frame of a priority that is not paused is due; `None` when there is
    /// none.
    pub fn next_due(&self) -> Option<Nanos> {
        self.first().map(|(ready, _)| ready)
    }

    /// The earliest frame, and the index of its lane.
    fn first(&self) -> Option<(Nanos, usize)> {
        let free = self
            .lanes
            .iter()
            .enumerate()
            .filter(|(_, lane)| !lane.paused);
        free.filter_map(|(index, lane)| {
            lane.due
                .peek()
                .map(|Reverse((ready, _))| (ready + lane.behind, index))
        })
        .min()
    }
}

#[cfg(test)]
mod tests;
