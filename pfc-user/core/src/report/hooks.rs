//! The user's hooks in a report: the DUT's counters that changed, and the hooks that failed.

use serde::Serialize;

use super::pfc;
use crate::evidence::Evidence;
use crate::evidence::hooks::{self, DutCounter, HookOutput};
use crate::evidence::pfc::PfcEvidence;

/// The hooks of an attempt at a repetition.
#[derive(Serialize)]
pub struct OfAttempt<'a> {
    repetition: &'a str,
    attempt: u32,
    failed: Vec<String>,
    counters: Vec<DutCounter>,
}

/// The hooks of an attempt, where one failed or a counter changed.
pub fn of(e: &PfcEvidence) -> Option<OfAttempt<'_>> {
    let hooks = OfAttempt {
        repetition: &e.plan.name,
        attempt: e.attempt,
        failed: e.hooks.iter().filter_map(failure).collect(),
        counters: hooks::changes(&e.hooks),
    };
    (!hooks.failed.is_empty() || !hooks.counters.is_empty()).then_some(hooks)
}

/// The hooks of a run that failed, each with the repetition that it was run for.
pub fn failed_in_run(evidence: &Evidence) -> Vec<String> {
    let of_run = evidence.hooks.iter().filter_map(failure);
    let of_case = evidence.cases.iter().flat_map(|case| {
        pfc(case).flat_map(|e| {
            let failed = e.hooks.iter().filter_map(failure);
            failed.map(|failure| format!("{} [{}], {failure}", case.case, e.plan.name))
        })
    });
    of_run.chain(of_case).collect()
}

fn failure(output: &HookOutput) -> Option<String> {
    Some(format!("{}: {}", output.when, output.failure()?))
}
