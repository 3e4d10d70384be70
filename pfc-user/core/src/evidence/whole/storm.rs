//! The storm against its own log.

use super::{Checked, Rule, ascends, ensure};
use crate::evidence::pfc::{Gap, PfcEvidence, StormReport};
use crate::plan::Nanos;

/// A bucket of the histogram is no wider than this part of its end.
const BUCKET: Nanos = 16;

pub(super) fn check(e: &PfcEvidence, at: &str) -> Checked {
    let at = &format!("{at}.storm");
    let Some(storm) = &e.storm else {
        return ensure(false, Rule::Storm, at, || "is missing".into());
    };
    let gaps = storm.histogram.count();
    ensure(
        gaps == storm.frames.saturating_sub(1),
        Rule::Storm,
        at,
        || {
            format!(
                "{} frames left, with {gaps} gaps between them",
                storm.frames
            )
        },
    )?;
    let lengths = storm.histogram.0.iter().map(|(below, _)| *below);
    ensure(ascends(lengths), Rule::Storm, at, || {
        "its histogram is out of order".into()
    })?;
    listed(storm, at)?;
    largest(storm, at)?;
    long_gaps(e, storm, at)
}

/// The gaps are in order, each once, and within the storm.
fn listed(storm: &StormReport, at: &str) -> Checked {
    ensure(
        ascends(storm.gaps.iter().map(|gap| gap.from)),
        Rule::Storm,
        at,
        || "its gaps are out of order".into(),
    )?;
    let twice = storm.gaps.windows(2).any(|pair| pair[0] == pair[1]);
    ensure(!twice, Rule::Storm, at, || "a gap is there twice".into())?;
    let within = |gap: &Gap| gap.from >= storm.first.before && gap.from <= gap.to;
    ensure(storm.gaps.iter().all(within), Rule::Storm, at, || {
        "a gap is outside of it".into()
    })
}

/// The largest gap is the longest that is listed or in the histogram.
fn largest(storm: &StormReport, at: &str) -> Checked {
    let listed = storm.gaps.iter().map(Gap::length).max().unwrap_or(0);
    let below = storm.histogram.0.last().map_or(0, |(below, _)| *below);
    let least = listed.max(below.saturating_sub(below / BUCKET + 1));
    // The gap at the end, after which no frame left, is in the list alone.
    let reached =
        storm.max_gap < below.max(1) || storm.max_gap == listed || !storm.gaps_left_out.is_none();
    ensure(storm.max_gap >= least && reached, Rule::Storm, at, || {
        format!(
            "its largest gap is {} ns, the longest listed {listed} ns, and all below {below} ns",
            storm.max_gap
        )
    })
}

/// As many gaps are listed as are long in the histogram.
fn long_gaps(e: &PfcEvidence, storm: &StormReport, at: &str) -> Checked {
    let quanta = e.plan.storm.quanta;
    let pause = e.limits.pause_time(quanta);
    let shortest = pause.saturating_sub(e.limits.pause_tolerance(quanta));
    let count = |longer: fn(Nanos, Nanos) -> bool, than: Nanos| {
        let long = storm
            .histogram
            .0
            .iter()
            .filter(|(below, _)| longer(*below, than));
        long.map(|(_, gaps)| gaps).sum::<u64>()
    };
    let certain = count(
        |below, than| below.saturating_sub(below / BUCKET + 1) > than,
        pause,
    );
    // One more is the gap at the end.
    let possible = count(|below, than| below > than, shortest) + 1;
    let above = storm.gaps_above();
    ensure(
        (certain..=possible).contains(&above),
        Rule::Storm,
        at,
        || format!("{above} long gaps are listed, its histogram has {certain} to {possible}"),
    )
}
