//! Stalls of the tester and of the simulated DUT, and the frames that they may have delayed.

use pfc_ebpf::stamp::Phase;

use crate::cases::value::{Value, time};
use crate::evidence::pfc::{LeftOut, PfcEvidence, ProbeReport, Stall};
use crate::plan::Nanos;

/// The listed stalls of the sender, of the storm's senders, and of the simulated DUT.
pub(super) fn stalls(e: &PfcEvidence) -> impl Iterator<Item = &Stall> {
    e.sender.stalls.iter().chain(of_storm_and_dut(e))
}

/// The listed stalls of the storm's senders and of the simulated DUT.
pub(super) fn of_storm_and_dut(e: &PfcEvidence) -> impl Iterator<Item = &Stall> {
    let of_storm = e.storm.iter().flat_map(|storm| &storm.stalls);
    of_storm.chain(e.dut.iter().flat_map(|dut| &dut.stalls))
}

/// Stalls that were not listed.
pub(super) fn left_out(e: &PfcEvidence) -> impl Iterator<Item = &LeftOut> {
    let of_storm = e.storm.iter().map(|storm| &storm.stalls_left_out);
    std::iter::once(&e.sender.stalls_left_out)
        .chain(of_storm)
        .filter(|spans| !spans.is_none())
}

/// Lateness of the simulated DUT that is too short for one of its stalls to be listed.
pub(super) fn unlisted_lateness(e: &PfcEvidence) -> Nanos {
    let dut = e.dut.as_ref();
    dut.map_or(0, |dut| dut.max_lateness.min(Stall::ABOVE))
}

/// True if a part of `stall` is between these times.
pub(super) fn overlaps(stall: &Stall, from: Nanos, to: Nanos) -> bool {
    stall.from < to && stall.to > from
}

/// Share of the line rate that the flows offer in `phase` around `stall`, and the time at which
/// nothing of it is left. In a probe, this is the highest load of the bursts from the last pause
/// frame before the stall to the first one after it. They leave nothing for the burst behind them.
fn load(e: &PfcEvidence, phase: Phase, stall: &Stall) -> (f64, Nanos) {
    let rate = e.plan.flows.iter().map(|flow| flow.rate).sum::<u64>() as f64;
    let share = rate / e.limits.line_rate.bits_per_second() as f64;
    match phase {
        Phase::Probe => {}
        phase => {
            let load = f64::from(e.plan.load(phase)) / 100.0;
            return (load * share, Nanos::MAX);
        }
    }
    let begun = |time| e.probes.partition_point(|probe| probe.begin() <= time);
    let (last, next) = (begun(stall.from).saturating_sub(1), begun(stall.to));
    let around = e.probes.iter().take(next + 1).skip(last);
    let percent = around.map(|probe| probe.burst.load).max().unwrap_or(100);
    let end = e
        .probes
        .get(next + 1)
        .map_or(Nanos::MAX, ProbeReport::begin);
    (f64::from(percent) / 100.0 * share, end)
}

/// End of the time in which a stall delays frames: its backlog drains at the part of the line that
/// the flows leave free. At full load none is left, and it drains after the end of the phase.
fn reach(e: &PfcEvidence, stall: &Stall) -> Nanos {
    let with_traffic = e.phases.iter().filter(|span| span.phase != Phase::Drain);
    let during = with_traffic.filter(|span| overlaps(stall, span.from, span.to));
    let reaches = during.map(|span| {
        let (load, until) = load(e, span.phase, stall);
        let load = load.clamp(0.0, 1.0);
        let drained = stall.length() as f64 * load / (1.0 - load);
        // A float above all numbers becomes the largest of them.
        let end = stall.to.saturating_add(drained as Nanos);
        end.min(span.to.min(until).max(stall.to))
    });
    reaches.max().unwrap_or(stall.to)
}

/// The listed stalls that may have delayed a frame in flight between these times.
pub(super) fn delaying(e: &PfcEvidence, from: Nanos, to: Nanos) -> impl Iterator<Item = &Stall> {
    stalls(e).filter(move |stall| stall.from <= to && reach(e, stall) >= from)
}

/// Longest time by which stalls may have delayed a frame in flight between these times. Stalls at
/// the same time count once.
pub(super) fn delay(e: &PfcEvidence, from: Nanos, to: Nanos) -> Nanos {
    let listed = union(delaying(e, from, to).map(|stall| (stall.from, stall.to)));
    let unlisted = left_out(e).filter(|spans| {
        let all = Stall {
            from: spans.from,
            to: spans.to,
        };
        spans.from <= to && reach(e, &all) >= from
    });
    unlisted.fold(listed, |sum, spans| sum.saturating_add(spans.total))
}

/// Longest time between `from` and `to` for which the tester or the simulated DUT may have stalled.
/// Stalls that overlap count once. If any stall is in that time, those that are not listed may all
/// be in it too.
pub(super) fn stalled_within(e: &PfcEvidence, from: Nanos, to: Nanos) -> Nanos {
    let within = stalls(e).map(|stall| (stall.from.max(from), stall.to.min(to)));
    let listed = union(within.filter(|(begin, end)| begin < end));
    let unlisted = left_out(e)
        .filter(|spans| spans.may_overlap(from, to))
        .map(|spans| {
            let hull = spans.to.min(to).saturating_sub(spans.from.max(from));
            spans.total.min(hull)
        });
    let all = unlisted.fold(listed, Nanos::saturating_add);
    all.min(to.saturating_sub(from))
}

/// A figure that the given stall may explain.
pub(super) fn but_stalled(found: Value, stalled: Nanos) -> Value {
    found + ", but the tester or the simulated DUT stalled for " + time(stalled)
}

/// Time that these spans cover together.
pub(super) fn union(spans: impl Iterator<Item = (Nanos, Nanos)>) -> Nanos {
    let mut spans: Vec<_> = spans.collect();
    spans.sort_unstable();
    let add = |(total, reached): (Nanos, Nanos), (begin, end): (Nanos, Nanos)| {
        let more = end.saturating_sub(begin.max(reached));
        (total + more, reached.max(end))
    };
    spans.into_iter().fold((0, 0), add).0
}
