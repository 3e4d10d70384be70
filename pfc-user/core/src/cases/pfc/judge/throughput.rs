//! The check `throughput`.

use pfc_ebpf::stamp::Phase;
use pfc_ebpf::units::LineRate;

use super::preconditions::{self, lost_by_tester, sent, withheld, withheld_until};
use super::stalls::{stalled_within, unlisted_lateness};
use crate::cases::finding::Finding;
use crate::cases::value::{Value, number, time};
use crate::evidence::pfc::PfcEvidence;
use crate::plan::Nanos;
use crate::verdict::Bound;

/// A share with as many digits, at least four, as show on which side of `limit` it is.
pub(super) fn share_beside(share: f64, limit: f64) -> Value {
    let same_side = |shown: &Value| {
        let mut rounded = shown.numbers().iter();
        rounded.all(|rounded| (rounded.value < limit) == (share < limit))
    };
    let mut shown = (4..17).map(|digits| number(share, digits, ""));
    shown.find(same_side).unwrap_or_else(|| share.into())
}

/// The least share that is allowed.
pub(super) fn at_least(share: f64) -> Value {
    (">= " + Value::from(share)).is(Bound::AtLeast)
}

/// The time that `throughput` is taken over: from the storm phase's begin to the last of its frames
/// that arrived, and at the least to its end.
fn storm_time(e: &PfcEvidence) -> Option<(Nanos, Nanos)> {
    let span = e.span(Phase::Storm)?;
    let flows = e.plan.flows.iter();
    let arrived = flows.filter_map(|flow| e.received(flow.id, Phase::Storm));
    let last = arrived.map(|arrived| arrived.last).max();
    Some((span.from, last.map_or(span.to, |last| last.max(span.to))))
}

/// Layer-1 rates of the storm phase in bit/s, offered (with what the DUT's XOFF withheld) and
/// received: as they were, or at best. At best the last frames came earlier by all lateness of the
/// tester until then, and each XOFF held for less by what there was until its end: what comes at
/// once after a delay of the tester fills the DUT's buffers, and a simulated DUT that stalls sets
/// nothing free.
fn rates(e: &PfcEvidence, at_best: bool) -> Option<(f64, f64)> {
    let span = e.span(Phase::Storm)?;
    let (_, last) = storm_time(e)?;
    let late_until = |end: Nanos| if at_best { lateness_until(e, end) } else { 0 };
    let mut offered = 0.0;
    let mut received = 0.0;
    for flow in &e.plan.flows {
        let bits = LineRate::frame_bits(flow.length) as f64;
        offered += sent(e, flow, Phase::Storm) as f64 * bits;
        let late = late_until(withheld_until(e, flow, Phase::Storm));
        offered +=
            flow.rate as f64 * withheld(e, flow, Phase::Storm).saturating_sub(late) as f64 / 1e9;
        received += preconditions::received(e, flow, Phase::Storm) as f64 * bits;
    }
    let sending = (span.to - span.from).max(1) as f64 / 1e9;
    let end = last.saturating_sub(late_until(last)).max(span.to);
    let receiving = (end - span.from).max(1) as f64 / 1e9;
    (offered > 0.0).then_some((offered / sending, received / receiving))
}

/// Lateness in the storm phase until `end` for which the tester itself may be the reason: its
/// stalls in that time, and delays too short to be listed.
fn lateness_until(e: &PfcEvidence, end: Nanos) -> Nanos {
    let stalled = storm_time(e).map_or(0, |(from, _)| stalled_within(e, from, end));
    stalled + e.sender.max_burst + unlisted_lateness(e)
}

/// `throughput`.
pub(in crate::cases::pfc) fn throughput(e: &PfcEvidence) -> Finding {
    let mut finding = Finding::new();
    let what = "received layer-1 rate as a share of the offered";
    let expected = at_least(e.limits.min_throughput);
    let late = storm_time(e).map_or(0, |(_, last)| lateness_until(e, last));
    let (Some((offered, received)), Some((offered_at_best, at_best))) =
        (rates(e, false), rates(e, true))
    else {
        finding.undecided(what, expected, "no traffic during the storm");
        return finding;
    };
    let (share, at_best) = (received / offered, at_best / offered_at_best);
    let actual = share_beside(share, e.limits.min_throughput)
        + " ("
        + number(received / 1e6, 1, "")
        + " of "
        + number(offered / 1e6, 1, "Mbit/s")
        + ")";
    if share < e.limits.min_throughput && at_best >= e.limits.min_throughput {
        let why =
            actual + ", but the tester's own lateness of up to " + time(late) + " explains it";
        finding.undecided(what, expected, why);
    } else {
        let (holds, certain) = (share >= e.limits.min_throughput, lost_by_tester(e).0 == 0);
        finding.prove(what, expected, actual, holds, certain);
    }
    finding
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_shows_the_digits_that_decide() {
        for (share, text) in [
            (0.9712, "0.9712"),
            (0.99, "0.9900"),
            (0.99004, "0.9900"),
            (0.98996, "0.98996"),
            (0.9899999, "0.9899999"),
            (1.0, "1.0000"),
        ] {
            assert_eq!(share_beside(share, 0.99).into_text(), text);
        }
    }
}
