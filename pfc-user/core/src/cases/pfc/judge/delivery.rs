//! Checks on which frames arrived, and when: `paused`, `background`, `isolation`, `delivered`,
//! `resume`, `test-traffic`, `no-loss`.

use pfc_ebpf::abi::account::Clock;
use pfc_ebpf::stamp::Phase;

use super::mac::{self, Counted, Witness};
use super::preconditions::{
    has_narrow_gap, lost_by_tester, name, shortest_pause, stalled, storm_end,
};
use crate::cases::finding::Finding;
use crate::evidence::pfc::{PfcEvidence, StormReport};
use crate::plan::{FlowPlan, Nanos, Role};
use crate::quantity::ms;

/// The kernel's tick at its slowest, 100 Hz: by less than that [`Clock::Batched`] tells an arrival
/// too early.
const LONGEST_TICK: Nanos = 10_000_000;

fn flows(e: &PfcEvidence, role: Role) -> Vec<&FlowPlan> {
    e.plan
        .flows
        .iter()
        .filter(|flow| flow.role == role)
        .collect()
}

fn sent(e: &PfcEvidence, flow: &FlowPlan, phase: Phase) -> u64 {
    e.sent(flow.id, phase).map_or(0, |sent| sent.frames)
}

fn received(e: &PfcEvidence, flow: &FlowPlan, phase: Phase) -> u64 {
    e.received(flow.id, phase)
        .map_or(0, |received| received.frames)
}

/// End of the wait for the frames of `phase`: the end of the drain, or the start of the next step.
fn end_of_wait(e: &PfcEvidence, phase: Phase) -> Nanos {
    let Some(span) = e.span(phase) else { return 0 };
    if phase == Phase::Storm {
        return e.span(Phase::Drain).map_or(Nanos::MAX, |drain| drain.to);
    }
    e.phases
        .iter()
        .map(|other| other.from)
        .filter(|from| *from > span.from)
        .min()
        .unwrap_or(Nanos::MAX)
}

/// Expects each frame of `flows` that left in one of `phases` to have arrived within the bounded
/// wait.
fn expect_all(finding: &mut Finding, e: &PfcEvidence, flows: &[&FlowPlan], phases: &[Phase]) {
    let phases = phases
        .iter()
        .copied()
        .filter(|phase| e.span(*phase).is_some());
    let counted: Vec<_> = phases
        .flat_map(|phase| flows.iter().map(move |flow| (*flow, phase)))
        .map(|(flow, phase)| (flow, phase, sent(e, flow, phase), received(e, flow, phase)))
        .collect();
    let excuse = |flow: &FlowPlan, phase, sent: u64, received: u64| {
        (received < sent).then(|| excuse(e, flow, phase)).flatten()
    };
    let lost = |(flow, phase, sent, received): &(&FlowPlan, Phase, u64, u64)| match excuse(
        flow, *phase, *sent, *received,
    ) {
        Some(_) => 0,
        None => sent.saturating_sub(*received),
    };
    // The tester's own losses are explained once, and not once a flow.
    let unexplained = counted.iter().map(lost).sum::<u64>() > lost_by_tester(e).0;
    for (flow, phase, sent, received) in counted {
        let what = format!(
            "frames of {} sent in phase {phase:?} and received",
            name(flow)
        );
        if sent == 0 {
            finding.undecided(what, "some", "none left the tester");
        } else if received > sent {
            finding.undecided(
                what,
                sent.to_string(),
                format!("{received}, more than the sender knows of"),
            );
        } else if let Some(excuse) = excuse(flow, phase, sent, received) {
            finding.undecided(what, sent.to_string(), format!("{received}, but {excuse}"));
        } else {
            let how = if received == sent {
                String::new()
            } else {
                unasked(e, flow)
            };
            finding.prove(
                what,
                sent.to_string(),
                format!("{received}{how}"),
                received == sent,
                unexplained,
            );
        }
        let late = e.received(flow.id, phase).map_or(0, |received| {
            received.last.saturating_sub(end_of_wait(e, phase))
        });
        if late > 0 {
            expect_in_time(
                finding,
                e,
                format!("last frame of {} sent in phase {phase:?}", name(flow)),
                "within the wait",
                late,
            );
        }
    }
}

/// A frame came `late`: a failure, unless the tester or the simulated DUT stalled for that long.
fn expect_in_time(
    finding: &mut Finding,
    e: &PfcEvidence,
    what: String,
    expected: &str,
    late: Nanos,
) {
    let stalled = stalled(e);
    if late <= stalled {
        let actual = format!(
            "{} after its end, but the tester or the simulated DUT stalled for {}",
            ms(late),
            ms(stalled)
        );
        finding.undecided(what, expected, actual);
    } else {
        finding.prove(
            what,
            expected,
            format!("{} after its end", ms(late)),
            false,
            true,
        );
    }
}

/// Expects the storm-phase frames of `flows` to have arrived while the storm still ran.
fn expect_during_storm(finding: &mut Finding, e: &PfcEvidence, flows: &[&FlowPlan]) {
    let (Some(storm), Some(data)) = (&e.storm, e.span(Phase::Storm)) else {
        finding.undecided("the storm", "traffic during a storm", "none");
        return;
    };
    let end = storm_end(e, storm);
    if end < data.to {
        // What came after such a storm may have been sent after it.
        finding.undecided(
            "the storm",
            "longer than the traffic",
            format!("{} shorter", ms(data.to - end)),
        );
        return;
    }
    for flow in flows {
        let Some(arrived) = e.received(flow.id, Phase::Storm) else {
            continue;
        };
        let (what, expected) = (
            format!("last storm-phase frame of {} received", name(flow)),
            "while the storm still runs",
        );
        if arrived.last <= end {
            finding.prove(
                what,
                expected,
                format!("{} before its end", ms(end - arrived.last)),
                true,
                false,
            );
        } else {
            expect_in_time(finding, e, what, expected, arrived.last - end);
        }
    }
}

fn expect_undisturbed(e: &PfcEvidence, flows: &[&FlowPlan]) -> Finding {
    let mut finding = Finding::new();
    expect_all(
        &mut finding,
        e,
        flows,
        &[Phase::Baseline, Phase::Storm, Phase::Resume, Phase::Probe],
    );
    expect_during_storm(&mut finding, e, flows);
    finding
}

/// `background` of cases 1 and 2, and of case 3, where it is the lossless priority.
pub(in crate::cases::pfc) fn background(e: &PfcEvidence) -> Finding {
    expect_undisturbed(e, &flows(e, Role::Background))
}

/// `isolation`.
pub(in crate::cases::pfc) fn isolation(e: &PfcEvidence) -> Finding {
    let flows = flows(e, Role::Isolation);
    if flows.is_empty() {
        return Finding::not_applicable("every lossless priority is stormed in this repetition");
    }
    expect_undisturbed(e, &flows)
}

/// `test-traffic` of case 3 and `no-loss` of case 4.
pub(in crate::cases::pfc) fn test_undisturbed(e: &PfcEvidence) -> Finding {
    expect_undisturbed(e, &flows(e, Role::Test))
}

/// Spans in which frames of the stormed priorities may have been let go because the storm had a
/// gap, or had not begun.
fn excused(e: &PfcEvidence, storm: &StormReport) -> Vec<(Nanos, Nanos)> {
    if has_narrow_gap(e, storm) {
        return vec![(0, Nanos::MAX)];
    }
    let path = flows(e, Role::Test)
        .iter()
        .filter_map(|flow| e.received(flow.id, Phase::Baseline))
        .map(|received| received.latency_max)
        .max()
        .unwrap_or(0);
    // What the simulated DUT let go in the gap it may have sent later, where its process came late.
    let lateness = e.dut.as_ref().map_or(0, |dut| dut.max_lateness);
    // The baseline's longest latency was longer than it shows where an old reading of the clock
    // served the frame.
    let early = if e.counting.clock == Clock::Batched {
        LONGEST_TICK
    } else {
        0
    };
    let stops = |after: Nanos| after + e.limits.max_response + path + lateness + early;
    let gaps = storm
        .gaps
        .iter()
        .map(|gap| (gap.from + shortest_pause(e), stops(gap.to)));
    let left_out = &storm.gaps_left_out;
    let left_out =
        (!left_out.is_none()).then(|| (left_out.from + shortest_pause(e), stops(left_out.to)));
    gaps.chain(left_out)
        .chain([(0, stops(storm.first.after))])
        .collect()
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
    for flow in flows(e, Role::Test) {
        let leaks: Vec<Nanos> = e
            .arrivals
            .records
            .iter()
            .filter(|arrival| {
                arrival.flow == flow.id && arrival.phase == Phase::Storm && arrival.time < end
            })
            .map(|arrival| arrival.time)
            .collect();
        let unexcused: Vec<Nanos> = leaks
            .iter()
            .copied()
            .filter(|leak| !excused.iter().any(|(from, to)| (from..=to).contains(&leak)))
            .collect();
        let what = format!(
            "storm-phase frames of {} received before the storm's pause ended",
            name(flow)
        );
        // The program's own first arrival needs no record: with full logs the two must agree.
        let first = e
            .received(flow.id, Phase::Storm)
            .map(|received| received.first);
        match (unexcused.first(), leaks.len(), first) {
            (Some(leak), _, _) => {
                let actual = format!(
                    "{} ({} unexcused, the first {} after the start of data)",
                    leaks.len(),
                    unexcused.len(),
                    ms(leak.saturating_sub(data.from))
                );
                finding.prove(what, "0", actual, false, true);
            }
            (None, 0, Some(first)) if first < end => {
                finding.undecided(
                    what,
                    "0",
                    format!(
                        "some, the first at {}, but their records are missing",
                        ms(first.saturating_sub(data.from))
                    ),
                );
            }
            (None, 0, _) => finding.prove(what, "0", "0", true, false),
            (None, count, _) => {
                finding.undecided(what, "0", format!("{count}, all where the storm had a gap"))
            }
        }
    }
    finding
}

/// `delivered`.
pub(in crate::cases::pfc) fn delivered(e: &PfcEvidence) -> Finding {
    let mut finding = Finding::new();
    expect_all(
        &mut finding,
        e,
        &flows(e, Role::Test),
        &[Phase::Baseline, Phase::Storm],
    );
    finding
}

/// Expects no loss of the frames that the probe held back.
pub(super) fn expect_none_lost_by_probe(finding: &mut Finding, e: &PfcEvidence) {
    expect_all(finding, e, &flows(e, Role::Test), &[Phase::Probe]);
}

/// The precondition `honoured`: the reason why a loss of `flow` in `phase` may not be the fault of
/// the DUT. The DUT may drop frames that the tester sends despite its XOFF, and frames that must
/// wait for longer than its `max_residence`.
fn excuse(e: &PfcEvidence, flow: &FlowPlan, phase: Phase) -> Option<String> {
    if !e.plan.is_lossless(flow.priority) {
        return None;
    }
    let after = e.sender.after_xoff[flow.priority.index()];
    if after > e.limits.headroom {
        return Some(format!(
            "{after} octets of priority {} left after the DUT's XOFF, its headroom is {}",
            flow.priority, e.limits.headroom
        ));
    }
    // The simulated DUT's XOFF leaves late if its process stalls. No headroom accounts for the
    // frames that arrive meanwhile.
    let stall = e
        .dut
        .iter()
        .flat_map(|dut| &dut.stalls)
        .map(|stall| stall.to - stall.from)
        .max()
        .unwrap_or(0);
    let rate: u64 = e
        .plan
        .flows
        .iter()
        .filter(|other| other.priority == flow.priority)
        .map(|flow| flow.rate)
        .sum();
    let meanwhile = (u128::from(rate) * u128::from(stall) / 8_000_000_000) as u64;
    if after + meanwhile > e.limits.headroom {
        return Some(format!(
            "the simulated DUT stalled for {}, in which {meanwhile} octets came in, and its XOFF \
             was late by as much; its headroom is {}",
            ms(stall),
            e.limits.headroom
        ));
    }
    // What was sent first had to wait the longest: until the storm's pause ended.
    let first = e
        .sent(flow.id, phase)
        .filter(|_| phase == Phase::Storm && e.plan.is_stormed(flow.priority))
        .map(|sent| sent.first);
    let waited = e.storm.as_ref().zip(first).map_or(0, |(storm, first)| {
        storm_end(e, storm).saturating_sub(first)
    });
    if waited > e.limits.max_residence {
        return Some(format!(
            "the storm made frames wait {}, longer than max_residence {}: shorten it or declare \
             what the DUT can hold",
            ms(waited),
            ms(e.limits.max_residence)
        ));
    }
    match mac::witness(e) {
        // The sender obeyed what the program saw.
        Ok(Witness::Program) => None,
        // It obeyed none: only a DUT that never asked for a pause has to answer for the loss.
        Ok(Witness::Mac(mac)) => match mac::xoff(mac, flow.priority) {
            Counted::None(_) => None,
            Counted::Some(how) => Some(format!(
                "the DUT asked for a pause, which the sender did not obey, for its program sees \
                 none: by the MAC, {how}"
            )),
            Counted::Unknown(why) => Some(format!(
                "it is not known whether the DUT asked for a pause: by the MAC, {why}"
            )),
        },
        Err(why) => Some(why),
    }
}

/// Names the counter of the MAC, if the MAC is the witness that the DUT did not ask for a pause.
/// The finding against the DUT rests on it.
fn unasked(e: &PfcEvidence, flow: &FlowPlan) -> String {
    if !e.plan.is_lossless(flow.priority) {
        return String::new();
    }
    match mac::witness(e) {
        Ok(Witness::Mac(mac)) => match mac::xoff(mac, flow.priority) {
            Counted::None(how) => {
                format!(", without an XOFF (by the MAC of {}, {how})", mac.interface)
            }
            Counted::Some(_) | Counted::Unknown(_) => String::new(),
        },
        _ => String::new(),
    }
}

/// `resume`.
pub(in crate::cases::pfc) fn resume(e: &PfcEvidence) -> Finding {
    let mut finding = Finding::new();
    let test = flows(e, Role::Test);
    if e.span(Phase::Resume).is_none() {
        finding.undecided("resume", "traffic after the drain", "none was sent");
    }
    expect_all(&mut finding, e, &test, &[Phase::Resume]);
    finding
}
