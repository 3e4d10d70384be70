//! The cases, by family; and what is decided on each from its evidence.

mod finding;
pub mod mad;
pub mod pfc;
pub mod rc;
mod steps;

use crate::case::{AssertionResult, Case, CaseResult, CheckResult, DocumentAssertion, Verdict};
use crate::evidence::{CaseEvidence, Evidence, Repetition};

/// Every case, in the order of `validator list`.
pub fn all() -> Vec<&'static Case> {
    let pfc = pfc::CASES.iter().map(|case| &case.case);
    let mad = mad::CASES.iter().map(|case| &case.case);
    pfc.chain(mad)
        .chain(rc::CASES.iter().map(|case| &case.case))
        .collect()
}

/// The case of that id.
pub fn find(id: &str) -> Option<&'static Case> {
    all().into_iter().find(|case| case.id == id)
}

/// Judges everything that a run recorded.
pub fn judge(evidence: &Evidence) -> Vec<CaseResult> {
    evidence.cases.iter().map(judge_case).collect()
}

/// Judges one case.
pub fn judge_case(evidence: &CaseEvidence) -> CaseResult {
    let mut result = CaseResult {
        case: evidence.case.clone(),
        verdict: Verdict::NotApplicable,
        reason: String::new(),
        checks: Vec::new(),
        assertions: Vec::new(),
        steps: Vec::new(),
        figures: Vec::new(),
    };
    let Some(case) = find(&evidence.case) else {
        result.verdict = Verdict::Error;
        result.reason = format!("this version knows no case `{}`", evidence.case);
        return result;
    };
    for repetition in &evidence.repetitions {
        let judged = match repetition {
            Repetition::Pfc(evidence) => pfc::judge(case, evidence),
            Repetition::Mad(evidence) => mad::judge(case, evidence),
            Repetition::Rc(evidence) => rc::judge(case, evidence),
        };
        result.checks.extend(judged.checks);
        result.steps.extend(judged.steps);
        result.figures.extend(judged.figures);
    }
    for omitted in &evidence.omitted {
        let verdict = if omitted.not_applicable {
            Verdict::NotApplicable
        } else {
            Verdict::Inconclusive
        };
        result
            .checks
            .extend(case.checks.iter().map(|check| CheckResult {
                check: check.id.into(),
                repetition: omitted.name.clone(),
                verdict,
                reason: omitted.reason.clone(),
                assertions: Vec::new(),
            }));
    }
    result.assertions = case
        .assertions
        .iter()
        .map(|assertion| of_document(assertion, &result.checks))
        .collect();
    result.verdict = Verdict::of_parts(result.checks.iter().map(|check| check.verdict));
    if let Some(error) = &evidence.error {
        // A failure that was seen stays one, whatever became of the rest.
        result.verdict = Verdict::of_parts([result.verdict, Verdict::Error]);
        result.reason = error.clone();
    }
    result
}

/// What the checks say of an assertion of the document.
fn of_document(assertion: &DocumentAssertion, checks: &[CheckResult]) -> AssertionResult {
    let deciding = || {
        checks.iter().filter(|result| {
            let about = assertion.repetitions.is_empty()
                || assertion.repetitions.contains(&result.repetition.as_str());
            about && assertion.checks.contains(&result.check.as_str())
        })
    };
    AssertionResult {
        id: assertion.id.into(),
        verdict: match (assertion.checks, deciding().next()) {
            ([], _) => None,
            // Nothing of it is known.
            (_, None) => Some(Verdict::Inconclusive),
            _ => Some(Verdict::of_parts(deciding().map(|result| result.verdict))),
        },
        checks: assertion
            .checks
            .iter()
            .map(|check| check.to_string())
            .collect(),
        comparisons: deciding()
            .flat_map(|result| result.assertions.clone())
            .collect(),
    }
}
