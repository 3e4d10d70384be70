//! From evidence to checks: pure, so that stored evidence gives the same verdict again.

pub(super) mod decoded;

use decoded::View;

use super::RcCase;
use crate::cases::finding::Judgement;
use crate::cases::judge::Family;
use crate::cases::resolution;
use crate::cases::steps::{self, numbered};
use crate::evidence::rc::{Phase, RcEvidence};
use crate::verdict::Judged;

/// The family, for the engine.
pub(super) struct Rc;

impl Family for Rc {
    type View<'e> = View<'e>;
    type Outcome = Judgement;

    fn is_interrupted(view: &View<'_>) -> bool {
        view.e.interrupted
    }
}

/// Judges one repetition of `case`.
pub(super) fn repetition(case: &RcCase, e: &RcEvidence) -> Judged {
    let name = &e.plan.name;
    let (table, view) = (&case.table, View::new(e));
    table.judge_all(name, view, case.figures, |view, checks| {
        let found = |step: &str| (case.step)(step, view, checks);
        let steps = steps::results(name, numbered(case.case.steps), found);
        let resolution = |check: &str| (case.resolution)(check, view);
        (steps, resolution::figures(checks, resolution))
    })
}

/// A state of a queue pair for people.
pub(super) fn state(phase: &Phase) -> Option<String> {
    phase.after.map(|after| format!("{:?}", after.state))
}
