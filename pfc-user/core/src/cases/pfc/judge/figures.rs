//! Figures that are reported and not judged.

use std::ops::Range;

use pfc_ebpf::abi::account::{BATCH, Clock};
use pfc_ebpf::stamp::Phase;
use pfc_ebpf::units::{LineRate, Priority};

use super::dip::{starts, sum, watched_share, whole_windows, windows_in_a_dip};
use super::mac;
use crate::evidence::pfc::{PfcEvidence, StormReport, WaitEnd};
use crate::plan::Nanos;
use crate::quantity::ms;
use crate::verdict::Figure;

/// Name and value of a figure.
type Named = (String, String);

pub(super) fn of(e: &PfcEvidence) -> Vec<Figure> {
    let mut named = traffic_figures(e);
    named.extend(storm_figures(e));
    named.extend(waits(e));
    named.push(("PAUSE/PFC from the DUT counted by".into(), mac::figure(e)));
    named.extend(pfc_figures(e));
    named.extend(accounting_figures(e));
    let figure = |(name, value)| Figure {
        repetition: e.plan.name.clone(),
        name,
        value,
    };
    named.into_iter().map(figure).collect()
}

/// Rates of the storm phase, and waits of the sender.
fn traffic_figures(e: &PfcEvidence) -> Vec<Named> {
    let mut named = Vec::new();
    let link = e.limits.line_rate.bits_per_second() as f64;
    let rate = |rate: f64| {
        let share = 100.0 * rate / link;
        format!("{:.1} Mbit/s, {share:.1} % of the link", rate / 1e6)
    };
    if let Some((offered, received)) = rates_in_phase(e) {
        named.push(("offered in the storm phase".into(), rate(offered)));
        named.push(("received in the storm phase".into(), rate(received)));
    }
    let held = held(e);
    if held > 0 {
        // The log holds no more: those that did not fit may be among them.
        let least = if e.arrivals.lost > 0 { "at least " } else { "" };
        let frames = format!("{least}{held} frames");
        named.push(("held in the storm phase and received later".into(), frames));
    }
    if let Some(worst) = worst_window(e) {
        named.push((
            "least received in 100 ms of the storm phase".into(),
            format!("{:.1} % of the link", 100.0 * worst),
        ));
    }
    // The subject of `no-dip`: a storm that holds nothing.
    let mut lossless = e.plan.lossless.iter();
    if e.plan.storm.kind.named().is_some() && !lossless.any(|priority| e.plan.is_stormed(*priority))
    {
        let share = |phase| {
            let share = watched_share(e, phase)?;
            Some(format!("{:.0} % of phase {phase:?}", 100.0 * share))
        };
        let phases = [Phase::Baseline, Phase::Storm].into_iter();
        let watched: Vec<_> = phases.filter_map(share).collect();
        named.push(("watched for dips".into(), watched.join(", ")));
    }
    if e.sender.waits > 0 {
        named.push((
            "waits for room in the port's queue".into(),
            format!("{}; the frames left later", e.sender.waits),
        ));
    }
    named
}

/// Layer-1 rates of the storm phase in bit/s, offered and received, both in its whole windows.
fn rates_in_phase(e: &PfcEvidence) -> Option<(f64, f64)> {
    let windows = whole_windows(e, Phase::Storm)?;
    let time = windows.len() as f64 * e.windows.width as f64 / 1e9;
    let length = e.plan.flows.first()?.length;
    let rate = |counts: &[[u32; 8]]| bits(counts, windows.clone(), length) / time;
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
        Some((name, format!("{why}, after {}", ms(wait.to - wait.from))))
    })
}

fn storm_figures(e: &PfcEvidence) -> Vec<Named> {
    let Some(storm) = &e.storm else {
        return Vec::new();
    };
    let refused = if storm.errors > 0 {
        format!(", refused {} times", storm.errors)
    } else {
        String::new()
    };
    vec![
        ("storm frames".into(), format!("{}{refused}", storm.frames)),
        ("storm sent by".into(), storm.method.clone()),
        ("gaps of the storm".into(), gaps(e, storm)),
    ]
}

/// XOFF and XON of the DUT, by priority, and its PAUSE frames.
fn pfc_figures(e: &PfcEvidence) -> impl Iterator<Item = Named> {
    let pause = &e.tx_port.pause;
    let pause = (pause.xoff + pause.xon > 0).then(|| {
        let counts = format!("{} with a time, {} with time 0", pause.xoff, pause.xon);
        ("PAUSE (802.3x) from the DUT".to_owned(), counts)
    });
    let by_priority = Priority::all().filter_map(|priority| {
        let class = &e.tx_port.pfc[priority.index()];
        let name = format!("PFC from the DUT, priority {priority}");
        let counts = format!("{} XOFF, {} XON", class.xoff, class.xon);
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
            Clock::Batched => format!("for up to {BATCH} frames"),
            Clock::Exact => "for each frame".into(),
        };
        named.push((
            "accounting at this rate".into(),
            format!("one reading of the clock {clock}, octets verified of one frame in {every}"),
        ));
    }
    for (name, port) in [("tx", &e.tx_port), ("rx", &e.rx_port)] {
        if port.foreign() > 0 {
            named.push((
                format!("frames of other senders or runs at the {name} port"),
                format!("{}; no check counts them", port.foreign()),
            ));
        }
    }
    let received = e.received.iter();
    let baseline = received.filter(|received| received.phase == Phase::Baseline);
    let worst = baseline.map(|received| received.latency_max).max();
    named.extend(worst.map(|worst| ("largest latency in the baseline".into(), ms(worst))));
    named
}

/// The gaps of the storm beside its pause time.
fn gaps(e: &PfcEvidence, storm: &StormReport) -> String {
    let lapse = e.plan.storm.lapse(e.limits.line_rate);
    let (beside, least) = if e.plan.storm.asks() {
        ("the pause time", "the shortest pause")
    } else {
        ("three intervals,", "that")
    };
    let below = |(name, q)| {
        let length = storm.histogram.quantile(q)?.min(storm.max_gap);
        Some(format!("{name} {}, ", brief(length)))
    };
    let quantiles = [("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999)].into_iter();
    let quantiles: String = quantiles.filter_map(below).collect();
    let share = 100.0 * storm.max_gap as f64 / lapse.max(1) as f64;
    let above = match storm.gaps_above() {
        0 => "none".to_owned(),
        gaps => gaps.to_string(),
    };
    format!(
        "{quantiles}max {}, {share:.1} % of {beside} {}; {above} above {least}",
        brief(storm.max_gap),
        brief(lapse)
    )
}

/// A time to three digits and more.
fn brief(nanos: Nanos) -> String {
    if nanos < 1_000_000 {
        format!("{:.1} us", nanos as f64 / 1e3)
    } else {
        ms(nanos)
    }
}

/// The least share of the link that was received in any 100 ms of the storm phase.
fn worst_window(e: &PfcEvidence) -> Option<f64> {
    let windows = whole_windows(e, Phase::Storm)?;
    let many = windows_in_a_dip(e);
    let length = e.plan.flows.first()?.length;
    starts(&windows, many)
        .map(|start| bits(&e.windows.received, start..start + many, length) * 10.0)
        .min_by(f64::total_cmp)
        .map(|rate| rate / e.limits.line_rate.bits_per_second() as f64)
}

/// Layer-1 bits of the frames of that length in these windows.
fn bits(counts: &[[u32; 8]], windows: Range<usize>, length: usize) -> f64 {
    let all: Vec<Priority> = Priority::all().collect();
    sum(counts, windows, &all) as f64 * LineRate::frame_bits(length) as f64
}
