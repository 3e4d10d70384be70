//! The cases, by family; and the verdict on each from its evidence.

pub(crate) mod attempts;
mod finding;
mod judge;
pub mod mad;
pub mod parameters;
pub mod pfc;
pub mod rc;
mod registry;
pub(crate) mod remedy;
mod resolution;
mod stalls;
mod steps;
pub(crate) mod value;

pub use attempts::again;
pub use registry::{Known, OfFamily, PfcTask, PlannedCase, Task, all, find, nearest};

use crate::evidence::mad::MadEvidence;
use crate::evidence::whole::{self, Defect, Rule};
use crate::evidence::{CaseEvidence, Evidence, Repetition};
use crate::verdict::{
    AssertionResult, Case, CaseResult, Cause, CheckResult, DocumentAssertion, Verdict,
};

/// Judges everything that a run recorded. Nothing passes in evidence that is not [whole].
pub fn judge(evidence: &Evidence) -> Vec<CaseResult> {
    let mut results: Vec<CaseResult> = evidence.cases.iter().map(judge_case).collect();
    if let Err(defect) = whole::check(evidence) {
        let why = format!("the evidence is not whole: {defect}");
        withdraw_passes(&mut results, &why);
    }
    results
}

/// Fails with the first repetition whose evidence makes no sense to its case, which would judge
/// nothing of it. Whoever reads stored evidence asks first: it is not whole then, and an error is
/// no milder than the failure that it may hide.
pub fn consistent(evidence: &Evidence) -> Result<(), Defect> {
    for (number, case) in evidence.cases.iter().enumerate() {
        for (index, repetition) in case.repetitions.iter().enumerate() {
            let name = repetition.name();
            contradiction(case, index).map_err(|found| Defect {
                rule: Rule::Consistency,
                part: format!(
                    "cases[{number}].repetitions[{index}] ({}, {name})",
                    case.case
                ),
                found,
            })?;
        }
    }
    Ok(())
}

/// Fails with what makes no sense in the repetition of that index. Nothing is known of a case that
/// this version does not know.
fn contradiction(case: &CaseEvidence, index: usize) -> Result<(), String> {
    match (find(&case.case), &case.repetitions[index]) {
        (Some(Known::Pfc(..)), Repetition::Pfc(recorded)) => pfc::consistent(recorded),
        (Some(Known::Mad(..)), Repetition::Mad(recorded)) => {
            let (all, index) = among(case, recorded);
            mad::consistent(&all, index)
        }
        (Some(Known::Rc(..)), Repetition::Rc(recorded)) => rc::consistent(recorded),
        (None, _) => Ok(()),
        _ => Err(OTHER_FAMILY.into()),
    }
}

const OTHER_FAMILY: &str = "the evidence is of another family of cases";

/// All repetitions of a case of management datagrams, and the index of `recorded` among them.
fn among<'e>(case: &'e CaseEvidence, recorded: &MadEvidence) -> (Vec<&'e MadEvidence>, usize) {
    let of_mad = |other: &'e Repetition| match other {
        Repetition::Mad(other) => Some(&**other),
        _ => None,
    };
    let all: Vec<_> = case.repetitions.iter().filter_map(of_mad).collect();
    let index = all.iter().position(|other| std::ptr::eq(*other, recorded));
    (all, index.expect("one of the repetitions of the case"))
}

/// Turns each pass into an error, for the reason `why`.
fn withdraw_passes(results: &mut [CaseResult], why: &str) {
    for result in results {
        for check in &mut result.checks {
            if check.verdict == Verdict::Pass {
                (check.verdict, check.reason) = (Verdict::Error, why.into());
                check.causes = cause(why, remedy::OTHER);
            }
        }
        for assertion in &mut result.assertions {
            if assertion.verdict == Some(Verdict::Pass) {
                assertion.verdict = Some(Verdict::Error);
            }
        }
        if result.verdict == Verdict::Pass {
            (result.verdict, result.reason) = (Verdict::Error, why.into());
        }
    }
}

fn cause(found: &str, remedy: &'static str) -> Vec<Cause> {
    let found = found.to_owned();
    vec![Cause { found, remedy }]
}

/// Judges one case.
pub fn judge_case(evidence: &CaseEvidence) -> CaseResult {
    let Some(known) = find(&evidence.case) else {
        return CaseResult {
            case: evidence.case.clone(),
            verdict: Verdict::Error,
            reason: format!("this version knows no case `{}`", evidence.case),
            ..CaseResult::default()
        };
    };
    let case = known.case();
    let mut result = CaseResult {
        case: case.id.into(),
        ..CaseResult::default()
    };
    for (index, repetition) in evidence.repetitions.iter().enumerate() {
        let judged = match (known, repetition) {
            (Known::Pfc(case, ()), Repetition::Pfc(recorded)) => {
                let name = &recorded.plan.name;
                let is_same = |earlier: &Repetition| {
                    earlier
                        .pfc()
                        .is_some_and(|earlier| earlier.plan.name == *name)
                };
                if evidence.repetitions[..index].iter().any(is_same) {
                    continue;
                }
                let (judged, attempts) = attempts::judge(case, &attempts::of(evidence, name));
                result.attempts.extend(attempts);
                judged
            }
            (Known::Mad(case, ()), Repetition::Mad(recorded)) => {
                let (all, index) = among(evidence, recorded);
                case.judge_among(&all, index)
            }
            (Known::Rc(case, ()), Repetition::Rc(evidence)) => case.judge(evidence),
            _ => {
                result.reason = OTHER_FAMILY.into();
                result.verdict = Verdict::Error;
                return result;
            }
        };
        result.checks.extend(judged.checks);
        result.steps.extend(judged.steps);
        result.figures.extend(judged.figures);
    }
    result.checks.extend(omitted(case, evidence));
    result.assertions = case
        .assertions
        .iter()
        .map(|assertion| of_document(assertion, &result.checks))
        .collect();
    result.verdict = Verdict::of_parts(result.checks.iter().map(|check| check.verdict));
    if let Some(error) = &evidence.error {
        // A failure that was seen stays one, whatever became of the rest.
        result.verdict = result.verdict.max(Verdict::Error);
        result.reason = error.clone();
    }
    result
}

/// A result for each check of each repetition that was not done.
fn omitted(case: &Case, evidence: &CaseEvidence) -> Vec<CheckResult> {
    let mut results = Vec::new();
    for omitted in &evidence.omitted {
        let verdict = if omitted.not_applicable {
            Verdict::NotApplicable
        } else {
            Verdict::Inconclusive
        };
        results.extend(case.checks.iter().map(|check| CheckResult {
            check: check.id.into(),
            repetition: omitted.name.clone(),
            verdict,
            reason: omitted.reason.clone(),
            assertions: Vec::new(),
            causes: cause(&omitted.reason, remedy::NOT_DONE),
        }));
    }
    results
}

/// The verdict of the checks on an assertion of the document.
fn of_document(assertion: &DocumentAssertion, checks: &[CheckResult]) -> AssertionResult {
    let deciding: Vec<&CheckResult> = checks
        .iter()
        .filter(|result| {
            let about = assertion.repetitions.is_empty()
                || assertion.repetitions.contains(&result.repetition.as_str());
            about && assertion.checks.contains(&result.check.as_str())
        })
        .collect();
    // A skipped check has not shown that its part of the assertion holds.
    let verdict = |result: &&CheckResult| match result.verdict {
        Verdict::Skipped => Verdict::Inconclusive,
        verdict => verdict,
    };
    AssertionResult {
        id: assertion.id.into(),
        verdict: match (assertion.checks, &deciding[..]) {
            ([], _) => None,
            // Nothing of it is known.
            (_, []) => Some(Verdict::Inconclusive),
            _ => Some(Verdict::of_parts(deciding.iter().map(verdict))),
        },
        checks: assertion
            .checks
            .iter()
            .map(|check| check.to_string())
            .collect(),
        comparisons: deciding
            .iter()
            .flat_map(|result| result.assertions.clone())
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Verdict::{Fail, Inconclusive, NotApplicable, Pass, Skipped};

    /// The verdict on an assertion that a check with these verdicts decides, one a repetition.
    fn decided_by(verdicts: &[Verdict]) -> Option<Verdict> {
        let assertion = DocumentAssertion {
            id: "#1",
            repetitions: &[],
            checks: &["it-holds"],
        };
        let result = |verdict: &Verdict| CheckResult {
            check: "it-holds".into(),
            repetition: "one".into(),
            verdict: *verdict,
            reason: String::new(),
            assertions: Vec::new(),
            causes: Vec::new(),
        };
        let checks: Vec<CheckResult> = verdicts.iter().map(result).collect();
        of_document(&assertion, &checks).verdict
    }

    #[test]
    fn an_assertion_passes_only_if_all_that_decides_it_passed_or_is_not_applicable() {
        for (verdicts, expected) in [
            (&[Pass, Pass][..], Pass),
            (&[NotApplicable, Pass], Pass),
            (&[NotApplicable], NotApplicable),
            (&[Pass, Skipped], Inconclusive),
            (&[Skipped], Inconclusive),
            (&[Pass, Skipped, Fail], Fail),
            (&[Pass, Inconclusive], Inconclusive),
            (&[], Inconclusive),
        ] {
            assert_eq!(decided_by(verdicts), Some(expected), "{verdicts:?}");
        }
    }
}
