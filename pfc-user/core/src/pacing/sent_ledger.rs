//! The account of a sender, kept while it sends. No I/O; time is an argument.

use std::ops::Range;

use pfc_ebpf::abi::account::PauseState;
use pfc_ebpf::stamp::Phase;
use pfc_ebpf::units::{LineRate, Nanos, Priority};

use super::Sent;
use super::history::History;
use super::pacer::Paced;
use crate::evidence::pfc::{FlowSent, SenderReport, Stall, Withheld};
use crate::plan::PortName;

/// A flow in the ledger.
#[derive(Clone, Copy, Debug)]
pub struct Accounted {
    /// Index in the stamp.
    pub id: u16,
    /// Pacing.
    pub paced: Paced,
}

/// Windows in which frames are counted.
#[derive(Clone, Copy, Debug)]
pub struct WindowPlan {
    /// Start of window 0.
    pub epoch: Nanos,
    /// Width, not 0.
    pub width: Nanos,
    /// The number of windows, not 0.
    pub count: usize,
}

/// The running account of a sender.
#[derive(Debug)]
pub struct SentLedger {
    flows: Vec<Accounted>,
    sent: Vec<[Option<FlowSent>; Phase::COUNT]>,
    windows: WindowPlan,
    offered: Vec<[u32; Priority::COUNT]>,
    history: History,
    overrun: [Overrun; Priority::COUNT],
    waits: u64,
    excess: BurstMeter,
    phase: Phase,
    /// Time at which the sender should look again; until then it may sleep.
    expected: Nanos,
}

/// Octets that left after the XOFF that began at `since`.
#[derive(Clone, Copy, Debug, Default)]
struct Overrun {
    since: Nanos,
    octets: u64,
    largest: u64,
}

/// A bucket that frames fill and the flows' rates empty: its highest level is the largest burst. In
/// bits times a second, which is what one bit/s brings in a nanosecond.
#[derive(Debug)]
struct BurstMeter {
    rate: u128,
    line: u128,
    level: u128,
    largest: u128,
    at: Nanos,
}

impl BurstMeter {
    fn add(&mut self, at: Nanos, bits: u64) {
        self.level = self
            .level
            .saturating_sub(self.rate * u128::from(at.saturating_sub(self.at)));
        self.level += u128::from(bits) * 1_000_000_000;
        self.largest = self.largest.max(self.level);
        self.at = self.at.max(at);
    }
}

impl SentLedger {
    /// An empty account of these flows.
    pub fn new(flows: Vec<Accounted>, line_rate: LineRate, windows: WindowPlan) -> Self {
        let rate = flows.iter().map(|flow| u128::from(flow.paced.rate)).sum();
        Self {
            sent: vec![[None; Phase::COUNT]; flows.len()],
            flows,
            windows,
            offered: vec![[0; Priority::COUNT]; windows.count],
            history: History::default(),
            overrun: Default::default(),
            waits: 0,
            excess: BurstMeter {
                rate,
                line: line_rate.bits_per_second().into(),
                level: 0,
                largest: 0,
                at: 0,
            },
            phase: Phase::Baseline,
            expected: 0,
        }
    }

    /// A burst begins.
    pub fn begin(&mut self, phase: Phase, from: Nanos) {
        self.phase = phase;
        self.expected = from;
    }

    /// Notes that the sender runs at `now`: a stall, if it should have run long before.
    pub fn running(&mut self, now: Nanos) {
        if now > self.expected + Stall::ABOVE {
            self.history.stall(self.expected, now);
        }
        self.expected = self.expected.max(now);
    }

    /// The sender means to sleep until then.
    pub fn sleeping(&mut self, until: Nanos) {
        self.expected = self.expected.max(until);
    }

    /// The priorities accrued nothing in these spans.
    pub fn withheld(&mut self, stood: [Range<Nanos>; Priority::COUNT]) {
        for (priority, stood) in Priority::all()
            .zip(stood)
            .filter(|(_, stood)| !stood.is_empty())
        {
            self.history.withheld(Withheld {
                port: PortName::TX,
                priority,
                phase: self.phase,
                from: stood.start,
                to: stood.end,
            });
        }
    }

    /// A frame of the flow at `index` left with a stamp of that time.
    pub fn left(&mut self, index: usize, stamp: Nanos) {
        let flow = &self.flows[index];
        let first = FlowSent {
            flow: flow.id,
            phase: self.phase,
            frames: 0,
            first: stamp,
            last: stamp,
        };
        let sent = self.sent[index][self.phase as usize].get_or_insert(first);
        sent.frames += 1;
        sent.last = stamp;
        let window = stamp.saturating_sub(self.windows.epoch) / self.windows.width;
        let window = usize::try_from(window)
            .unwrap_or(usize::MAX)
            .min(self.windows.count - 1);
        self.offered[window][flow.paced.priority.index()] += 1;
        self.excess.add(stamp, flow.paced.bits);
    }

    /// Notes that a frame found no room. The frame leaves later, with another stamp.
    pub fn waited(&mut self) {
        self.waits += 1;
    }

    /// Octets of `priority` left between two looks at its state. When they left in relation to an
    /// XOFF that came in the meantime is not known: all count as sent after it.
    pub fn after_xoff(
        &mut self,
        priority: usize,
        octets: u64,
        before: &PauseState,
        after: &PauseState,
        now: Nanos,
    ) {
        if after.since == before.since && after.until <= now {
            return;
        }
        let overrun = &mut self.overrun[priority];
        if overrun.since != after.since {
            (overrun.since, overrun.octets) = (after.since, 0);
        }
        overrun.octets += octets;
        overrun.largest = overrun.largest.max(overrun.octets);
    }

    /// All so far.
    pub fn sent(&self, honours_pfc: &str) -> Sent {
        Sent {
            report: SenderReport {
                method: "sendmmsg".into(),
                honours_pfc: honours_pfc.into(),
                flows: self.sent.iter().flatten().flatten().copied().collect(),
                withheld: self.history.withheld.clone(),
                withheld_left_out: self.history.withheld_left_out.clone(),
                after_xoff: self.overrun.map(|overrun| overrun.largest),
                stalls: self.history.stalls.clone(),
                stalls_left_out: self.history.stalls_left_out,
                errors: 0,
                waits: self.waits,
                max_burst: self.excess.largest.div_ceil(self.excess.line) as Nanos,
            },
            offered: self.offered.clone(),
            lost: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use pfc_ebpf::units::MILLISECOND as MS;

    use super::*;

    /// Two flows of priorities 3 and 4 at 250 Mbit/s each, on a line of 1 Gbit/s.
    fn account() -> SentLedger {
        let flow = |id, priority| Accounted {
            id,
            paced: Paced {
                priority: Priority::from_low_bits(priority),
                rate: 250_000_000,
                bits: LineRate::frame_bits(1024),
            },
        };
        let line = LineRate::from_bits_per_second(1_000_000_000).unwrap();
        SentLedger::new(
            vec![flow(7, 3), flow(8, 4)],
            line,
            WindowPlan {
                epoch: 1000 * MS,
                width: 100 * MS,
                count: 3,
            },
        )
    }

    #[test]
    fn frames_count_by_flow_phase_and_window() {
        let mut account = account();
        account.begin(Phase::Baseline, 1000 * MS);
        account.left(0, 1000 * MS);
        account.left(0, 1099 * MS);
        account.left(1, 1100 * MS);
        account.begin(Phase::Resume, 1250 * MS);
        account.left(0, 1250 * MS);
        account.left(0, 9999 * MS);
        let sent = account.sent("no");
        let flow = |flow, phase, frames, first, last| FlowSent {
            flow,
            phase,
            frames,
            first: first * MS,
            last: last * MS,
        };
        assert_eq!(
            sent.report.flows,
            [
                flow(7, Phase::Baseline, 2, 1000, 1099),
                flow(7, Phase::Resume, 2, 1250, 9999),
                flow(8, Phase::Baseline, 1, 1100, 1100)
            ]
        );
        assert_eq!(
            sent.offered,
            [
                [0, 0, 0, 2, 0, 0, 0, 0],
                [0, 0, 0, 0, 1, 0, 0, 0],
                [0, 0, 0, 2, 0, 0, 0, 0]
            ]
        );
    }

    #[test]
    fn stalls_are_what_exceeds_half_a_millisecond_and_adjacent_ones_are_one() {
        let mut account = account();
        account.begin(Phase::Baseline, 10 * MS);
        // Woken early and in time: nothing.
        account.running(9 * MS);
        account.running(10 * MS + Stall::ABOVE);
        // Asleep as intended, then late.
        account.sleeping(15 * MS);
        account.running(15 * MS + Stall::ABOVE);
        account.sleeping(20 * MS);
        account.running(22 * MS);
        account.running(23 * MS);
        // Another, later.
        account.sleeping(30 * MS);
        account.running(31 * MS);
        assert_eq!(
            account.sent("").report.stalls,
            [
                Stall {
                    from: 20 * MS,
                    to: 23 * MS
                },
                Stall {
                    from: 30 * MS,
                    to: 31 * MS
                }
            ]
        );
        // Between bursts nothing is expected.
        account.begin(Phase::Storm, 50 * MS);
        account.running(50 * MS);
        assert_eq!(account.sent("").report.stalls.len(), 2);
    }

    #[test]
    fn what_was_withheld_is_told_by_priority_and_phase() {
        let mut account = account();
        let spans = |spans: &[(usize, Nanos, Nanos)]| {
            std::array::from_fn(|priority| {
                let of = spans.iter().find(|(of, ..)| *of == priority);
                of.map_or(0..0, |(_, from, to)| from * MS..to * MS)
            })
        };
        account.begin(Phase::Baseline, 0);
        account.withheld(spans(&[]));
        account.withheld(spans(&[(3, 1, 2)]));
        account.withheld(spans(&[(3, 2, 3), (4, 2, 3)]));
        account.begin(Phase::Storm, 6 * MS);
        account.withheld(spans(&[(3, 6, 7)]));
        let span = |priority, phase, from, to| Withheld {
            port: PortName::TX,
            priority: Priority::from_low_bits(priority),
            phase,
            from: from * MS,
            to: to * MS,
        };
        assert_eq!(
            account.sent("").report.withheld,
            [
                span(3, Phase::Baseline, 1, 3),
                span(4, Phase::Baseline, 2, 3),
                span(3, Phase::Storm, 6, 7)
            ]
        );
    }

    #[test]
    fn octets_after_an_xoff_add_up_and_the_largest_is_told() {
        let mut account = account();
        let calm = PauseState::default();
        let paused = |since| PauseState {
            since,
            until: since + MS,
        };
        account.after_xoff(3, 1000, &calm, &calm, MS);
        assert_eq!(account.sent("").report.after_xoff, [0; 8]);
        // Begun while the batch left; ended again before the second look; still the same one.
        account.after_xoff(3, 2000, &calm, &paused(5 * MS), 5 * MS + 10);
        account.after_xoff(3, 500, &calm, &paused(5 * MS), 7 * MS);
        account.after_xoff(3, 100, &paused(5 * MS), &paused(20 * MS), 20 * MS + 10);
        // Known, and over: what leaves now is allowed.
        account.after_xoff(4, 700, &paused(5 * MS), &paused(5 * MS), 7 * MS);
        assert_eq!(
            account.sent("").report.after_xoff,
            [0, 0, 0, 2500, 0, 0, 0, 0]
        );
    }

    #[test]
    fn the_largest_burst_is_what_left_beyond_the_rate() {
        let mut account = account();
        account.begin(Phase::Baseline, 0);
        // 8384 bits each; 500 Mbit/s drain 8384 bits in 16768 ns.
        account.left(0, 1000);
        account.left(1, 1000);
        assert_eq!(account.sent("").report.max_burst, 16_768);
        account.left(0, 1000 + 16_768);
        assert_eq!(account.sent("").report.max_burst, 16_768);
        account.left(0, 1000 + 16_768);
        assert_eq!(account.sent("").report.max_burst, 25_152);
        account.left(0, MS);
        assert_eq!(account.sent("").report.max_burst, 25_152);
    }
}
