//! `victim`: a stormed priority goes on between ports that the storm does not concern.

use pfc_ebpf::stamp::Phase;

use super::delivery::{ALL, expect_all, expect_during_storm};
use super::preconditions::{flows, name, named, not_shown, unseen, withheld};
use super::stalls::{but_stalled, delay, stalled_within};
use crate::cases::finding::Finding;
use crate::cases::value::{Value, number, time};
use crate::evidence::pfc::{FlowReceived, PfcEvidence, PhaseSpan};
use crate::plan::{FlowPlan, Nanos, Role};
use crate::verdict::{Bound, Verdict};

/// Share of a flow that has to go on as before.
const GOES_ON: f64 = 0.99;

/// `victim`.
pub(in crate::cases::pfc) fn victim(e: &PfcEvidence) -> Finding {
    let mut finding = Finding::new();
    expect_all(&mut finding, e, Role::Victim, &ALL);
    let mut times = Finding::new();
    expect_during_storm(&mut times, e, Role::Victim);
    let span = e.span(Phase::Storm);
    for (flow, span) in flows(e, Some(Role::Victim)).zip(span.into_iter().cycle()) {
        times.of_flow(&named(e, flow), |times| {
            expect_on_time(times, e, flow, span)
        });
        finding.of_flow(&named(e, flow), |finding| {
            expect_unasked(finding, e, flow, span)
        });
    }
    // A MAC that keeps the DUT's PFC obeys it: frames with a stamp wait in the tester then.
    let blind = flows(e, Some(Role::Victim)).find_map(|flow| unseen(e, Some(flow)).next());
    let is_late = times
        .assertions
        .iter()
        .any(|one| one.verdict == Verdict::Fail);
    match blind.filter(|_| is_late) {
        Some(port) => {
            let what = "frames of the further ports in the storm";
            let found = "late, and " + Value::from(not_shown(port));
            finding.undecidable(what, "as soon as in the baseline", found);
        }
        None => finding.merge(times),
    }
    finding
}

/// How long frames of a flow are under way in the storm beside the baseline.
struct Way<'e> {
    before: &'e FlowReceived,
    found: &'e FlowReceived,
    /// Time that a response and a burst add.
    added: Nanos,
}

impl<'e> Way<'e> {
    /// `None` where no frame came in one of the phases.
    fn new(e: &'e PfcEvidence, flow: &FlowPlan) -> Option<Self> {
        Some(Self {
            before: e.received(flow.id, Phase::Baseline)?,
            found: e.received(flow.id, Phase::Storm)?,
            added: e.limits.max_response.saturating_add(e.sender.max_burst),
        })
    }

    /// Time above which a frame is late. One outlier of the baseline raises it.
    fn most(&self) -> Nanos {
        self.before.latency_max.saturating_add(self.added)
    }

    /// The same by what all but a hundredth of the baseline's frames took at most.
    fn usual(&self) -> Nanos {
        let mut seen = 0u64;
        let all = self.before.latency.iter().map(|frames| u64::from(*frames));
        let rank = GOES_ON * all.clone().sum::<u64>() as f64;
        let bits = all.clone().position(|frames| {
            seen += frames;
            seen as f64 >= rank
        });
        let longest = 1u64 << bits.unwrap_or(all.count());
        longest
            .min(self.before.latency_max)
            .saturating_add(self.added)
    }

    /// Share of the storm's frames that took longer than that for certain: a latency of n
    /// significant bits is at least 2^(n - 1) ns.
    fn share_above(&self, allowed: Nanos) -> f64 {
        let buckets = self.found.latency.iter().enumerate();
        let above = buckets.filter(|(bits, _)| 1u64 << bits.saturating_sub(1) > allowed);
        let above: u64 = above.map(|(_, frames)| u64::from(*frames)).sum();
        above as f64 / (self.found.frames as f64).max(1.0)
    }
}

/// Expects nearly all storm-phase frames of `flow` to have been under way for about as long as
/// those of the baseline. Stalls may explain that they were not, and a stall of the tester's
/// receiver, which nobody lists: then other frames to that port, which no storm names, are late too.
fn expect_on_time(finding: &mut Finding, e: &PfcEvidence, flow: &FlowPlan, span: PhaseSpan) {
    let Some(way) = Way::new(e, flow) else {
        // Their absence has findings of its own.
        return;
    };
    let late = 1.0 - GOES_ON;
    let most = way.most();
    let what = format!(
        "share of {} in phase {:?} that was under way for longer than {}",
        name(e, flow),
        span.phase,
        time(most).into_text()
    );
    let expected = (Value::from("<= ") + number(late, 2, "")).is(Bound::AtMost);
    let longest = time(way.found.latency_max);
    let actual = number(way.share_above(most), 4, "") + ", the longest for " + longest;
    let beside = e.plan.flows.iter();
    let mut beside = beside.filter(|other| other.to == flow.to && !e.plan.is_held(other.priority));
    let is_late = |other: &FlowPlan| {
        Way::new(e, other).is_some_and(|way| way.share_above(way.usual()) > late)
    };
    let stalled = delay(e, span.from, span.to);
    if way.share_above(way.usual()) <= late {
        finding.expect(what, expected, actual, true);
    } else if way.share_above(most) <= late {
        let why = actual + ", but only few took as long in the baseline";
        finding.undecided(what, expected, why);
    } else if way.share_above(most.saturating_add(stalled)) <= late {
        finding.undecided(what, expected, but_stalled(actual, stalled));
    } else if beside.any(is_late) {
        let why = actual + ", but so it was with frames to that port that no storm names";
        finding.undecided(what, expected, why);
    } else {
        finding.expect(what, expected, actual, false);
    }
}

/// Where the DUT asked the port of `flow` to wait, it is not known what the storm does to the flow.
fn expect_unasked(finding: &mut Finding, e: &PfcEvidence, flow: &FlowPlan, span: PhaseSpan) {
    let (held, phase) = (withheld(e, flow, span.phase), span.to - span.from);
    if held as f64 <= (1.0 - GOES_ON) * phase as f64 {
        return;
    }
    let what = format!("time for which the DUT's XOFF withheld {}", name(e, flow));
    let expected = Value::from("<= ") + number(1.0 - GOES_ON, 2, "of the phase");
    let expected = expected.is(Bound::AtMost);
    let found = time(held) + " of " + time(phase);
    match stalled_within(e, span.from, span.to) {
        0 => {
            let why = found + ": a buffer of all ports may be full";
            finding.undecidable(what, expected, why);
        }
        stalled => finding.undecided(what, expected, but_stalled(found, stalled)),
    }
}

/// The least time that a hundredth of the frames is found to take, where it takes longest.
pub(in crate::cases::pfc) fn least_late(e: &PfcEvidence) -> Option<Nanos> {
    let flows = flows(e, Some(Role::Victim));
    let most = flows
        .filter_map(|flow| Some(Way::new(e, flow)?.most()))
        .max()?;
    // The first bucket that lies above it.
    most.checked_add(1)?.checked_next_power_of_two()
}
