//! `lets-go`: the DUT lets its held frames go when the storm's last pause is over.

use pfc_ebpf::stamp::Phase;
use pfc_ebpf::units::Priority;

use super::preconditions::{flows, storm_end};
use super::probe::{Comparison, Measured, Wait, idle, in_time};
use super::stalls::but_stalled;
use crate::cases::finding::Finding;
use crate::cases::value::within;
use crate::evidence::pfc::{PfcEvidence, StormReport};
use crate::plan::{FlowPlan, Nanos, PortName, Role};

/// Share of the line at which held frames leave at the least, where they were offered at more. A
/// good simulated switch in an emulated guest, which is the slowest known, sent them at a third.
const LEAST: f64 = 0.25;

/// `lets-go`: each priority by itself, and for good. Which goes first is the scheduler's choice.
pub(in crate::cases::pfc) fn lets_go(e: &PfcEvidence) -> Finding {
    let mut finding = Finding::new();
    let Some(storm) = &e.storm else {
        finding.undecided("the storm", "one that ended", "none");
        return finding;
    };
    let sent = |priority: &Priority| {
        test(e, *priority).any(|flow| e.sent(flow.id, Phase::Storm).is_some())
    };
    let stormed: Vec<Priority> = Priority::all().filter(sent).collect();
    if stormed.is_empty() {
        finding.undecided("storm-phase test frames", "some", "none left the tester");
    }
    for priority in stormed {
        expect(&mut finding, e, storm, priority);
    }
    finding
}

/// The test flows of a priority.
fn test(e: &PfcEvidence, priority: Priority) -> impl Iterator<Item = &FlowPlan> {
    flows(e, Some(Role::Test)).filter(move |flow| flow.priority == priority)
}

/// Expects the first frame of `priority` soon after the last pause, each later one soon after the
/// one before it, and all that were held at no less than a part of the line's rate.
fn expect(finding: &mut Finding, e: &PfcEvidence, storm: &StormReport, priority: Priority) {
    let measured = Measured::of(e);
    let quanta = e.plan.storm_quanta();
    let pause = e.limits.pause_time(quanta) + e.limits.pause_tolerance(quanta);
    let over = storm.last.after + pause;
    let what = format!("first frame of priority {priority} after the storm's last pause");
    let logged = measured.arrivals_of(Phase::Storm, priority);
    let all = logged.len() as u64;
    let from = logged.partition_point(|arrival| arrival.time < storm_end(e, storm));
    let logged = logged.get(from..).unwrap_or_default();
    // The program's own first of a flow needs no record, unless it came earlier.
    let received = || test(e, priority).filter_map(|flow| e.received(flow.id, Phase::Storm));
    let counted = received().map(|received| received.first);
    let first = counted
        .chain(logged.iter().map(|arrival| arrival.time))
        .filter(|time| *time >= storm_end(e, storm))
        .min();
    let Some(first) = first else {
        finding.expect(what, within(measured.allowed()), "never", false);
        return;
    };
    let wait = match logged.first().filter(|arrival| arrival.time == first) {
        Some(arrival) => measured.wait(priority, over, arrival),
        None => Wait {
            since: over.min(first),
            until: first,
            counted: measured.counted(priority, over.min(first), first),
        },
    };
    let mut one = in_time(&measured, priority, what, wait);
    one.late.from = storm_end(e, storm);
    expect_in_time(finding, e, one);
    let what = format!("longest wait of a later frame of priority {priority}");
    if all < received().map(|received| received.frames).sum() {
        finding.undecided(what, "known", "not all records fitted");
        return;
    }
    if let Some(wait) = measured.longest_wait(priority, logged, first) {
        let mut one = in_time(&measured, priority, what, wait);
        one.late.from = wait.since;
        expect_in_time(finding, e, one);
    }
    // No device has to send them faster than they were offered: a shaper may be set to that.
    let offered = test(e, priority).map(|flow| flow.rate).sum::<u64>() as f64;
    let least = LEAST.min(offered / e.limits.line_rate.bits_per_second() as f64);
    let drain = measured.drain(logged, (storm_end(e, storm), first), 1.0 - least);
    let what = format!("idle time of the link while held frames of priority {priority} left");
    let one = idle(&measured, what, first, drain);
    if one.holds || all_logged_from(e, first) {
        expect_in_time(finding, e, one);
    } else {
        let why = "not every frame that came meanwhile was logged";
        finding.undecided(one.what, one.expected, why);
    }
}

/// True if each frame of the storm phase that came from `first` on was logged: others fill the link
/// too.
fn all_logged_from(e: &PfcEvidence, first: Nanos) -> bool {
    let logged = |flow: u16| {
        let records = e.arrivals.records.iter();
        let of_it = records.filter(|one| one.flow == flow && one.phase == Phase::Storm);
        of_it.count() as u64
    };
    let at_rx = |id: u16| {
        let mut flows = e.plan.flows.iter();
        flows.any(|flow| flow.id == id && flow.to == PortName::RX)
    };
    let mut late = e
        .received
        .iter()
        .filter(|flow| flow.phase == Phase::Storm && flow.last >= first && at_rx(flow.flow));
    late.all(|flow| logged(flow.flow) >= flow.frames)
}

/// Expects a comparison of times to hold, unless stalls explain that it does not.
fn expect_in_time(finding: &mut Finding, e: &PfcEvidence, one: Comparison) {
    match one.late.explained(e).filter(|_| !one.holds) {
        Some(stalled) => {
            let why = but_stalled(one.actual, stalled);
            finding.undecided(one.what, one.expected, why);
        }
        None => finding.expect_about(
            one.frame.as_slice(),
            one.what,
            one.expected,
            one.actual,
            one.holds,
        ),
    }
}
