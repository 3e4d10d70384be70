//! Flows of a port that a faster sender takes over: which, until when, and how they come back. The
//! schedule keeps the rest, and decides on all of them whenever an order comes.

#[cfg(test)]
mod tests;

use pfc_ebpf::units::{LineRate, Nanos};

use super::PortSchedule;
use crate::engine::flow::{Fine, Steady, fine, whole};
use crate::engine::snapshot::Transmit;

/// Frames a second that the schedule's own sender keeps up with under any other load.
pub const CARRIES: u64 = 200_000;
/// Longest interval of the flows that are taken over. Slower ones are left to the schedule: what
/// holds them shifts them by no more than this.
const SLOWEST: Nanos = 10_000_000;
/// Time from now within which the next frame of a flow has to be due; else, the flow is left out.
const SOON: Nanos = 10_000_000;
/// The rates of a full line may exceed it through rounding, by one part in this many.
const ROUNDING: u64 = 10_000;

/// A flow that a faster sender takes over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offloaded {
    /// Place of the flow.
    pub flow: usize,
    /// State by which the flow goes on.
    pub steady: Steady,
}

/// Work of a faster sender.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// Flows that it takes over; none where it is not needed, or cannot help.
    pub flows: Vec<Offloaded>,
    /// Time at which that changes: a flow ends, or another begins.
    pub to: Nanos,
}

impl PortSchedule {
    /// Returns the work of a faster sender from `now` on. `kind` maps a flow and its length to a
    /// kind: the sender can send flows of one kind together, and none without a kind.
    ///
    /// The work is empty unless the port's flows want more than [`CARRIES`], and no more than the
    /// line has: only the schedule shares a line by rates.
    pub fn fast<K: PartialEq>(
        &self,
        now: Nanos,
        line_rate: LineRate,
        kind: impl Fn(usize, u32) -> Option<K>,
    ) -> Run {
        let mut kinds: Vec<(K, Vec<Offloaded>, u64)> = Vec::new();
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
            // A flow whose time is over makes good for what it owes.
            let steady =
                steady.filter(|steady| steady.interval <= fine(SLOWEST) && steady.end > now);
            let Some(steady) = steady else { continue };
            let Some(kind) = kind(flow, steady.length) else {
                continue;
            };
            let offloaded = Offloaded { flow, steady };
            match kinds.iter_mut().find(|(known, ..)| *known == kind) {
                Some((_, flows, sum)) => {
                    flows.push(offloaded);
                    *sum += rate;
                }
                None => kinds.push((kind, vec![offloaded], rate)),
            }
        }
        let line = line_rate.bits_per_second();
        let is_full = bits > line + line / ROUNDING;
        let best = kinds.into_iter().max_by_key(|(.., rate)| *rate);
        let flows = best.filter(|_| frames > CARRIES && !is_full);
        let flows = flows.map(|(_, flows, _)| flows).unwrap_or_default();
        let to = flows
            .iter()
            .map(|offloaded| offloaded.steady.end)
            .fold(to, Nanos::min);
        Run { flows, to }
    }

    /// Offloads a flow to another sender from now on.
    pub fn offload(&mut self, flow: usize) {
        self.flows[flow].offloaded = true;
        self.flows[flow].version += 1;
    }

    /// Takes a flow back: `left` frames of it have left, and the next one is due at `due`,
    /// regardless of holds until now.
    pub fn take_back(&mut self, flow: usize, left: u64, due: Fine) {
        let scheduled = &mut self.flows[flow];
        scheduled.offloaded = false;
        scheduled.pace.went_on(left, due);
        self.enlist(flow);
    }
}
