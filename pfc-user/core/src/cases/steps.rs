//! Numbered steps of a document, with what was found.

use crate::verdict::{Check, CheckResult, DocumentAssertion, Step, StepResult, Verdict};

/// The document of the MAD and the RC cases.
pub(super) const DOCUMENT: &str = "InfiniBand Test Specification 1.0.38";

/// An assertion of the document, for the repetitions of these names, or all, that `checks` decide.
pub(super) const fn assertion(
    id: &'static str,
    repetitions: &'static [&'static str],
    checks: &'static [&'static str],
) -> DocumentAssertion {
    DocumentAssertion {
        id,
        repetitions,
        checks,
    }
}

/// The outcome of a step: words and verdict.
pub(super) type Found = (String, Verdict);

/// Most comparisons of a step that are listed one by one.
const MOST_LISTED: usize = 8;

/// The result of each of these steps in the repetition of that name, with what `found` says of its
/// number.
pub(super) fn results<'s>(
    repetition: &str,
    steps: impl IntoIterator<Item = &'s Step>,
    found: impl Fn(&str) -> Found,
) -> Vec<StepResult> {
    let result = |step: &Step| {
        let (found, verdict) = found(step.number);
        StepResult {
            repetition: repetition.into(),
            step: step.number.into(),
            what: step.what.into(),
            found,
            verdict,
        }
    };
    steps.into_iter().map(result).collect()
}

/// A step that the checks `of_case` decide which name its number.
pub(super) fn decided(step: &str, of_case: &[Check], checks: &[CheckResult]) -> Found {
    let names_it = |check: &&Check| check.steps.contains(&step);
    let deciding = of_case.iter().filter(names_it);
    let ids: Vec<_> = deciding.map(|check| check.id).collect();
    checked(checks, &ids)
}

/// A step that checks decide.
pub(super) fn checked(checks: &[CheckResult], ids: &[&str]) -> Found {
    let of_step: Vec<&CheckResult> = checks
        .iter()
        .filter(|result| ids.contains(&result.check.as_str()))
        .collect();
    let verdict = Verdict::of_parts(of_step.iter().map(|result| result.verdict));
    let reason = of_step
        .iter()
        .find(|result| result.verdict == verdict && !result.reason.is_empty())
        .map(|result| result.reason.clone());
    let comparisons: Vec<_> = of_step
        .iter()
        .flat_map(|result| &result.assertions)
        .collect();
    let listed = comparisons.iter().take(MOST_LISTED);
    let mut listed: Vec<String> = listed
        .map(|comparison| format!("{}: {}", comparison.what, comparison.actual))
        .collect();
    if comparisons.len() > MOST_LISTED {
        listed.push(format!("{} more", comparisons.len() - MOST_LISTED));
    }
    (reason.unwrap_or_else(|| listed.join("; ")), verdict)
}
