//! The storms of a case and their gaps, for `report.json`.

use serde::Serialize;

use super::series::is_first;
use crate::evidence::pfc::{GapHistogram, PfcEvidence, StormReport};
use crate::plan::Nanos;

/// The storm of one repetition. Lengths are in nanoseconds. A quantile is the length below which
/// that share of the gaps lies.
#[derive(Debug, PartialEq, Serialize)]
pub struct Storm<'e> {
    /// Repetition.
    pub repetition: &'e str,
    /// Number of the attempt at it, where it is not the first.
    #[serde(skip_serializing_if = "is_first")]
    pub attempt: u32,
    /// Sending method.
    pub method: &'e str,
    /// Frames sent.
    pub frames: u64,
    /// Number of times the kernel refused a frame.
    pub refused: u64,
    /// Pause time of one frame.
    pub pause_ns: Nanos,
    /// Median of the gaps; `None` without gaps.
    pub p50_ns: Option<Nanos>,
    /// 99 % quantile of the gaps.
    pub p99_ns: Option<Nanos>,
    /// 99.9 % quantile of the gaps.
    pub p999_ns: Option<Nanos>,
    /// The largest gap.
    pub max_ns: Nanos,
    /// Number of gaps longer than the shortest pause that the tolerances allow.
    pub gaps_above: u64,
    /// Histogram of all gaps by length.
    pub histogram: &'e GapHistogram,
}

/// The length below which that share of the gaps lies; `None` without gaps.
pub(super) fn quantile(storm: &StormReport, share: f64) -> Option<Nanos> {
    let length = storm.histogram.quantile(share)?;
    Some(length.min(storm.max_gap))
}

/// The storm of a repetition, where it has one.
pub fn of(e: &PfcEvidence) -> Option<Storm<'_>> {
    let storm = e.storm.as_ref()?;
    Some(Storm {
        repetition: &e.plan.name,
        attempt: e.attempt,
        method: &storm.method,
        frames: storm.frames,
        refused: storm.errors,
        pause_ns: e.limits.pause_time(e.plan.storm_quanta()),
        p50_ns: quantile(storm, 0.5),
        p99_ns: quantile(storm, 0.99),
        p999_ns: quantile(storm, 0.999),
        max_ns: storm.max_gap,
        gaps_above: storm.gaps_above(),
        histogram: &storm.histogram,
    })
}
