//! Checks on which frames arrived, and when: `paused`, `background`, `isolation`, `delivered`,
//! `resume`, `test-traffic`, `no-loss`.

use pfc_ebpf::abi::account::Clock;
use pfc_ebpf::stamp::Phase;

use super::excuse::{Excuse, excuses};
use super::mac::{self, Counted, Witness};
use super::preconditions::{
    flows, has_narrow_gap, lost_by_tester, name, named, received, sent, shortest_lapse, storm_end,
};
use super::stalls::{but_stalled, delay};
use super::withheld::expect_offered;
use crate::cases::finding::{Again, Finding};
use crate::cases::value::{Value, count, time};
use crate::evidence::pfc::{PfcEvidence, StormReport, WaitEnd};
use crate::plan::{FlowPlan, Nanos, PortName, Role};

/// The kernel's tick at its slowest, 100 Hz: [`Clock::Batched`] records an arrival too early by
/// less than that.
const LONGEST_TICK: Nanos = 10_000_000;

/// The phases with traffic.
pub(super) const ALL: [Phase; 4] = [Phase::Baseline, Phase::Storm, Phase::Resume, Phase::Probe];

/// Phases in which the DUT has no reason for an XOFF of flows not stormed. A probe may pause it.
const OFFERED: [Phase; 3] = [Phase::Baseline, Phase::Storm, Phase::Resume];

/// End of the wait for the frames of `phase`: the end of the drain, or the start of the next step;
/// where silence ended it early, the time until which it might have gone on. What arrives after the
/// next traffic began, or the tester's next pause frame left, does not count as drained: that may
/// have let it go.
fn end_of_wait(e: &PfcEvidence, phase: Phase) -> Nanos {
    // After each burst of the probe there is one, and its traffic goes on until the last.
    let last = e.waits.iter().rev().find(|wait| wait.phase == phase);
    if let Some(wait) = last.filter(|wait| wait.end == WaitEnd::Quiet) {
        let sent = e.probes.iter().flat_map(|probe| &probe.left);
        let sent = sent.map(|frame| frame.before);
        let begun = e.phases.iter().map(|span| span.from);
        let next = sent.chain(begun).filter(|time| *time >= wait.to);
        return wait.deadline.min(next.min().unwrap_or(Nanos::MAX));
    }
    let Some(span) = e.span(phase) else { return 0 };
    if phase == Phase::Storm {
        return e.span(Phase::Drain).map_or(Nanos::MAX, |drain| drain.to);
    }
    let begun = e.phases.iter().map(|other| other.from);
    let later = begun.filter(|from| *from > span.from);
    later.min().unwrap_or(Nanos::MAX)
}

/// Expects each frame of the flows of `role` that left in one of `phases` to have arrived within
/// the bounded wait.
pub(super) fn expect_all(finding: &mut Finding, e: &PfcEvidence, role: Role, phases: &[Phase]) {
    let phases = phases.iter().filter_map(|phase| e.span(*phase));
    let counted: Vec<_> = phases
        .flat_map(|span| flows(e, Some(role)).map(move |flow| (flow, span.phase)))
        .map(|(flow, phase)| {
            let (sent, received) = (sent(e, flow, phase), received(e, flow, phase));
            let excuses = if received < sent {
                excuses(e, flow, phase)
            } else {
                Vec::new()
            };
            (flow, phase, sent, received, excuses)
        })
        .collect();
    let lost = |(_, _, sent, received, excuses): &(_, _, u64, u64, Vec<Excuse>)| {
        sent.saturating_sub(*received)
            .saturating_sub(explained(excuses))
    };
    // The tester's own losses are explained once, and not once a flow.
    let unexplained = counted.iter().map(lost).sum::<u64>() > lost_by_tester(e).0;
    for (flow, phase, sent, received, excuses) in counted {
        finding.of_flow(&named(e, flow), |finding| {
            let counts = (sent, received);
            expect_received(finding, e, (flow, phase), counts, &excuses, unexplained);
            let late = e.received(flow.id, phase).map_or(0, |received| {
                received.last.saturating_sub(end_of_wait(e, phase))
            });
            if late > 0 {
                let what = format!("last frame of {} sent in phase {phase:?}", name(e, flow));
                expect_in_time(finding, e, (flow, phase), what, "within the wait", late);
            }
        });
    }
}

/// Expects each frame of a flow that left in a phase to have arrived, but for those that `excuses`
/// explain.
fn expect_received(
    finding: &mut Finding,
    e: &PfcEvidence,
    (flow, phase): (&FlowPlan, Phase),
    (sent, received): (u64, u64),
    excuses: &[Excuse],
    certain: bool,
) {
    let what = format!(
        "frames of {} sent in phase {phase:?} and received",
        name(e, flow)
    );
    let arrived = count(received, "");
    if sent == 0 {
        finding.undecided(what, "some", "none left the tester");
    } else if received > sent {
        finding.undecided(what, sent, arrived + ", more than the sender knows of");
    } else if received < sent && sent - received <= explained(excuses) {
        let actual = arrived + ", but " + causes(excuses);
        if excuses
            .iter()
            .any(|excuse| excuse.again == Again::CannotDecide)
        {
            finding.undecidable(what, sent, actual);
        } else {
            finding.undecided(what, sent, actual);
        }
    } else {
        let mut actual = arrived;
        if received < sent {
            actual = actual + unasked(e, flow);
        }
        if !excuses.is_empty() {
            let most = explained(excuses);
            actual = actual + ", of which at most " + most + " because " + causes(excuses);
        }
        finding.prove(what, sent, actual, received == sent, certain);
    }
}

/// Frames that all of these explain together.
pub(super) fn explained(excuses: &[Excuse]) -> u64 {
    let frames = excuses.iter().map(|excuse| excuse.frames);
    frames.fold(0, u64::saturating_add)
}

/// The causes in words.
fn causes(excuses: &[Excuse]) -> Value {
    let causes = excuses.iter().map(|excuse| excuse.cause.clone());
    Value::joined(causes, "; and ")
}

/// Begin and end of the flight of the last frame of a flow that arrived in a phase.
fn last_flight(e: &PfcEvidence, flow: &FlowPlan, phase: Phase) -> (Nanos, Nanos) {
    let (Some(sent), Some(received)) = (e.sent(flow.id, phase), e.received(flow.id, phase)) else {
        return (0, 0);
    };
    // If all came in order it is the last that left. Else it had no more than the largest latency.
    let in_order = received.frames == sent.frames && received.reordered == 0;
    let longest = received.last.saturating_sub(received.latency_max);
    let from = if in_order {
        sent.last
    } else {
        longest.min(sent.last)
    };
    (from.min(received.last), received.last)
}

/// The last frame of a flow in a phase came `late`: a failure, unless the tester or the simulated
/// DUT stalled for that long while it was under way.
fn expect_in_time(
    finding: &mut Finding,
    e: &PfcEvidence,
    (flow, phase): (&FlowPlan, Phase),
    what: String,
    expected: &str,
    late: Nanos,
) {
    let (from, to) = last_flight(e, flow, phase);
    let stalled = delay(e, from, to);
    let actual = time(late) + " after its end";
    if late <= stalled {
        let why = but_stalled(actual, stalled) + " meanwhile";
        finding.undecided(what, expected, why);
    } else {
        finding.prove(what, expected, actual, false, true);
    }
}

/// Expects the storm-phase frames of the flows of `role` to have arrived while the storm still ran.
pub(super) fn expect_during_storm(finding: &mut Finding, e: &PfcEvidence, role: Role) {
    let (Some(storm), Some(data)) = (&e.storm, e.span(Phase::Storm)) else {
        finding.undecided("the storm", "traffic during a storm", "none");
        return;
    };
    let end = storm_end(e, storm);
    if end < data.to {
        // Frames that came after such a storm may have been sent after it.
        let actual = time(data.to - end) + " shorter";
        finding.undecided("the storm", "longer than the traffic", actual);
        return;
    }
    for flow in flows(e, Some(role)) {
        let Some(arrived) = e.received(flow.id, Phase::Storm) else {
            continue;
        };
        let what = format!("last storm-phase frame of {} received", name(e, flow));
        let expected = "while the storm still runs";
        finding.of_flow(&named(e, flow), |finding| {
            if arrived.last <= end {
                let actual = time(end - arrived.last) + " before its end";
                finding.expect(what, expected, actual, true);
            } else {
                let late = arrived.last - end;
                expect_in_time(finding, e, (flow, Phase::Storm), what, expected, late);
            }
        });
    }
}

fn expect_undisturbed(e: &PfcEvidence, role: Role) -> Finding {
    let mut finding = Finding::new();
    expect_all(&mut finding, e, role, &ALL);
    expect_during_storm(&mut finding, e, role);
    finding
}

/// Expects that nothing disturbs the flows of `role`, neither a loss nor an XOFF of the DUT.
fn expect_ignored(e: &PfcEvidence, role: Role) -> Finding {
    let mut finding = expect_undisturbed(e, role);
    expect_offered(&mut finding, e, role, &OFFERED);
    finding
}

/// `background` of cases 1 and 2, and of case 3, where it is the lossless priority.
pub(in crate::cases::pfc) fn background(e: &PfcEvidence) -> Finding {
    expect_ignored(e, Role::Background)
}

/// `isolation`.
pub(in crate::cases::pfc) fn isolation(e: &PfcEvidence) -> Finding {
    if flows(e, Some(Role::Isolation)).next().is_none() {
        return Finding::not_applicable("every lossless priority is stormed in this repetition");
    }
    expect_ignored(e, Role::Isolation)
}

/// `test-traffic` of case 3.
pub(in crate::cases::pfc) fn test_traffic(e: &PfcEvidence) -> Finding {
    expect_ignored(e, Role::Test)
}

/// `ignored` of pfc.enable-vector and pfc.zero-time, `others` of pfc.sizes: the traffic that the
/// storm does not pause.
pub(in crate::cases::pfc) fn ignored(e: &PfcEvidence) -> Finding {
    let mut finding = background(e);
    finding.merge(isolation(e));
    finding
}

/// `only-enabled` of pfc.enable-vector, `map` of pfc.class-map.
pub(in crate::cases::pfc) fn only_enabled(e: &PfcEvidence) -> Finding {
    let mut finding = paused(e);
    finding.merge(ignored(e));
    finding
}

/// `no-loss` of case 4; `throughput` has what the DUT's XOFF withheld.
pub(in crate::cases::pfc) fn no_loss(e: &PfcEvidence) -> Finding {
    expect_undisturbed(e, Role::Test)
}

/// Spans in which frames of the stormed priorities may have been let go because the storm had a
/// gap, or had not begun.
fn excused(e: &PfcEvidence, storm: &StormReport) -> Vec<(Nanos, Nanos)> {
    if has_narrow_gap(e, storm) {
        return vec![(0, Nanos::MAX)];
    }
    let baseline =
        flows(e, Some(Role::Test)).filter_map(|flow| e.received(flow.id, Phase::Baseline));
    let path = baseline.map(|received| received.latency_max).max();
    let path = path.unwrap_or(0);
    // The simulated DUT may have sent later what it let go in the gap, where its process came late.
    let lateness = e.dut.as_ref().map_or(0, |dut| dut.max_lateness);
    // The baseline's longest latency was longer than it shows where an old reading of the clock
    // served the frame.
    let early = if e.counting.clock == Clock::Batched {
        LONGEST_TICK
    } else {
        0
    };
    let stops = |after: Nanos| after + e.limits.max_response + path + lateness + early;
    let gaps = storm.gaps.iter().map(|gap| (gap.from, gap.to));
    let left_out = Some(&storm.gaps_left_out).filter(|left_out| !left_out.is_none());
    gaps.chain(left_out.map(|left_out| (left_out.from, left_out.to)))
        .map(|(from, to)| (from + shortest_lapse(e), stops(to)))
        .chain([(0, stops(storm.first.after))])
        .collect()
}

/// Arrivals of a flow's storm-phase frames before the storm's pause ended, where they are logged.
pub fn leaked(e: &PfcEvidence, flow: u16) -> Vec<Nanos> {
    let Some(storm) = &e.storm else {
        return Vec::new();
    };
    let end = storm_end(e, storm);
    let arrivals = e.arrivals.records.iter();
    let leaks = arrivals.filter(|arrival| {
        arrival.flow == flow && arrival.phase == Phase::Storm && arrival.time < end
    });
    leaks.map(|arrival| arrival.time).collect()
}

/// `paused`.
pub(in crate::cases::pfc) fn paused(e: &PfcEvidence) -> Finding {
    let mut finding = Finding::new();
    let (Some(storm), Some(data)) = (&e.storm, e.span(Phase::Storm)) else {
        finding.undecided("the storm", "traffic during a storm", "none");
        return finding;
    };
    let end = storm_end(e, storm);
    let excused = excused(e, storm);
    for flow in flows(e, Some(Role::Test)) {
        let leaks = leaked(e, flow.id);
        let is_unexcused =
            |leak: &&Nanos| !excused.iter().any(|(from, to)| (from..=to).contains(leak));
        let unexcused: Vec<&Nanos> = leaks.iter().filter(is_unexcused).collect();
        let what = format!(
            "storm-phase frames of {} received before the storm's pause ended",
            name(e, flow)
        );
        // The program's own first arrival needs no record: with full logs the two must agree.
        let received = e.received(flow.id, Phase::Storm);
        let first = received.map(|received| received.first);
        let after = |leak: Nanos| time(leak.saturating_sub(data.from));
        let all = Value::from(leaks.len());
        finding.of_flow(&named(e, flow), |finding| {
            match (unexcused.first(), leaks.len(), first) {
                (Some(leak), _, _) => {
                    let count = all + " (" + unexcused.len() + " unexcused, the first ";
                    let actual = count + after(**leak) + " after the start of data)";
                    finding.prove(what, 0, actual, false, true);
                }
                (None, 0, Some(first)) if first < end => {
                    let first = "some, the first at " + after(first);
                    finding.undecided(what, 0, first + ", but their records are missing");
                }
                (None, 0, _) => finding.expect(what, 0, 0, true),
                _ => finding.undecided(what, 0, all + ", all where the storm had a gap"),
            }
        });
    }
    finding
}

/// `delivered`.
pub(in crate::cases::pfc) fn delivered(e: &PfcEvidence) -> Finding {
    let mut finding = Finding::new();
    let phases = [Phase::Baseline, Phase::Storm];
    expect_all(&mut finding, e, Role::Test, &phases);
    finding
}

/// Expects no loss of the frames that the probe held back.
pub(super) fn expect_none_lost_by_probe(finding: &mut Finding, e: &PfcEvidence) {
    expect_all(finding, e, Role::Test, &[Phase::Probe]);
}

/// Names the counter of the MAC, if the MAC is the witness that the DUT did not ask for a pause.
/// The finding against the DUT rests on it.
fn unasked(e: &PfcEvidence, flow: &FlowPlan) -> Value {
    if e.plan.is_lossless(flow.priority)
        && flow.from == PortName::TX
        && let Ok(Witness::Mac(mac)) = mac::witness(e)
        && let Counted::None(how) = mac::xoff(mac, flow.priority)
    {
        let by = format!(", without an XOFF (by the MAC of {}, ", mac.interface);
        Value::from(by) + how + ")"
    } else {
        Value::default()
    }
}

/// `resume`.
pub(in crate::cases::pfc) fn resume(e: &PfcEvidence) -> Finding {
    let mut finding = Finding::new();
    if e.span(Phase::Resume).is_none() {
        finding.undecided("resume", "traffic after the drain", "none was sent");
    }
    expect_all(&mut finding, e, Role::Test, &[Phase::Resume]);
    expect_offered(&mut finding, e, Role::Test, &[Phase::Resume]);
    finding
}
