//! Checks on how long pauses last beside their quanta: `not-early`, `not-late`, `linear`.

use pfc_ebpf::units::{Priority, Quanta};

use super::measured::{Measured, NotCounted, Pause, Traffic};
use super::{Question, delivery, ends, has_pause_that_runs_out, judge_probes, silences, subjects};
use crate::cases::finding::Finding;
use crate::cases::pfc::judge::preconditions::lost_by_tester;
use crate::cases::pfc::judge::stalls::stalled_within;
use crate::cases::pfc::probing::{PAUSE_TIMES, two_frames};
use crate::cases::value::{Value, count, number, time};
use crate::evidence::pfc::{Arrival, PfcEvidence};
use crate::plan::{Nanos, ProbeBurst};
use crate::verdict::Verdict;

/// Deviation from 1 that a slope may have.
const OFF: f64 = 0.01;

const NOT_EARLY: Question = Question {
    concerns: has_pause_that_runs_out,
    judge: silences,
};
const NOT_LATE: Question = Question {
    concerns: has_pause_that_runs_out,
    judge: |traffic| {
        for (_, pause, _) in subjects(traffic, false) {
            traffic.quick_round_xoff(pause.xoff, pause.earliest)?;
        }
        ends(traffic)
    },
};

/// `not-early`.
pub(in crate::cases::pfc) fn not_early(e: &PfcEvidence) -> Finding {
    judge_probes(e, NOT_EARLY)
}

/// `not-late`.
pub(in crate::cases::pfc) fn not_late(e: &PfcEvidence) -> Finding {
    let mut finding = judge_probes(e, NOT_LATE);
    delivery::expect_none_lost_by_probe(&mut finding, e);
    finding
}

/// Pauses of about one time: their length by the quanta, and for how much longer they held a
/// priority, each a median.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Kind {
    asked: Nanos,
    excess: f64,
    /// Distance from that median within which four of five lie.
    spread: f64,
}

/// `linear`.
pub(in crate::cases::pfc) fn linear(e: &PfcEvidence) -> Finding {
    let mut finding = Finding::new();
    let early = not_early(e).assertions.into_iter();
    let open = early.filter(|one| one.verdict != Verdict::Pass).count();
    if open > 0 {
        let found = count(open as u64, "") + " are not known to hold";
        finding.undecided("comparisons of not-early that hold", "all", found);
        return finding;
    }
    if e.arrivals.lost > 0 {
        let lost = count(e.arrivals.lost, "") + " did not fit";
        finding.undecided("records of the probe", "all", lost);
    }
    for priority in e.plan.probed() {
        let what = format!("pauses of priority {priority} that were measured");
        match kinds(e, *priority) {
            Err(why) => finding.undecided(what, "most of each kind", why.reason().clone()),
            Ok(kinds) => match kinds.split_first() {
                Some((shortest, longer)) if !longer.is_empty() => {
                    for longer in longer {
                        expect_slope(&mut finding, e, *priority, *shortest, *longer);
                    }
                }
                _ => {
                    let one = "all of about one time";
                    finding.undecidable(what, "of several times", one);
                }
            },
        }
    }
    finding
}

/// Expects that pauses grow from one kind to another as their quanta do.
fn expect_slope(
    finding: &mut Finding,
    e: &PfcEvidence,
    priority: Priority,
    short: Kind,
    long: Kind,
) {
    let unsure = unsure(e, short, long);
    let slope = 1.0 + (long.excess - short.excess) / apart(short, long);
    let what = format!(
        "slope of the pauses of priority {priority}, from {} to {} by their quanta",
        time(short.asked).into_text(),
        time(long.asked).into_text()
    );
    let expected = number(1.0 - OFF, 2, "") + " to " + number(1.0 + OFF, 2, "");
    let actual = number(slope, 4, "") + ", uncertain by " + number(unsure, 4, "");
    let off = (slope - 1.0).abs();
    if off > OFF + unsure {
        let certain = lost_by_tester(e).0 == 0;
        finding.prove(what, expected, actual, false, certain);
    } else if off <= OFF && unsure <= OFF {
        finding.expect(what, expected, actual, true);
    } else if long.asked == longest(e) {
        finding.undecided(what, expected, actual);
    }
}

/// Time between two kinds.
fn apart(short: Kind, long: Kind) -> f64 {
    long.asked.saturating_sub(short.asked).max(1) as f64
}

/// Uncertainty of the slope between two kinds: of the frames on the wire, and of how the pauses of
/// each kind differ.
fn unsure(e: &PfcEvidence, short: Kind, long: Kind) -> f64 {
    let frames = two_frames(&e.plan, &e.limits) as f64;
    (frames + 2.0 * (short.spread + long.spread)) / apart(short, long)
}

/// The time of the longest kind.
fn longest(e: &PfcEvidence) -> Nanos {
    let kinds = groups(e).into_iter();
    kinds.map(|kind| middle(&kind)).max().unwrap_or(0)
}

/// The times of the plan's pauses, by kind, the shortest first.
fn groups(e: &PfcEvidence) -> Vec<Vec<Nanos>> {
    let asked = e.plan.bursts().map(|burst| asked(e, burst));
    let mut asked: Vec<Nanos> = asked.collect();
    asked.sort_unstable();
    let same = |one: &Nanos, next: &Nanos| next - one <= next / 10;
    asked.chunk_by(same).map(<[_]>::to_vec).collect()
}

/// The time of the pause of a burst.
fn asked(e: &PfcEvidence, burst: &ProbeBurst) -> Nanos {
    e.limits.pause_time(burst.longest(e.plan.probed()))
}

/// The value in the middle of sorted ones; 0 of none.
fn middle(sorted: &[Nanos]) -> Nanos {
    sorted.get(sorted.len() / 2).copied().unwrap_or(0)
}

/// The median.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

/// The value at or below which four of five lie.
fn most(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let rank = values.len() - 1 - values.len() / 5;
    values.get(rank).copied().unwrap_or(0.0)
}

/// The kinds of pauses of `priority`, the shortest first; or why most of one kind were not
/// measured.
fn kinds(e: &PfcEvidence, priority: Priority) -> Result<Vec<Kind>, NotCounted> {
    let measured = Measured::of(e);
    let mut lengths: Vec<(Nanos, f64)> = Vec::new();
    let mut why = None;
    for probe in &e.probes {
        let traffic = measured.traffic(probe);
        let subjects = subjects(&traffic, false).into_iter();
        let mut own = subjects.filter(|(of, ..)| *of == priority);
        let Some((_, pause, arrivals)) = own.next() else {
            continue;
        };
        match excess(e, &traffic, &pause, (priority, arrivals)) {
            Ok(excess) => lengths.push((asked(e, &probe.burst), excess)),
            Err(not) => why = Some(not),
        }
    }
    let mut kinds = Vec::new();
    for group in groups(e) {
        let of_kind = lengths.iter().filter(|(asked, _)| group.contains(asked));
        let of_kind: Vec<f64> = of_kind.map(|(_, excess)| *excess).collect();
        // A median of most of them is certain, whatever a stall did to the others.
        let is_measured = |time: &&Nanos| lengths.iter().any(|(asked, _)| asked == *time);
        if 2 * group.iter().filter(is_measured).count() <= group.len() {
            let none = || NotCounted::Tester("one was not made".into());
            return Err(why.unwrap_or_else(none));
        }
        let excess = median(of_kind.clone());
        let distances = of_kind.iter().map(|one| (one - excess).abs());
        kinds.push(Kind {
            asked: middle(&group),
            excess,
            spread: most(distances.collect()),
        });
    }
    Ok(kinds)
}

/// For how much longer than its quanta `pause` held a priority with these arrivals, in nanoseconds:
/// until the first frame after a response that was sent before its end, without the time in which
/// others filled the link.
fn excess(
    e: &PfcEvidence,
    traffic: &Traffic,
    pause: &Pause,
    (priority, arrivals): (Priority, &[&Arrival]),
) -> Result<f64, NotCounted> {
    traffic.quick_round_xoff(pause.xoff, pause.earliest)?;
    traffic.quick_round_end(pause, "round the end of the pause")?;
    let until = traffic.measured.until(traffic.probe);
    let mut later = arrivals.iter();
    let first = later.find(|arrival| arrival.time > pause.in_force);
    let held = |arrival: &&&Arrival| {
        let sent = arrival.time.saturating_sub(Nanos::from(arrival.latency));
        arrival.time < until && sent < pause.earliest
    };
    let Some(first) = first.filter(held) else {
        let none = format!("no frame of priority {priority} was held until the end of a pause");
        return Err(NotCounted::Tester(none.into()));
    };
    let wait = traffic.measured.wait(priority, pause.latest, first);
    if wait.counted > traffic.measured.allowed() {
        traffic.quick_meanwhile(wait, "while the priority was awaited")?;
    }
    if stalled_within(e, pause.xoff.before, first.time) > 0 {
        let stalled = "the tester or the simulated DUT stalled meanwhile";
        return Err(NotCounted::Tester(stalled.into()));
    }
    let filled = wait.until.saturating_sub(wait.since);
    let filled = filled.saturating_sub(wait.counted);
    let held = first.time.saturating_sub(pause.xoff.before);
    Ok(held.saturating_sub(filled) as f64 - pause.lasts as f64)
}

/// The least deviation of a slope that is found: from the shortest kind to the longest.
pub(in crate::cases::pfc) fn least_slope(e: &PfcEvidence) -> Option<Value> {
    let of_priority = |priority: &Priority| {
        let kinds = kinds(e, *priority).ok()?;
        Some(OFF + unsure(e, *kinds.first()?, *kinds.last()?))
    };
    let least = e.plan.probed().iter().filter_map(of_priority);
    let least = least.max_by(f64::total_cmp)?;
    Some("a slope off by more than " + crate::cases::resolution::percent(least))
}

/// The times of the list that were not sent: they cannot be told from none, or are longer than the
/// DUT has to hold a frame.
pub(in crate::cases::pfc) fn not_sent(e: &PfcEvidence) -> Vec<Quanta> {
    let sent: Vec<Quanta> = e
        .plan
        .bursts()
        .map(|burst| burst.longest(e.plan.probed()))
        .collect();
    let times = PAUSE_TIMES.into_iter();
    times.filter(|time| !sent.contains(time)).collect()
}
