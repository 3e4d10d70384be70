//! Wholeness of a repetition of an RC case: each phase that is due is there, to its end.

use super::{Checked, Rule};
use crate::agent::protocol::{QueuePair, State};
use crate::evidence::rc::{Phase, RcEvidence};

pub(super) fn check(e: &RcEvidence, at: &str) -> Checked {
    let phases = [
        ("control", &e.control),
        ("test", &e.test),
        ("flush", &e.flush),
    ];
    for ((name, phase), is_due) in phases.into_iter().zip(due(e)) {
        let at = Rule::Phases.at(format!("{at}.{name}"));
        at.ensure(phase.is_some() || !is_due, || {
            format!("expected the {name}, which nothing kept from taking place; found none")
        })?;
        // A READ that the DUT refused has no other end.
        let ended = |phase: &Phase| phase.until >= phase.posted && phase.after.is_some();
        let whole = e.interrupted || phase.as_ref().is_none_or(ended);
        at.ensure(whole, || "it has no end".into())?;
    }
    Ok(())
}

/// True for each of control, test and flush that nothing in the evidence kept from taking place.
fn due(e: &RcEvidence) -> [bool; 3] {
    let applies = e.apm.or(e.device.apm) == Some(false);
    let goes_on = applies && !e.interrupted && e.unreachable.is_none();
    let is_heard = |control: &Phase| !control.packets.is_empty();
    let is_in_error = |after: QueuePair| after.state == State::Error;
    let ended = e.test.as_ref().and_then(|test| test.after);
    [
        goes_on,
        goes_on && e.control.as_ref().is_some_and(is_heard),
        !e.interrupted && ended.is_some_and(is_in_error),
    ]
}
