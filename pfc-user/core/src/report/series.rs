//! Throughput per priority over time, for `report.json`.

use pfc_ebpf::units::Priority;
use serde::Serialize;

use crate::evidence::pfc::PfcEvidence;
use crate::plan::Nanos;

/// Width of a step.
const STEP: Nanos = 100_000_000;

/// One priority in one repetition.
#[derive(Debug, PartialEq, Serialize)]
pub struct Series<'e> {
    /// Repetition.
    pub repetition: &'e str,
    /// Number of the attempt at it, where it is not the first.
    #[serde(skip_serializing_if = "is_first")]
    pub attempt: u32,
    /// Priority.
    pub priority: Priority,
    /// Width of a step in milliseconds.
    pub step_ms: u64,
    /// Layer-1 Mbit/s sent by the tester in each step, from the start of the repetition.
    pub offered: Vec<f64>,
    /// Layer-1 Mbit/s received in each step.
    pub received: Vec<f64>,
}

pub(super) fn is_first(attempt: &u32) -> bool {
    *attempt == 1
}

/// The series of a repetition; priorities without traffic are left out.
pub fn of(e: &PfcEvidence) -> Vec<Series<'_>> {
    let many = STEP.checked_div(e.windows.width).unwrap_or(0).max(1) as usize;
    let with_traffic =
        |priority: &Priority| e.plan.flows.iter().any(|flow| flow.priority == *priority);
    let all = Priority::all().filter(with_traffic).map(|priority| {
        let bits = e.plan.frame_bits();
        let seconds = many as f64 * e.windows.width as f64 / 1e9;
        let mbits = |windows: &[[u32; 8]]| -> Vec<f64> {
            let frames = |step: &[[u32; 8]]| {
                let frames = step
                    .iter()
                    .map(|window| u64::from(window[priority.index()]));
                frames.sum::<u64>() as f64
            };
            let mut steps: Vec<f64> = windows
                .chunks(many)
                .map(|step| (frames(step) * bits / seconds / 1e5).round() / 10.0)
                .collect();
            // The windows extend beyond the end of the repetition.
            let last = steps.iter().rposition(|step| *step > 0.0);
            steps.truncate(last.map_or(0, |last| last + 1));
            steps
        };
        Series {
            repetition: &e.plan.name,
            attempt: e.attempt,
            priority,
            step_ms: many as u64 * e.windows.width / 1_000_000,
            offered: mbits(&e.windows.offered),
            received: mbits(&e.windows.received),
        }
    });
    all.collect()
}
