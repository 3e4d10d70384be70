//! Defects of an attempt with a wrong key: a step is missing, or violations do not count from 0.

use crate::cases::finding::Finding;
use crate::cases::mad::judge::decoded::{Asked, Asking, View};
use crate::cases::remedy;
use crate::cases::value::{Value, count};
use crate::evidence::mad::Purpose;

/// Violations that were left by the Set that was to clear them; nothing can be counted from there.
pub(super) fn not_cleared(view: &View<'_>, asked: &Asked) -> Option<Value> {
    let set = view.port_in(Purpose::KeySet, asked.attempt)?;
    let left = set.m_key_violations();
    (left != 0).then(|| count(left.into(), "") + " already when a Set had cleared them")
}

/// Records each kind of wrong key that was not tried, where `purpose` is about wrong keys; and each
/// attempt in which the step `purpose` is missing, where it is one of every attempt.
pub(super) fn untried(view: &View<'_>, purpose: Purpose, finding: &mut Finding) {
    let askings = view.askings(Purpose::OtherKey);
    if matches!(purpose, Purpose::OtherKey | Purpose::DutKey) {
        for difference in view.e.plan.differences() {
            let is_it = |asking: &Asking<'_>| {
                view.difference(asking.last()) == difference
                    && view.in_attempt(purpose, asking.last().attempt).is_some()
            };
            if !askings.iter().any(is_it) {
                let what = format!("a wrong key that differs {difference}");
                finding.undecided_until(remedy::NOT_REACHED, what, "tried", "not tried");
            }
        }
        return;
    }
    for attempt in askings.iter().map(|asking| asking.last().attempt) {
        if view.in_attempt(purpose, attempt).is_none() {
            let what = format!("{purpose:?} of attempt {attempt}");
            finding.undecided(what, "sent", "missing, though a wrong key was tried in it");
        }
    }
}
