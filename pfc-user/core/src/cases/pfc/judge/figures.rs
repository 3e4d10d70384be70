//! Figures that are reported and not judged.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use pfc_ebpf::abi::account::{BATCH, Clock};
use pfc_ebpf::stamp::Phase;
use pfc_ebpf::units::Priority;

use super::dip::{starts, sum, watched_share, whole_windows, windows_in_a_dip};
use super::mac;
use super::preconditions::{flows, storm_end};
use super::probe::{odd, response_time};
use crate::cases::value::{Value, count, number, time};
use crate::evidence::pfc::{PfcEvidence, Port, StormReport, WaitEnd};
use crate::plan::{Nanos, PortName, StormPlan};
use crate::verdict::Figure;

/// Name and value of a figure.
type Named = (String, Value);

pub(super) fn of(e: &PfcEvidence) -> Vec<Figure> {
    let mut named = traffic_figures(e);
    named.extend(storm_figures(e));
    named.extend(waits(e));
    named.extend(response_time::reported(e));
    named.extend(odd::reported(e));
    named.push(("PAUSE/PFC from the DUT counted by".into(), mac::figure(e)));
    named.extend(pfc_figures(e));
    named.extend(accounting_figures(e));
    let figure = |(name, value): Named| value.figure(&e.plan.name, name);
    named.into_iter().map(figure).collect()
}

/// Rates of the storm phase, and waits of the sender.
fn traffic_figures(e: &PfcEvidence) -> Vec<Named> {
    let mut named = Vec::new();
    let link = e.limits.line_rate.bits_per_second() as f64;
    // Windows have what all ports receive.
    let sole = e.ports.receivers().nth(1).is_none();
    let rate = |rate: f64| {
        let share = number(100.0 * rate / link, 1, "%");
        let share = Some(", " + share + " of the link").filter(|_| sole);
        number(rate / 1e6, 1, "Mbit/s") + share.unwrap_or_default()
    };
    if let Some((offered, received)) = rates_in_phase(e) {
        named.push(("offered in the storm phase".into(), rate(offered)));
        named.push(("received in the storm phase".into(), rate(received)));
    }
    let held = held(e);
    if held > 0 {
        // The log holds no more: those that did not fit may be among them.
        let least = if e.arrivals.lost > 0 { "at least " } else { "" };
        let frames = Value::from(least) + count(held as u64, "frames");
        named.push(("held in the storm phase and received later".into(), frames));
    }
    if let Some(worst) = worst_window(e).filter(|_| sole) {
        named.push((
            "least received in 100 ms of the storm phase".into(),
            number(100.0 * worst, 1, "%") + " of the link",
        ));
    }
    // The subject of `no-dip`: a storm that holds nothing.
    let mut lossless = e.plan.lossless.iter();
    let storm = e.plan.storm.as_ref();
    let is_pfc = storm.is_some_and(|storm| storm.kind.named().is_some());
    if is_pfc && !lossless.any(|priority| e.plan.is_stormed(*priority)) {
        let share = |phase| {
            let share = watched_share(e, phase)?;
            Some(number(100.0 * share, 0, "%") + format!(" of phase {phase:?}"))
        };
        let phases = [Phase::Baseline, Phase::Storm].into_iter();
        let watched = Value::joined(phases.filter_map(share), ", ");
        named.push(("watched for dips".into(), watched));
    }
    if e.sender.waits > 0 {
        named.push((
            "waits for room in the port's queue".into(),
            count(e.sender.waits, "") + "; the frames left later",
        ));
    }
    named
}

/// Layer-1 rates of the storm phase in bit/s, offered and received, both in its whole windows.
fn rates_in_phase(e: &PfcEvidence) -> Option<(f64, f64)> {
    let windows = whole_windows(e, Phase::Storm)?;
    let time = windows.len() as f64 * e.windows.width as f64 / 1e9;
    let rate = |counts: &[[u32; 8]]| bits(e, counts, windows.clone()) / time;
    let rates = (rate(&e.windows.offered), rate(&e.windows.received));
    (time > 0.0).then_some(rates)
}

/// Frames of the storm phase that came after it, of the stormed flows whose arrivals are logged.
fn held(e: &PfcEvidence) -> usize {
    let Some(span) = e.span(Phase::Storm) else {
        return 0;
    };
    let records = e.arrivals.records.iter();
    let of_phase = records.filter(|arrival| arrival.phase == Phase::Storm);
    of_phase.filter(|arrival| arrival.time > span.to).count()
}

/// The waits for frames that did not all arrive.
fn waits(e: &PfcEvidence) -> impl Iterator<Item = Named> {
    e.waits.iter().filter_map(|wait| {
        let why = match wait.end {
            WaitEnd::AllArrived => return None,
            WaitEnd::Quiet => "ended, for nothing had moved for longer than a frame may take",
            WaitEnd::Deadline => "ended by its deadline",
        };
        let name = format!("wait for the last frames of phase {:?}", wait.phase);
        let after = time(wait.to - wait.from);
        Some((name, Value::from(why) + ", after " + after))
    })
}

fn storm_figures(e: &PfcEvidence) -> Vec<Named> {
    let (Some(plan), Some(storm)) = (&e.plan.storm, &e.storm) else {
        return Vec::new();
    };
    let refused = if storm.errors > 0 {
        ", refused " + count(storm.errors, "times")
    } else {
        Value::default()
    };
    vec![
        ("storm frames".into(), count(storm.frames, "") + refused),
        ("storm sent by".into(), storm.method.clone().into()),
        ("gaps of the storm".into(), gaps(e, plan, storm)),
        (
            "code points that the storm held".into(),
            held_by(e, storm).into(),
        ),
    ]
}

/// The code points of which every storm-phase frame that arrived came after the storm's pauses.
fn held_by(e: &PfcEvidence, storm: &StormReport) -> String {
    let end = storm_end(e, storm);
    let mut first = BTreeMap::new();
    for flow in flows(e, None) {
        if let Some(received) = e.received(flow.id, Phase::Storm) {
            let of_mark = first
                .entry((flow.pcp, flow.dscp.get()))
                .or_insert(Nanos::MAX);
            *of_mark = received.first.min(*of_mark);
        }
    }
    let mut held = BTreeMap::<_, BTreeSet<_>>::new();
    for ((pcp, dscp), _) in first.into_iter().filter(|(_, first)| *first >= end) {
        held.entry(pcp).or_default().insert(dscp);
    }
    let marks = |(pcp, dscps): (Option<Priority>, BTreeSet<u8>)| {
        let tag = pcp.map_or(String::new(), |pcp| format!("PCP {pcp} with "));
        let dscps: Vec<_> = dscps.iter().map(u8::to_string).collect();
        format!("{tag}DSCP {}", dscps.join(", "))
    };
    match held.is_empty() {
        true => "none".into(),
        false => held.into_iter().map(marks).collect::<Vec<_>>().join("; "),
    }
}

/// XOFF and XON of the DUT, by priority, and its PAUSE frames, at each sending port.
fn pfc_figures(e: &PfcEvidence) -> impl Iterator<Item = Named> {
    e.ports.senders().flat_map(|(name, port)| {
        let at = match *name == PortName::TX {
            true => String::new(),
            false => format!(" at the {name} port"),
        };
        pfc_at(port, at)
    })
}

fn pfc_at(port: &Port, at: String) -> impl Iterator<Item = Named> {
    let pause = &port.counts.pause;
    let pause = (pause.xoff + pause.xon > 0).then(|| {
        let counts = count(pause.xoff, "") + " with a time, " + count(pause.xon, "");
        let counts = counts + " with time 0";
        (format!("PAUSE (802.3x) from the DUT{at}"), counts)
    });
    let by_priority = Priority::all().filter_map(move |priority| {
        let class = &port.counts.pfc[priority.index()];
        let name = format!("PFC from the DUT{at}, priority {priority}");
        let counts = count(class.xoff, "XOFF") + ", " + count(class.xon, "XON");
        (class.xoff + class.xon > 0).then_some((name, counts))
    });
    by_priority.chain(pause)
}

/// Sampling of the programs, frames of other senders, and the largest latency without a storm.
fn accounting_figures(e: &PfcEvidence) -> Vec<Named> {
    let mut named = Vec::new();
    let (clock, every) = (e.counting.clock, e.counting.verify_every);
    if clock == Clock::Batched || every > 1 {
        let clock = match clock {
            Clock::Batched => "for up to " + count(BATCH, "frames"),
            Clock::Exact => "for each frame".into(),
        };
        let clock = Value::from("one reading of the clock ") + clock;
        let verified = count(every, "");
        named.push((
            "accounting at this rate".into(),
            clock + ", octets verified of one frame in " + verified,
        ));
    }
    for (name, port) in e.ports.iter() {
        let foreign = port.counts.foreign();
        if foreign > 0 {
            named.push((
                format!("frames of other senders or runs at the {name} port"),
                count(foreign, "") + "; no check counts them",
            ));
        }
    }
    let received = e.received.iter();
    let baseline = received.filter(|received| received.phase == Phase::Baseline);
    let worst = baseline.map(|received| received.latency_max).max();
    named.extend(worst.map(|worst| ("largest latency in the baseline".into(), time(worst))));
    named
}

/// The gaps of the storm beside its pause time.
fn gaps(e: &PfcEvidence, plan: &StormPlan, storm: &StormReport) -> Value {
    let lapse = plan.lapse(e.limits.line_rate);
    let (beside, least) = if plan.asks() {
        ("the pause time", "the shortest pause")
    } else {
        ("three intervals,", "that")
    };
    let below = |(name, q)| {
        let length = storm.histogram.quantile(q)?.min(storm.max_gap);
        Some(Value::from(name) + " " + brief(length))
    };
    let quantiles = [("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999)].into_iter();
    let max = "max " + brief(storm.max_gap);
    let share = number(100.0 * storm.max_gap as f64 / lapse.max(1) as f64, 1, "%");
    let share = share + " of " + beside + " " + brief(lapse) + "; ";
    let above = match storm.gaps_above() {
        0 => "none".into(),
        gaps => count(gaps, ""),
    };
    let lengths = quantiles.filter_map(below).chain([max, share + above]);
    Value::joined(lengths, ", ") + " above " + least
}

/// A time to three digits and more.
fn brief(nanos: Nanos) -> Value {
    if nanos < 1_000_000 {
        number(nanos as f64 / 1e3, 1, "us")
    } else {
        time(nanos)
    }
}

/// The least share of the link that was received in any 100 ms of the storm phase.
fn worst_window(e: &PfcEvidence) -> Option<f64> {
    let windows = whole_windows(e, Phase::Storm)?;
    let many = windows_in_a_dip(e);
    starts(&windows, many)
        .map(|start| bits(e, &e.windows.received, start..start + many) * 10.0)
        .min_by(f64::total_cmp)
        .map(|rate| rate / e.limits.line_rate.bits_per_second() as f64)
}

/// Layer-1 bits of the frames in these windows.
fn bits(e: &PfcEvidence, counts: &[[u32; 8]], windows: Range<usize>) -> f64 {
    let all: Vec<Priority> = Priority::all().collect();
    sum(counts, windows, &all) as f64 * e.plan.frame_bits()
}
