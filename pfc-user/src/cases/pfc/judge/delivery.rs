//! Checks on which frames arrived, and when: `paused`, `background`, `isolation`, `delivered`, `resume`, `test-traffic`, `no-loss`.

use pfc_ebpf::stamp::Phase;

use super::finding::{Finding, ms};
use super::preconditions::{lost_by_tester, pfc_visible, stalled, storm_end};
use crate::case::Verdict;
use crate::evidence::pfc::{PfcEvidence, StormReport};
use crate::plan::{FlowPlan, Nanos, Role};

fn flows(e: &PfcEvidence, role: Role) -> Vec<&FlowPlan> {
    e.plan.flows.iter().filter(|flow| flow.role == role).collect()
}

fn sent(e: &PfcEvidence, flow: &FlowPlan, phase: Phase) -> u64 {
    e.sent(flow.id, phase).map_or(0, |sent| sent.frames)
}

fn received(e: &PfcEvidence, flow: &FlowPlan, phase: Phase) -> u64 {
    e.received(flow.id, phase).map_or(0, |received| received.frames)
}

fn name(flow: &FlowPlan) -> String {
    match flow.pcp {
        Some(pcp) => format!("flow {} (PCP {pcp})", flow.id),
        None => format!("flow {} (DSCP {})", flow.id, flow.dscp),
    }
}

/// When the wait for the frames of `phase` was over: the drain's end, or the start of what was done next.
fn end_of_wait(e: &PfcEvidence, phase: Phase) -> Nanos {
    let Some(span) = e.span(phase) else { return 0 };
    if phase == Phase::Storm {
        return e.span(Phase::Drain).map_or(Nanos::MAX, |drain| drain.to);
    }
    e.phases.iter().map(|other| other.from).filter(|from| *from > span.from).min().unwrap_or(Nanos::MAX)
}

/// Expects each frame of `flows` that left in `phase` to have arrived within the bounded wait.
pub(super) fn expect_all(finding: &mut Finding, e: &PfcEvidence, flows: &[&FlowPlan], phase: Phase) {
    if e.span(phase).is_none() {
        return;
    }
    let (explained, _) = lost_by_tester(e);
    let end = end_of_wait(e, phase);
    for flow in flows {
        let (sent, received) = (sent(e, flow, phase), received(e, flow, phase));
        finding.expect(
            format!("frames of {} sent in phase {phase:?} and received", name(flow)),
            sent.to_string(),
            received.to_string(),
            received == sent,
            sent.abs_diff(received) > explained,
        );
        let late = e.received(flow.id, phase).map_or(0, |received| received.last.saturating_sub(end));
        if late > 0 {
            let what = format!("last frame of {} sent in phase {phase:?}", name(flow));
            finding.expect(what, "within the wait", format!("{} after its end", ms(late)), false, late > stalled(e));
        }
    }
}

/// Expects the storm-phase frames of `flows` to have arrived while the storm still ran.
fn expect_during_storm(finding: &mut Finding, e: &PfcEvidence, flows: &[&FlowPlan]) {
    let Some(storm) = &e.storm else {
        finding.undecided("the storm", "a storm", "none was sent");
        return;
    };
    let end = storm_end(e, storm);
    // A frame held up by a stall of the tester or the simulated DUT is late without the device's doing.
    let stalled = stalled(e);
    for flow in flows {
        let Some(arrived) = e.received(flow.id, Phase::Storm) else { continue };
        let late = arrived.last.saturating_sub(end);
        finding.expect(
            format!("last storm-phase frame of {} received", name(flow)),
            "while the storm still runs",
            if late == 0 { format!("{} before its end", ms(end - arrived.last)) } else { format!("{} after its end", ms(late)) },
            late == 0,
            late > stalled,
        );
    }
}

fn expect_undisturbed(e: &PfcEvidence, flows: &[&FlowPlan]) -> Finding {
    let mut finding = Finding::new();
    for phase in [Phase::Baseline, Phase::Storm] {
        expect_all(&mut finding, e, flows, phase);
    }
    // What becomes of the flows that the probe pauses is the check `response`.
    let probed = |flow: &FlowPlan| e.plan.probe.as_ref().is_some_and(|probe| probe.priorities.contains(&flow.priority));
    let others: Vec<&FlowPlan> = flows.iter().copied().filter(|flow| !probed(flow)).collect();
    expect_all(&mut finding, e, &others, Phase::Probe);
    expect_during_storm(&mut finding, e, flows);
    finding
}

/// `background` of cases 1 and 2, and of case 3, where it is the lossless priority.
pub(super) fn background(e: &PfcEvidence) -> Finding {
    expect_undisturbed(e, &flows(e, Role::Background))
}

/// `isolation`.
pub(super) fn isolation(e: &PfcEvidence) -> Finding {
    let flows = flows(e, Role::Isolation);
    if flows.is_empty() {
        return Finding::not_applicable("every lossless priority is stormed in this repetition");
    }
    expect_undisturbed(e, &flows)
}

/// `test-traffic` of case 3 and `no-loss` of case 4.
pub(super) fn test_undisturbed(e: &PfcEvidence) -> Finding {
    expect_undisturbed(e, &flows(e, Role::Test))
}

/// Spans in which frames of the stormed priorities may have been let go because the storm had a gap.
fn excused(e: &PfcEvidence, storm: &StormReport) -> Vec<(Nanos, Nanos)> {
    let quanta = e.plan.storm.quanta;
    let path = flows(e, Role::Test)
        .iter()
        .filter_map(|flow| e.received(flow.id, Phase::Baseline))
        .map(|received| received.latency_max)
        .max()
        .unwrap_or(0);
    let pause = e.limits.pause_time(quanta).saturating_sub(e.limits.pause_tolerance(quanta));
    storm.gaps.iter().map(|(before, after)| (before.before + pause, after.after + e.limits.max_response + path)).collect()
}

/// `paused`.
pub(super) fn paused(e: &PfcEvidence) -> Finding {
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
            .filter(|arrival| arrival.flow == flow.id && arrival.phase == Phase::Storm && arrival.time < end)
            .map(|arrival| arrival.time)
            .collect();
        let unexcused: Vec<Nanos> =
            leaks.iter().copied().filter(|leak| !excused.iter().any(|(from, to)| (from..=to).contains(&leak))).collect();
        let what = format!("storm-phase frames of {} received before the storm's pause ended", name(flow));
        // The program's own first arrival needs no record: with full logs the two must agree.
        let first = e.received(flow.id, Phase::Storm).map(|received| received.first);
        match (unexcused.first(), leaks.len(), first) {
            (Some(leak), _, _) => {
                let actual = format!(
                    "{} ({} unexcused, the first {} after the start of data)",
                    leaks.len(),
                    unexcused.len(),
                    ms(leak.saturating_sub(data.from))
                );
                finding.expect(what, "0", actual, false, true);
            }
            (None, 0, Some(first)) if first < end => {
                finding.undecided(what, "0", format!("some, the first at {}, but their records are missing", ms(first - data.from)));
            }
            (None, 0, _) => finding.expect(what, "0", "0", true, false),
            (None, count, _) => finding.undecided(what, "0", format!("{count}, all where the storm had a gap")),
        }
    }
    finding
}

/// `delivered`: with the conditions under which a loss is the DUT's.
pub(super) fn delivered(e: &PfcEvidence) -> Finding {
    let mut finding = Finding::new();
    let test = flows(e, Role::Test);
    for phase in [Phase::Baseline, Phase::Storm] {
        expect_all(&mut finding, e, &test, phase);
    }
    excuse_loss(&mut finding, e, &test);
    finding
}

/// Expects no loss of the frames that the probe held back.
pub(super) fn expect_none_lost_by_probe(finding: &mut Finding, e: &PfcEvidence) {
    let test = flows(e, Role::Test);
    expect_all(finding, e, &test, Phase::Probe);
    excuse_loss(finding, e, &test);
}

/// A loss is not the DUT's where the tester did not honour its XOFF.
fn excuse_loss(finding: &mut Finding, e: &PfcEvidence, test: &[&FlowPlan]) {
    if finding.verdict == Verdict::Fail
        && let Err(excuse) = honoured(e, test)
    {
        finding.verdict = Verdict::Inconclusive;
        finding.reason = format!("frames were lost, but {excuse}");
    }
}

/// Whether the tester honoured the DUT's XOFF, so that it need not have lost anything.
fn honoured(e: &PfcEvidence, test: &[&FlowPlan]) -> Result<(), String> {
    for flow in test {
        let after = e.sender.after_xoff[flow.priority.index()];
        if after > e.limits.headroom {
            return Err(format!(
                "{after} octets of priority {} left after the DUT's XOFF, its headroom is {}",
                flow.priority, e.limits.headroom
            ));
        }
        // What was sent first had to wait the longest: until the storm's pause ended.
        let sent = e.sent(flow.id, Phase::Storm).map(|sent| sent.first);
        let waited = e.storm.as_ref().zip(sent).map_or(0, |(storm, first)| storm_end(e, storm).saturating_sub(first));
        if waited > e.limits.max_residence {
            return Err(format!(
                "the storm made frames of {} wait {}, longer than max_residence {}: shorten it or declare what the DUT can hold",
                name(flow),
                ms(waited),
                ms(e.limits.max_residence)
            ));
        }
    }
    pfc_visible(e)
}

/// `resume`.
pub(super) fn resume(e: &PfcEvidence) -> Finding {
    let mut finding = Finding::new();
    let test = flows(e, Role::Test);
    if e.span(Phase::Resume).is_none() {
        finding.undecided("resume", "traffic after the drain", "none was sent");
    }
    for flow in &test {
        let sent = sent(e, flow, Phase::Resume);
        finding.expect(format!("frames of {} sent in phase Resume", name(flow)), "more than 0", sent.to_string(), sent > 0, false);
    }
    expect_all(&mut finding, e, &test, Phase::Resume);
    finding
}
