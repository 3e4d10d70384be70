//! Numbered steps of a document, with what was found.

use crate::case::{CheckResult, Verdict};

/// The outcome of a step: words and verdict.
pub(super) type Found = (String, Verdict);

/// Most comparisons of a step that are listed one by one.
const TOLD: usize = 8;

/// Number and text of each step in a case's table.
pub(super) fn numbered(
    steps: &'static [&'static str],
) -> impl Iterator<Item = (&'static str, &'static str)> {
    steps.iter().filter_map(|line| line.split_once("  "))
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
    let told = comparisons
        .iter()
        .take(TOLD)
        .map(|comparison| format!("{}: {}", comparison.what, comparison.actual));
    let told = told.collect::<Vec<_>>().join("; ");
    let more = comparisons.len().saturating_sub(TOLD);
    let told = if more > 0 {
        format!("{told}; {more} more")
    } else {
        told
    };
    (reason.unwrap_or(told), verdict)
}
