//! The cases, by family; and what is decided on each from its evidence.

pub mod pfc;

use crate::case::{Case, CaseResult, CheckResult, Verdict};
use crate::evidence::{CaseEvidence, Evidence, Repetition};

/// Every case, in the order of `validator list`.
pub fn all() -> Vec<&'static Case> {
    pfc::CASES.iter().map(|case| &case.case).collect()
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
        figures: Vec::new(),
    };
    let Some(case) = find(&evidence.case) else {
        result.verdict = Verdict::Error;
        result.reason = format!("this version knows no case `{}`", evidence.case);
        return result;
    };
    for repetition in &evidence.repetitions {
        match repetition {
            Repetition::Pfc(evidence) => {
                let (checks, figures) = pfc::judge(case, evidence);
                result.checks.extend(checks);
                result.figures.extend(figures);
            }
        }
    }
    for omitted in &evidence.omitted {
        let verdict = if omitted.not_applicable { Verdict::NotApplicable } else { Verdict::Inconclusive };
        result.checks.extend(case.checks.iter().map(|check| CheckResult {
            check: check.id.into(),
            repetition: omitted.name.clone(),
            verdict,
            reason: omitted.reason.clone(),
            assertions: Vec::new(),
        }));
    }
    result.verdict = Verdict::of_parts(result.checks.iter().map(|check| check.verdict));
    if let Some(error) = &evidence.error {
        // A failure that was seen stays one, whatever became of the rest.
        result.verdict = Verdict::of_parts([result.verdict, Verdict::Error]);
        result.reason = error.clone();
    }
    result
}
