//! The result for programs: `report.json`.

use std::io::{self, Write};

use serde::Serialize;

use super::fixed_set::{self, NotDone};
use super::hooks::{self, OfAttempt};
use super::series::{self, Series};
use super::storm::{self, Storm};
use super::{findings, identity, pfc, preflight};
use crate::evidence::{Evidence, Host, Invocation, Planned, Testbed};
use crate::plan::FlowPlan;
use crate::verdict::{
    Assertion, AttemptResult, CaseResult, CheckResult, Exit, Figure, StepResult, Verdict,
};

/// Schema version of `report.json`.
pub const SCHEMA: u32 = 1;

#[derive(Serialize)]
struct Report<'a> {
    schema: u32,
    tool: Tool<'a>,
    started: u64,
    /// The start as a date and time.
    started_at: String,
    seconds: f64,
    host: &'a Host,
    testbed: &'a Testbed,
    invocation: &'a Invocation,
    /// Facts found on the ports before the run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    preflight: Vec<preflight::Judged<'a>>,
    /// Repetitions that were not done, where the DUT's lossless set is fixed.
    #[serde(skip_serializing_if = "Option::is_none")]
    fixed_set: Option<NotDone<'a>>,
    /// Hooks that failed, in words.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    failed_hooks: Vec<String>,
    verdict: Verdict,
    exit_code: u8,
    interrupted: bool,
    cases: Vec<Case<'a>>,
}

#[derive(Serialize)]
struct Tool<'a> {
    name: &'static str,
    version: &'a str,
}

#[derive(Serialize)]
struct Case<'a> {
    case: &'a str,
    verdict: Verdict,
    reason: &'a str,
    checks: Vec<Check<'a>>,
    /// Each attempt at a repetition that was measured more than once.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    attempts: &'a [AttemptResult],
    assertions: Vec<DocumentAssertion<'a>>,
    steps: &'a [StepResult],
    figures: &'a [Figure],
    /// Test frames of each PFC repetition, as planned.
    flows: Vec<Flows<'a>>,
    throughput: Vec<Series<'a>>,
    storms: Vec<Storm<'a>>,
    /// Hooks that failed, and counters of the DUT that changed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    hooks: Vec<OfAttempt<'a>>,
}

#[derive(Serialize)]
struct Flows<'a> {
    repetition: &'a str,
    flows: &'a [FlowPlan],
}

#[derive(Serialize)]
struct Check<'a> {
    check: &'a str,
    verdict: Verdict,
    repetitions: Vec<Outcome<'a>>,
}

#[derive(Serialize)]
struct Outcome<'a> {
    repetition: &'a str,
    verdict: Verdict,
    reason: &'a str,
    assertions: &'a [Assertion],
}

/// An assertion of the source document.
#[derive(Serialize)]
struct DocumentAssertion<'a> {
    id: &'a str,
    verdict: &'static str,
    checks: &'a [String],
    comparisons: &'a [Assertion],
}

/// Writes the report.
pub fn write(
    mut out: impl Write,
    evidence: &Evidence,
    results: &[CaseResult],
    exit: Exit,
) -> io::Result<()> {
    let report = Report {
        schema: SCHEMA,
        tool: Tool {
            name: "validator",
            version: &evidence.version,
        },
        started: evidence.started,
        started_at: identity::rfc3339(evidence.started),
        seconds: evidence.seconds,
        host: &evidence.host,
        testbed: &evidence.testbed,
        invocation: &evidence.invocation,
        preflight: evidence
            .preflight
            .iter()
            .flat_map(preflight::ports)
            .collect(),
        fixed_set: fixed_set::of_run(evidence),
        failed_hooks: hooks::failed_in_run(evidence),
        verdict: Verdict::of_parts(results.iter().map(|result| result.verdict)),
        exit_code: exit as u8,
        interrupted: evidence.interrupted,
        cases: results
            .iter()
            .map(|result| case(result, evidence))
            .collect(),
    };
    serde_json::to_writer_pretty(&mut out, &report)?;
    out.write_all(b"\n")
}

fn flows(planned: &Planned) -> Option<Flows<'_>> {
    let Planned::Pfc { plan, .. } = planned else {
        return None;
    };
    Some(Flows {
        repetition: &plan.name,
        flows: &plan.flows,
    })
}

fn case<'a>(result: &'a CaseResult, evidence: &'a Evidence) -> Case<'a> {
    let outcome = |found: &'a CheckResult| Outcome {
        repetition: &found.repetition,
        verdict: found.verdict,
        reason: &found.reason,
        assertions: &found.assertions,
    };
    let checks = findings::by_check(result).into_iter().map(|of| Check {
        check: &of[0].check,
        verdict: findings::worst(of.iter().copied()),
        repetitions: of.into_iter().map(outcome).collect(),
    });
    let of_case = || {
        let cases = evidence.cases.iter();
        cases.filter(|case| case.case == result.case)
    };
    let measured = || of_case().flat_map(pfc);
    let assertions = result.assertions.iter().map(|found| DocumentAssertion {
        id: &found.id,
        verdict: found.outcome(),
        checks: &found.checks,
        comparisons: &found.comparisons,
    });
    Case {
        case: &result.case,
        verdict: result.verdict,
        reason: &result.reason,
        checks: checks.collect(),
        attempts: &result.attempts,
        assertions: assertions.collect(),
        steps: &result.steps,
        figures: &result.figures,
        flows: of_case()
            .flat_map(|case| &case.planned)
            .filter_map(flows)
            .collect(),
        throughput: measured().flat_map(series::of).collect(),
        storms: measured().filter_map(storm::of).collect(),
        hooks: measured().filter_map(hooks::of).collect(),
    }
}
