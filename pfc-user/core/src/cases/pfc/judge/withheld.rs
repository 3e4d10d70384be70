//! Traffic that the DUT's XOFF keeps the tester from sending: it counts as offered, for a DUT that
//! asks for pauses without need delivers less than what was to be sent.

use pfc_ebpf::stamp::Phase;

use super::dip::sum;
use super::preconditions::{
    flows, frames_at, name, named, rate_in, sent, withheld, withheld_until,
};
use super::stalls::{but_stalled, stalled_within};
use super::throughput::{at_least, share_beside};
use crate::cases::finding::Finding;
use crate::cases::value::{count, number, time};
use crate::evidence::pfc::{PfcEvidence, PhaseSpan};
use crate::plan::{FlowPlan, Nanos, Role};

/// Share that has to arrive of what was offered in a phase.
const SHARE: f64 = 0.99;
/// Time after the end of a phase in which frames still count as having come in it.
const EDGE: Nanos = 100_000_000;

/// Expects that of what the flows of `role` offered in each of `phases`, with what the DUT's XOFF
/// withheld, nearly all arrived in the phase.
pub(super) fn expect_offered(finding: &mut Finding, e: &PfcEvidence, role: Role, phases: &[Phase]) {
    for span in phases.iter().filter_map(|phase| e.span(*phase)) {
        for flow in flows(e, Some(role)) {
            finding.of_flow(&named(e, flow), |finding| expect(finding, e, flow, span));
        }
    }
}

fn expect(finding: &mut Finding, e: &PfcEvidence, flow: &FlowPlan, span: PhaseSpan) {
    let phase = span.phase;
    let withheld = withheld(e, flow, phase);
    let offered = sent(e, flow, phase) as f64 + frames_at(rate_in(e, flow, phase), flow, withheld);
    let arrived = in_time(e, flow, phase, span.to + EDGE);
    let missing = offered - arrived as f64;
    // Lost and late frames have findings of their own.
    if withheld == 0 || offered < 1.0 {
        return;
    }
    let holds = arrived as f64 >= SHARE * offered;
    let what = format!(
        "share of {} offered in phase {phase:?} that arrived, what the DUT's XOFF withheld \
         included",
        name(e, flow)
    );
    let expected = at_least(SHARE);
    let actual = share_beside(arrived as f64 / offered, SHARE)
        + " ("
        + count(arrived, "")
        + " of "
        + number(offered, 0, "frames")
        + "; withheld for "
        + time(withheld)
        + " of "
        + time(span.to - span.from)
        + ")";
    // After a stall the DUT's queues are fuller by what the line takes in that time.
    let until = span.to.min(withheld_until(e, flow, phase));
    let stalled = stalled_within(e, span.from, until);
    let explained = frames_at(e.limits.line_rate.bits_per_second(), flow, stalled);
    if !holds && missing - explained <= (1.0 - SHARE) * offered {
        finding.undecided(what, expected, but_stalled(actual, stalled));
    } else {
        finding.expect(what, expected, actual, holds);
    }
}

/// Frames of `phase` that arrived by `end`. Where the last one came later the windows tell, which
/// know priorities and no flows: those are then taken for all of the phase.
fn in_time(e: &PfcEvidence, flow: &FlowPlan, phase: Phase, end: Nanos) -> u64 {
    let Some(received) = e.received(flow.id, phase) else {
        return 0;
    };
    let Some(span) = e.span(phase).filter(|_| received.last > end) else {
        return received.frames;
    };
    let width = e.windows.width.max(1);
    let index = |time: Nanos| (time.saturating_sub(e.windows.epoch) / width) as usize;
    let windows = &e.windows.received;
    let in_span = index(span.from)..windows.len().min(index(end) + 1);
    received.frames.min(sum(windows, in_span, &[flow.priority]))
}
