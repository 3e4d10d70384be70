//! The user's hooks in a report: the DUT's counters that changed, and the hooks that failed.

use serde::Serialize;

use crate::evidence::hooks::{self, DutCounter, HookOutput};
use crate::evidence::pfc::PfcEvidence;
use crate::evidence::{CaseEvidence, Evidence, Repetition};

/// The hooks of an attempt at a repetition.
#[derive(Serialize)]
pub struct OfAttempt<'a> {
    repetition: &'a str,
    attempt: u32,
    failed: Vec<String>,
    counters: Vec<DutCounter>,
}

/// The hooks of each attempt of a case, where one failed or a counter changed.
pub fn of_case(case: &CaseEvidence) -> Vec<OfAttempt<'_>> {
    let measured = case.repetitions.iter().filter_map(Repetition::pfc);
    let told = measured.map(|e| OfAttempt {
        repetition: &e.plan.name,
        attempt: e.attempt,
        failed: failed(e),
        counters: hooks::changes(&e.hooks),
    });
    told.filter(|told| !told.failed.is_empty() || !told.counters.is_empty())
        .collect()
}

/// The hooks of an attempt that failed, with the moment.
pub fn failed(e: &PfcEvidence) -> Vec<String> {
    e.hooks.iter().filter_map(failure).collect()
}

/// The hooks of a run that failed, each with the repetition that it was run for.
pub fn failed_in_run(evidence: &Evidence) -> Vec<String> {
    let of_run = evidence.hooks.iter().filter_map(failure);
    let of_case = |case: &CaseEvidence| -> Vec<String> {
        let measured = case.repetitions.iter().filter_map(Repetition::pfc);
        let told = measured.flat_map(|e| {
            let told = failed(e).into_iter();
            told.map(|failure| format!("{} [{}], {failure}", case.case, e.plan.name))
        });
        told.collect()
    };
    of_run
        .chain(evidence.cases.iter().flat_map(of_case))
        .collect()
}

fn failure(said: &HookOutput) -> Option<String> {
    Some(format!("{}: {}", said.when, said.failure()?))
}
