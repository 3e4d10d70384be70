//! Frames by flow against frames by window, by latency and by log.

use pfc_ebpf::abi::account::Clock;
use pfc_ebpf::stamp::Phase;
use pfc_ebpf::units::Priority;

use super::{Checked, Rule, ascends, ensure};
use crate::evidence::pfc::{FlowReceived, FlowSent, PfcEvidence};
use crate::plan::{FlowPlan, Nanos};

/// The sender's thread ends a burst within this of its time.
const SENDER_END: Nanos = 1_000_000_000;
/// Windows by which a batch's reading of the clock may be early.
const EARLY: usize = 1;

pub(super) fn check(e: &PfcEvidence, at: &str) -> Checked {
    let lists = Lists { e, at };
    lists.sent()?;
    lists.received()?;
    lists.arrivals()?;
    let windows = &e.windows;
    ensure(
        windows.offered.len() == windows.received.len() && windows.width > 0,
        Rule::Windows,
        at,
        || {
            let (offered, received) = (windows.offered.len(), windows.received.len());
            format!("{offered} windows were offered and {received} received")
        },
    )?;
    for priority in Priority::all() {
        lists.windows(priority)?;
    }
    Ok(())
}

struct Lists<'e> {
    e: &'e PfcEvidence,
    at: &'e str,
}

/// Frames of some kind, from the first window in which some were to the last.
struct Counted {
    first: usize,
    last: usize,
    frames: u64,
    /// Sum of the windows in which they were counted.
    window_sum: u64,
}

impl Lists<'_> {
    fn flow(&self, id: u16) -> Option<&FlowPlan> {
        self.e.plan.flows.iter().find(|flow| flow.id == id)
    }

    fn ensure(
        &self,
        holds: bool,
        rule: Rule,
        part: &str,
        found: impl FnOnce() -> String,
    ) -> Checked {
        ensure(holds, rule, &format!("{}.{part}", self.at), found)
    }

    /// Frames that left were counted by flow and phase, once, and left in the phase.
    fn sent(&self) -> Checked {
        let flows = &self.e.sender.flows;
        for (index, sent) in flows.iter().enumerate() {
            let FlowSent { flow, phase, .. } = *sent;
            let twice = flows[..index]
                .iter()
                .any(|other| (other.flow, other.phase) == (flow, phase));
            let within = self.e.span(phase).is_some_and(|span| {
                span.from <= sent.first
                    && sent.first <= sent.last
                    && sent.last <= span.to + SENDER_END
            });
            let whole = self.flow(flow).is_some() && !twice && within && sent.frames > 0;
            self.ensure(whole, Rule::Flows, "sender.flows", || {
                format!("flow {flow} in phase {phase:?} is there twice, not in the plan or not in its time")
            })?;
        }
        Ok(())
    }

    /// Frames that arrived were counted by flow and phase, once; and their latencies as well.
    fn received(&self) -> Checked {
        let flows = &self.e.received;
        for (index, received) in flows.iter().enumerate() {
            let FlowReceived { flow, phase, .. } = *received;
            let twice = flows[..index]
                .iter()
                .any(|other| (other.flow, other.phase) == (flow, phase));
            let whole = self.flow(flow).is_some() && !twice && received.first <= received.last;
            self.ensure(whole, Rule::Flows, "received", || {
                format!("flow {flow} in phase {phase:?} is there twice, or not in the plan")
            })?;
            self.latencies(received)?;
        }
        let sum: u64 = flows.iter().map(all).sum();
        let counted = self.e.rx_port.test_frames;
        self.ensure(sum == counted, Rule::Flows, "received", || {
            format!("the flows have {sum} frames, the port counted {counted}")
        })
    }

    /// As many latencies as frames, with the mean and the largest that were noted.
    fn latencies(&self, received: &FlowReceived) -> Checked {
        let sum: u64 = received
            .latency
            .iter()
            .map(|frames| u64::from(*frames))
            .sum();
        let bits = |latency: Nanos| (Nanos::BITS - latency.leading_zeros()) as usize;
        let last = received
            .latency
            .iter()
            .rposition(|frames| *frames > 0)
            .unwrap_or(0);
        // Longer latencies share the buckets of short ones.
        let fits = bits(received.latency_max) < received.latency.len();
        let (mut least, mut most) = (0u128, 0u128);
        for (bits, frames) in received.latency.iter().enumerate() {
            least += u128::from(*frames) * (1u128 << bits >> 1);
            most += u128::from(*frames) * ((1u128 << bits) - 1);
        }
        let (mean, frames) = (
            u128::from(received.latency_mean),
            u128::from(received.frames),
        );
        let in_bounds = mean * frames <= most && (mean + 1) * frames >= least;
        let whole =
            sum == received.frames && (!fits || (bits(received.latency_max) == last && in_bounds));
        self.ensure(whole, Rule::Latencies, "received", || {
            format!(
                "flow {} in phase {:?} has {} frames and {sum} latencies, with a mean of {} ns and \
                 a largest of {} ns",
                received.flow,
                received.phase,
                received.frames,
                received.latency_mean,
                received.latency_max
            )
        })
    }

    /// The log has each frame of the flows and phases that are logged.
    fn arrivals(&self) -> Checked {
        let arrivals = &self.e.arrivals;
        let times = arrivals.records.iter().map(|arrival| arrival.time);
        self.ensure(ascends(times), Rule::Arrivals, "arrivals", || {
            "they are out of order".into()
        })?;
        let mut logged = 0;
        for flow in &self.e.plan.flows {
            for phase in Phase::ALL {
                logged += self.logged(flow, phase)?;
            }
        }
        let listed = arrivals.records.len() as u64;
        let whole = if arrivals.lost == 0 {
            listed == logged
        } else {
            listed <= logged && logged - listed <= arrivals.lost
        };
        self.ensure(whole, Rule::Arrivals, "arrivals", || {
            format!(
                "{listed} are listed and {} lost, of {logged}",
                arrivals.lost
            )
        })
    }

    /// Number of frames of a flow in a phase that the log should have.
    fn logged(&self, flow: &FlowPlan, phase: Phase) -> Result<u64, super::Defect> {
        let records = &self.e.arrivals.records;
        let of_it = records
            .iter()
            .filter(|arrival| (arrival.flow, arrival.phase) == (flow.id, phase));
        let times: Vec<Nanos> = of_it.map(|arrival| arrival.time).collect();
        let received = self.e.received(flow.id, phase);
        let counted = received.map_or(0, all);
        if times.is_empty() && !self.e.plan.logged(flow).contains(&phase) {
            return Ok(0);
        }
        let lost = self.e.arrivals.lost;
        let listed = times.len() as u64;
        let first = received
            .filter(|received| received.frames > 0)
            .map(|received| received.first);
        let begins = lost > 0 || first.is_none() || times.first().copied() == first;
        let whole = (listed == counted || (lost > 0 && listed < counted)) && begins;
        self.ensure(whole, Rule::Arrivals, "arrivals", || {
            format!(
                "flow {} in phase {phase:?} has {listed} from {:?} ns on, {counted} were counted \
                 from {first:?} ns on",
                flow.id,
                times.first()
            )
        })?;
        Ok(counted)
    }

    /// Frames of a priority by window are those by flow, and none arrives before it was offered.
    fn windows(&self, priority: Priority) -> Checked {
        let is_of = |id| self.flow(id).is_some_and(|flow| flow.priority == priority);
        let sent: Vec<Counted> = self
            .e
            .sender
            .flows
            .iter()
            .filter(|sent| is_of(sent.flow))
            .map(|sent| self.counted(sent.first, sent.last, sent.frames, sent.window_sum))
            .collect();
        let received: Vec<Counted> = self
            .e
            .received
            .iter()
            .filter(|received| is_of(received.flow) && received.frames > 0)
            .map(|flow| self.counted(flow.first, flow.last, flow.frames, flow.window_sum))
            .collect();
        let column = |windows: &[[u32; 8]]| -> Vec<u64> {
            windows
                .iter()
                .map(|window| u64::from(window[priority.index()]))
                .collect()
        };
        let (offered, arrived) = (
            column(&self.e.windows.offered),
            column(&self.e.windows.received),
        );
        let unknown = self.lost_by_sender();
        self.agree(priority, "offered", &offered, &sent, unknown)?;
        self.agree(priority, "received", &arrived, &received, 0)?;
        let batched = self.e.counting.clock == Clock::Batched;
        let early = if batched { 1 + EARLY } else { EARLY };
        let (mut offers, mut arrivals) = (unknown, 0);
        for (index, frames) in arrived.iter().enumerate() {
            if index == 0 {
                offers += offered.iter().take(early).sum::<u64>();
            }
            offers += offered.get(index + early).unwrap_or(&0);
            arrivals += frames;
            self.ensure(arrivals <= offers, Rule::Windows, "windows", || {
                format!(
                    "until window {index} {arrivals} frames of priority {priority} arrived, and \
                     only {offers} were offered"
                )
            })?;
        }
        Ok(())
    }

    /// The window of a time; the last has what came later.
    fn window(&self, time: Nanos) -> usize {
        let windows = &self.e.windows;
        let index = time.saturating_sub(windows.epoch) / windows.width.max(1);
        (index as usize).min(windows.offered.len().saturating_sub(1))
    }

    fn counted(&self, first: Nanos, last: Nanos, frames: u64, window_sum: u64) -> Counted {
        Counted {
            first: self.window(first).saturating_sub(EARLY),
            last: self.window(last) + EARLY,
            frames,
            window_sum,
        }
    }

    /// Frames that left the sender's account in a way that it could not follow.
    fn lost_by_sender(&self) -> u64 {
        let of_sender = self
            .e
            .accounting
            .iter()
            .filter(|counter| counter.place == "sender");
        of_sender.map(|counter| counter.rise).sum()
    }

    /// Windows and flows agree: in all but `unknown` frames, and each flow's are in its windows.
    fn agree(
        &self,
        priority: Priority,
        name: &str,
        windows: &[u64],
        flows: &[Counted],
        unknown: u64,
    ) -> Checked {
        let (by_window, by_flow): (u64, u64) = (
            windows.iter().sum(),
            flows.iter().map(|flow| flow.frames).sum(),
        );
        let part = format!("windows.{name}");
        self.ensure(
            by_window.abs_diff(by_flow) <= unknown,
            Rule::Windows,
            &part,
            || format!("priority {priority} has {by_window} frames by window, {by_flow} by flow"),
        )?;
        self.placed(priority, &part, windows, flows, unknown)?;
        for flow in flows {
            let theirs: u64 = windows.iter().take(flow.last + 1).skip(flow.first).sum();
            self.ensure(
                theirs + unknown >= flow.frames,
                Rule::Windows,
                &part,
                || {
                    format!(
                        "of {} frames of priority {priority} {theirs} are in windows {} to {}",
                        flow.frames, flow.first, flow.last
                    )
                },
            )?;
        }
        let stray = windows.iter().enumerate().find(|(index, frames)| {
            **frames > 0
                && flows
                    .iter()
                    .all(|flow| !(flow.first..=flow.last).contains(index))
        });
        self.ensure(stray.is_none(), Rule::Windows, &part, || {
            let index = stray.map_or(0, |(index, _)| index);
            format!("window {index} has frames of priority {priority}, of no flow at that time")
        })
    }

    /// The windows are in their order: the frames by window and those by flow have the same sum of
    /// the windows they were counted in, but for what `unknown` frames may add to it. Two windows
    /// in each other's place do not.
    fn placed(
        &self,
        priority: Priority,
        part: &str,
        windows: &[u64],
        flows: &[Counted],
        unknown: u64,
    ) -> Checked {
        let numbered = windows.iter().zip(0u128..);
        let by_window: u128 = numbered
            .map(|(frames, window)| u128::from(*frames) * window)
            .sum();
        let by_flow: u128 = flows.iter().map(|flow| u128::from(flow.window_sum)).sum();
        let may_differ = u128::from(unknown) * windows.len() as u128;
        self.ensure(
            by_window.abs_diff(by_flow) <= may_differ,
            Rule::Windows,
            part,
            || {
                format!(
                    "windows of the frames of priority {priority} have the sum {by_window},                      {by_flow} was noted by flow"
                )
            },
        )
    }
}

/// Frames of a flow that came in, distinct or not.
fn all(received: &FlowReceived) -> u64 {
    received.frames + received.duplicate + received.beyond_window
}
