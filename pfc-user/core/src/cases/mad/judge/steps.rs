//! Each numbered step of the document, with what was found.

use super::decoded::View;
use crate::cases::mad::MadCase;
use crate::cases::steps::{Found, checked, decided, results};
use crate::evidence::mad::Purpose;
use crate::verdict::{CheckResult, StepResult, Verdict};

/// The steps of `case` in the subcase of the evidence.
pub(super) fn of(case: &MadCase, view: &View<'_>, checks: &[CheckResult]) -> Vec<StepResult> {
    let subcase = view.protect_bits();
    let steps = case.case.steps.iter();
    let steps = steps.filter(|step| step.of.is_empty() || step.of.contains(&subcase));
    results(&view.e.plan.name, steps, |step| {
        let found = (case.step)(step, view, checks);
        found.unwrap_or_else(|| decided(step, case.case.checks, checks))
    })
}

pub fn not_reached() -> Found {
    ("not reached".into(), Verdict::Skipped)
}

/// A step that only sends.
pub fn sent(view: &View<'_>, purpose: Purpose) -> Found {
    let askings = view.askings(purpose);
    let packets: usize = askings.iter().map(|asking| asking.all.len()).sum();
    match askings.len() {
        0 => not_reached(),
        count if count == packets => (format!("sent {count}"), Verdict::Pass),
        count => (
            format!("sent {count}, and {} again", packets - count),
            Verdict::Pass,
        ),
    }
}

/// A step whose value is shown wherever it was read, even if the document does not apply to it.
pub fn valued<A>(
    checks: &[CheckResult],
    check: &str,
    value: Option<A>,
    words: impl Fn(A) -> String,
) -> Found {
    match value {
        Some(value) => (words(value), Verdict::Pass),
        None => checked(checks, &[check]),
    }
}
