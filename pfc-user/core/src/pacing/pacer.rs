//! Pacing of flows: one token bucket a flow, at layer-1 rate, and one for them all together, which
//! bounds their bursts. No I/O; time is an argument.
//!
//! The flows start staggered: in phase, they would send one frame each at once, and windows of time
//! would differ by as many.
//!
//! Each priority has a clock of its own, which stands still while the DUT's XOFF holds the priority
//! back, so that the frames not sent in that time are not owed afterwards.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

use pfc_ebpf::abi::account::PauseState;
use pfc_ebpf::pacing::{Bucket, Share, withheld};
use pfc_ebpf::units::{self, LineRate, Nanos, Priority};

const SECOND: u128 = units::SECOND as u128;
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
    /// Rates that add up to more than the line rate.
    #[error(
        "the flows' rates must add up to at most the line rate, {line_rate}, found {found} bit/s"
    )]
    AboveLineRate {
        /// Line rate.
        line_rate: LineRate,
        /// Sum of the rates.
        found: u128,
    },
    /// A largest burst below what has to leave at once.
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
    excess: Excess,
}

#[derive(Debug)]
struct Flow {
    paced: Paced,
    /// Wait of the first frame, as a share of the time from one frame to the next.
    wait: Share,
    bucket: Bucket,
}

/// Bits that left beyond the flows' rates, in units of 10^-9 bit.
#[derive(Debug)]
struct Excess {
    /// Sum of the flows' rates in bit/s: what drains in a nanosecond.
    rates: u128,
    level: u128,
    /// Highest level allowed.
    most: u128,
}

impl Excess {
    /// Returns how long a frame of `bits` has to wait.
    fn wait(&self, bits: u64) -> Nanos {
        let above = (self.level + u128::from(bits) * SECOND).saturating_sub(self.most);
        above.div_ceil(self.rates) as Nanos
    }
}

/// The flows of a priority.
#[derive(Debug, Default)]
struct Lane {
    due: BinaryHeap<Reverse<(Nanos, usize)>>,
    paused: bool,
    /// Time for which the priority's clock has stood still.
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

/// Longest time that a flow may be late without losing tokens. By itself it keeps a burst beyond
/// the flows' rates, over all flows, within `max_burst` at line rate.
pub fn max_lateness(
    flows: &[Paced],
    line_rate: LineRate,
    max_burst: Nanos,
) -> Result<Nanos, PacingError> {
    // A bucket holds one frame and what accrues in that time, and as frames are left out whole, up
    // to one more (`Bucket::take`).
    let frames = 2 * sums(flows).1;
    check(flows, line_rate, max_burst, frames)?;
    Ok(lateness(flows, line_rate, max_burst, frames))
}

/// Fails where flows cannot be paced; `at_once` bits have to be able to leave at once.
fn check(
    flows: &[Paced],
    line_rate: LineRate,
    max_burst: Nanos,
    at_once: u128,
) -> Result<(), PacingError> {
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
    let min = (at_once * SECOND + rates * u128::from(MIN_LATENESS)).div_ceil(line) as Nanos;
    if max_burst < min {
        return Err(PacingError::BurstTooSmall {
            min,
            found: max_burst,
        });
    }
    Ok(())
}

/// Longest lateness at which `at_once` bits and what accrues in that time are no more than the
/// largest burst; 0 where the bits alone are.
fn lateness(flows: &[Paced], line_rate: LineRate, max_burst: Nanos, at_once: u128) -> Nanos {
    let most = u128::from(max_burst) * u128::from(line_rate.bits_per_second());
    let accrues = most.saturating_sub(at_once * SECOND);
    let lateness = accrues.checked_div(sums(flows).0);
    Nanos::try_from(lateness.unwrap_or(0)).unwrap_or(Nanos::MAX)
}

/// The rates of all flows, and the bits of a frame of each.
fn sums(flows: &[Paced]) -> (u128, u128) {
    flows.iter().fold((0, 0), |(rates, bits), flow| {
        (rates + u128::from(flow.rate), bits + u128::from(flow.bits))
    })
}

/// Wait of the first frame of each flow, as a share of its time from one frame to the next:
/// evenly spread over all flows, and about evenly over those of each priority, which an XOFF shifts
/// against the others.
pub fn stagger(flows: &[Paced]) -> Vec<Share> {
    let mut of_priority = [0; Priority::COUNT];
    let turns = flows.iter().enumerate().map(|(index, flow)| {
        let turn = &mut of_priority[flow.priority.index()];
        *turn += 1;
        (*turn, index)
    });
    let mut turns: Vec<(u32, usize)> = turns.collect();
    turns.sort_unstable();
    let whole = flows.len() as u32;
    let mut waits = vec![Share::WHOLE; flows.len()];
    for ((_, index), of) in turns.into_iter().zip(1..) {
        waits[index] = Share { of, whole };
    }
    waits
}

impl Pacer {
    /// Buckets for `flows`. What is sent at once beyond the flows' rates never exceeds `max_burst`
    /// at line rate, over all flows; tokens that would are lost.
    pub fn new(
        flows: &[Paced],
        line_rate: LineRate,
        max_burst: Nanos,
    ) -> Result<Self, PacingError> {
        let longest = flows.iter().map(|flow| flow.bits).max().unwrap_or(0);
        check(flows, line_rate, max_burst, longest.into())?;
        let (rates, frames) = sums(flows);
        // Where frames take long, one of each flow is more than may leave at once. The excess then
        // makes them wait for each other, which must cost none of them its token.
        let round = (frames * SECOND).checked_div(rates).unwrap_or(0) as Nanos;
        let max_lateness = lateness(flows, line_rate, max_burst, frames).max(MIN_LATENESS + round);
        let waits = stagger(flows).into_iter();
        let flows = flows.iter().zip(waits).map(|(&paced, wait)| Flow {
            paced,
            wait,
            bucket: Bucket::default(),
        });
        Ok(Self {
            flows: flows.collect(),
            lanes: Default::default(),
            now: 0,
            max_lateness,
            excess: Excess {
                rates,
                level: 0,
                most: u128::from(max_burst) * u128::from(line_rate.bits_per_second()),
            },
        })
    }

    /// Begins at `now` with all buckets staggered and no priority paused, at `load` percent (1 to
    /// 100) of the flows' rates. Within the time for its first frame, each flow has sent one.
    pub fn start(&mut self, now: Nanos, load: u8) {
        self.now = now;
        self.excess.level = 0;
        for lane in &mut self.lanes {
            lane.due.clear();
            lane.paused = false;
            lane.behind = 0;
        }
        for (index, flow) in self.flows.iter_mut().enumerate() {
            let Paced { bits, rate, .. } = flow.paced;
            flow.bucket = Bucket::staggered(now, bits, rate, load, flow.wait);
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
        let drained = self.excess.rates * u128::from(self.now - before);
        self.excess.level = self.excess.level.saturating_sub(drained);
        std::array::from_fn(|index| {
            let (pause, lane) = (&pauses[index], &mut self.lanes[index]);
            let (from, to) = withheld(pause, before, self.now);
            lane.behind += to - from;
            lane.paused = pause.until > self.now;
            from..to
        })
    }

    /// Takes the token of the flow whose frame has been due the longest; `None` when none is due,
    /// or when it would make the burst too large.
    pub fn take(&mut self) -> Option<Token> {
        let (ready, lane) = self.first()?;
        let lane = &mut self.lanes[lane];
        let Reverse((_, index)) = *lane.due.peek()?;
        let Flow { paced, bucket, .. } = &mut self.flows[index];
        if ready > self.now || self.excess.wait(paced.bits) > 0 {
            return None;
        }
        let token = Token {
            flow: index,
            before: *bucket,
        };
        self.excess.level += u128::from(paced.bits) * SECOND;
        bucket.take(self.now - lane.behind, self.max_lateness);
        lane.due.pop();
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
            let bits = u128::from(flow.paced.bits) * SECOND;
            self.excess.level = self.excess.level.saturating_sub(bits);
            let due = &mut self.lanes[flow.paced.priority.index()].due;
            due.retain(|Reverse((_, other))| *other != index);
            due.push(Reverse((before.ready(), index)));
        }
    }

    /// Time at which the next frame of a priority that is not paused may leave; `None` when there
    /// is none.
    pub fn next_due(&self) -> Option<Nanos> {
        let (ready, lane) = self.first()?;
        let Reverse((_, index)) = self.lanes[lane].due.peek()?;
        let wait = self.excess.wait(self.flows[*index].paced.bits);
        Some(if wait > 0 {
            ready.max(self.now + wait)
        } else {
            ready
        })
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
