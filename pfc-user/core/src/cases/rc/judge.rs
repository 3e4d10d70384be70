//! From evidence to checks: pure, so that stored evidence gives the same verdict again.

pub(super) mod decoded;

use decoded::View;

use super::RcCase;
use crate::cases::finding::Finding;
use crate::cases::judge::Family;
use crate::cases::resolution;
use crate::cases::steps::numbered;
use crate::evidence::rc::{Phase, RcEvidence};
use crate::verdict::{Judged, StepResult};

/// The family, for the engine.
pub(super) struct Rc;

impl Family for Rc {
    type View<'e> = View<'e>;

    fn is_interrupted(view: &View<'_>) -> bool {
        view.e.interrupted
    }
}

/// Judges one repetition of `case`.
pub(super) fn repetition(case: &RcCase, e: &RcEvidence) -> Judged {
    let name = &e.plan.name;
    let view = View::new(e);
    let checks = case
        .table
        .judge(name, view.as_ref().map_err(String::as_str));
    let Ok(view) = view else {
        return Judged {
            checks,
            ..Judged::default()
        };
    };
    let step = |(step, what): (&str, &str)| {
        let (found, verdict) = (case.step)(step, &view, &checks);
        StepResult {
            repetition: name.clone(),
            step: step.into(),
            what: what.into(),
            found,
            verdict,
        }
    };
    let resolution = resolution::figures(&checks, |check| (case.resolution)(check, &view));
    Judged {
        steps: numbered(case.case.steps).map(step).collect(),
        figures: [(case.figures)(&view), resolution].concat(),
        checks,
    }
}

/// The test was not reached.
pub(super) fn no_test() -> Finding {
    Finding::not_reached("the test was not reached")
}

/// A state of a queue pair for people.
pub(super) fn state(phase: &Phase) -> Option<String> {
    phase.after.map(|after| format!("{:?}", after.state))
}
