//! Flows of a port that a faster sender takes over: which, until when, and how they come back. The
//! schedule keeps the rest, and decides on all of them whenever an order comes.

#[cfg(test)]
mod tests;

use pfc_ebpf::units::{LineRate, Nanos};

use super::PortSchedule;
use crate::engine::flow::{Fine, Steady, fine, whole};
use crate::engine::snapshot::Transmit;

/// Frames a second that the schedule's own sender keeps up with, whatever else runs.
pub const CARRIES: u64 = 200_000;
/// Flows with fewer frames than one in so long are left to the schedule: what holds them shifts
/// them by no more.
const SLOWEST: Nanos = 10_000_000;
/// A flow that begins later than that is not yet there.
const SOON: Nanos = 10_000_000;
/// The rates of a full line add up to it but for rounding: parts in so many.
const ROUNDING: u64 = 10_000;

/// A flow that a faster sender takes over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lent {
    /// Its place.
    pub flow: usize,
    /// How it goes on.
    pub steady: Steady,
}

/// What a faster sender is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// Flows that it takes over; none where it is not needed, or cannot help.
    pub flows: Vec<Lent>,
    /// When that changes: a flow ends, or another begins.
    pub to: Nanos,
}

impl PortSchedule {
    /// What a faster sender is to do from `now` on. `kind` says of a flow and its length which
    /// flows it can send together: those of one kind, and none that has no kind.
    ///
    /// It is asked where the port's flows want more than [`CARRIES`], and no more than the line
    /// has: only the schedule shares a line by rates.
    pub fn fast<K: PartialEq>(
        &self,
        now: Nanos,
        line_rate: LineRate,
        kind: impl Fn(usize, u32) -> Option<K>,
    ) -> Run {
        let mut kinds: Vec<(K, Vec<Lent>, u64)> = Vec::new();
        let (mut frames, mut bits, mut to) = (0, 0, Nanos::MAX);
        for (flow, scheduled) in self.flows.iter().enumerate() {
            let progress = scheduled.pace.progress();
            if progress.state != Transmit::Started {
                continue;
            }
            if progress.due > fine(now + SOON) {
                if progress.number == 0 {
                    to = to.min(whole(progress.due));
                }
                continue;
            }
            let (rate, length) = scheduled.pace.rate();
            frames += rate;
            bits += rate * LineRate::frame_bits(length as usize - LineRate::FCS as usize);
            let steady = scheduled.pace.steady();
            // One whose time is over makes good for what it owes.
            let steady =
                steady.filter(|steady| steady.interval <= fine(SLOWEST) && steady.end > now);
            let Some(steady) = steady else { continue };
            let Some(kind) = kind(flow, steady.length) else {
                continue;
            };
            let lent = Lent { flow, steady };
            match kinds.iter_mut().find(|(known, ..)| *known == kind) {
                Some((_, flows, sum)) => {
                    flows.push(lent);
                    *sum += rate;
                }
                None => kinds.push((kind, vec![lent], rate)),
            }
        }
        let line = line_rate.bits_per_second();
        let is_full = bits > line + line / ROUNDING;
        let best = kinds.into_iter().max_by_key(|(.., rate)| *rate);
        let flows = best.filter(|_| frames > CARRIES && !is_full);
        let flows = flows.map(|(_, flows, _)| flows).unwrap_or_default();
        let to = flows
            .iter()
            .map(|lent| lent.steady.end)
            .fold(to, Nanos::min);
        Run { flows, to }
    }

    /// Another sender has a flow from now on.
    pub fn lend(&mut self, flow: usize) {
        self.flows[flow].lent = true;
        self.flows[flow].version += 1;
    }

    /// A flow comes back: so many frames of it have left, and the next one is due then, whatever
    /// held it until now.
    pub fn take_back(&mut self, flow: usize, left: u64, due: Fine) {
        let scheduled = &mut self.flows[flow];
        scheduled.lent = false;
        scheduled.pace.went_on(left, due);
        self.enlist(flow);
    }
}
