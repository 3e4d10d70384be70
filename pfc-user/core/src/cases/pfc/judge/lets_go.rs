//! `lets-go`: the DUT lets its held frames go when the storm's last pause is over.

use pfc_ebpf::stamp::Phase;

use super::preconditions::storm_end;
use super::stalls::stalled_within;
use crate::cases::finding::Finding;
use crate::cases::pfc::probing::two_frames;
use crate::evidence::pfc::PfcEvidence;
use crate::plan::{FlowPlan, Nanos, Role};
use crate::quantity::ms;

/// `lets-go`. Which priority goes first is the scheduler's choice.
pub(in crate::cases::pfc) fn lets_go(e: &PfcEvidence) -> Finding {
    let mut finding = Finding::new();
    let Some(storm) = &e.storm else {
        finding.undecided("the storm", "one that ended", "none");
        return finding;
    };
    if !test(e).any(|flow| e.sent(flow.id, Phase::Storm).is_some()) {
        finding.undecided("storm-phase test frames", "some", "none left the tester");
        return finding;
    }
    let quanta = e.plan.storm.quanta;
    let pause = e.limits.pause_time(quanta) + e.limits.pause_tolerance(quanta);
    let allowed = e.limits.max_response + two_frames(&e.plan, &e.limits);
    let over = storm.last.after + pause;
    let what = "first frame of a stormed priority after the storm's last pause";
    let expected = format!("within {}", ms(allowed));
    let Some(first) = first_after(e, storm_end(e, storm)) else {
        finding.expect(what, expected, "never", false);
        return finding;
    };
    let waited = first.saturating_sub(over);
    let stalled = stalled_within(e, storm_end(e, storm), first);
    if waited > allowed && waited - allowed <= stalled {
        let actual = format!(
            "{}, but the tester or the simulated DUT stalled for {}",
            ms(waited),
            ms(stalled)
        );
        finding.undecided(what, expected, actual);
    } else {
        finding.expect(what, expected, ms(waited), waited <= allowed);
    }
    finding
}

/// The test flows.
fn test(e: &PfcEvidence) -> impl Iterator<Item = &FlowPlan> {
    e.plan.flows.iter().filter(|flow| flow.role == Role::Test)
}

/// The first arrival of a storm-phase test frame at `from` or later. The program's own first of a
/// flow needs no record, unless it came earlier.
fn first_after(e: &PfcEvidence, from: Nanos) -> Option<Nanos> {
    let counted = test(e)
        .filter_map(|flow| e.received(flow.id, Phase::Storm))
        .map(|received| received.first);
    let logged = e.arrivals.records.iter().filter(|arrival| {
        arrival.phase == Phase::Storm && test(e).any(|flow| flow.id == arrival.flow)
    });
    counted
        .chain(logged.map(|arrival| arrival.time))
        .filter(|time| *time >= from)
        .min()
}
