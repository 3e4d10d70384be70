//! Numbered steps of a document, with what was found.

use crate::verdict::{CheckResult, StepResult, Verdict};

/// The outcome of a step: words and verdict.
pub(super) type Found = (String, Verdict);

/// Most comparisons of a step that are listed one by one.
const MOST_LISTED: usize = 8;

/// Number and text of each step in a case's table.
pub(super) fn numbered(
    steps: &'static [&'static str],
) -> impl Iterator<Item = (&'static str, &'static str)> {
    steps.iter().filter_map(|line| line.split_once("  "))
}

/// The result of each of these steps, by number and text, in the repetition of that name.
pub(super) fn results(
    repetition: &str,
    steps: impl Iterator<Item = (&'static str, &'static str)>,
    found: impl Fn(&str) -> Found,
) -> Vec<StepResult> {
    let result = |(step, what): (&str, &str)| {
        let (found, verdict) = found(step);
        StepResult {
            repetition: repetition.into(),
            step: step.into(),
            what: what.into(),
            found,
            verdict,
        }
    };
    steps.map(result).collect()
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
