//! Throughput per priority over time, for `report.json`.

use pfc_ebpf::units::{LineRate, Priority};
use serde::Serialize;

use crate::evidence::pfc::PfcEvidence;
use crate::evidence::{CaseEvidence, Repetition};
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

/// The series of a case, by repetition and priority; priorities without traffic are left out.
pub fn of(case: &CaseEvidence) -> Vec<Series<'_>> {
    case.repetitions
        .iter()
        .filter_map(Repetition::pfc)
        .flat_map(of_repetition)
        .collect()
}

fn of_repetition(e: &PfcEvidence) -> Vec<Series<'_>> {
    let many = STEP.checked_div(e.windows.width).unwrap_or(0).max(1) as usize;
    let with_traffic =
        |priority: &Priority| e.plan.flows.iter().any(|flow| flow.priority == *priority);
    let all = Priority::all().filter(with_traffic).map(|priority| {
        // All frames of a repetition have one length.
        let bits = e
            .plan
            .flows
            .first()
            .map_or(0, |flow| LineRate::frame_bits(flow.length)) as f64;
        let seconds = many as f64 * e.windows.width as f64 / 1e9;
        let mbits = |windows: &[[u32; 8]]| -> Vec<f64> {
            let frames = |step: &[[u32; 8]]| {
                step.iter()
                    .map(|window| u64::from(window[priority.index()]))
                    .sum::<u64>()
            };
            let mut steps: Vec<f64> = windows
                .chunks(many)
                .map(|step| (frames(step) as f64 * bits / seconds / 1e5).round() / 10.0)
                .collect();
            // The windows extend beyond the end of the repetition.
            steps.truncate(
                steps
                    .iter()
                    .rposition(|step| *step > 0.0)
                    .map_or(0, |last| last + 1),
            );
            steps
        };
        let (offered, received) = (mbits(&e.windows.offered), mbits(&e.windows.received));
        Series {
            repetition: &e.plan.name,
            attempt: e.attempt,
            priority,
            step_ms: many as u64 * e.windows.width / 1_000_000,
            offered,
            received,
        }
    });
    all.collect()
}
