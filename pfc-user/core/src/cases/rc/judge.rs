//! From evidence to checks: pure, so that stored evidence gives the same verdict again.

pub(super) mod decoded;

use decoded::View;

use super::RcCase;
use crate::cases::finding::Judgement;
use crate::cases::judge::Family;
use crate::cases::resolution;
use crate::cases::steps;
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

impl RcCase {
    /// Judges one repetition.
    pub fn judge(&self, e: &RcEvidence) -> Judged {
        let (name, view) = (&e.plan.name, View::new(e));
        self.table
            .judge_all(name, view, self.figures, |view, checks| {
                let found = |step: &str| (self.step)(step, view, checks);
                let steps = steps::results(name, self.case.steps, found);
                let resolution = |check: &str| (self.resolution)(check, view);
                (steps, resolution::figures(checks, resolution))
            })
    }
}

/// A state of a queue pair for people.
pub(super) fn state(phase: &Phase) -> Option<String> {
    phase.after.map(|after| format!("{:?}", after.state))
}
