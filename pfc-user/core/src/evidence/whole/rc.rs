//! Wholeness of a repetition of an RC case.

use super::{Checked, Rule, ascends, ensure, stalls};
use crate::agent::protocol::{QueuePair, State};
use crate::evidence::pfc::LeftOut;
use crate::evidence::rc::{Phase, RcEvidence};

pub(super) fn check(e: &RcEvidence, at: &str) -> Checked {
    let phases = [
        ("control", &e.control),
        ("test", &e.test),
        ("flush", &e.flush),
    ];
    for ((name, phase), is_due) in phases.into_iter().zip(due(e)) {
        let at = format!("{at}.{name}");
        ensure(phase.is_some() || !is_due, Rule::Phases, &at, || {
            format!("expected the {name}, which nothing kept from taking place; found none")
        })?;
        if let Some(phase) = phase {
            check_phase(phase, e.interrupted, &at)?;
        }
    }
    stalls(
        &e.stalls,
        LeftOut::default(),
        e.stalls_noted,
        &format!("{at}.stalls"),
    )
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

fn check_phase(phase: &Phase, interrupted: bool, at: &str) -> Checked {
    let counted = &phase.counted;
    let dropped: u64 = phase.drops.iter().map(|(_, frames)| frames).sum();
    for (what, listed, counted) in [
        ("packets", phase.packets.len() as u64, counted.packets),
        ("answers", phase.answers.len() as u64, counted.answers),
        (
            "readings of the retry counter",
            phase.shown.len() as u64,
            counted.shown,
        ),
        (
            "completions",
            phase.completions.len() as u64,
            counted.completions,
        ),
        ("frames lost by the tester's side", dropped, counted.dropped),
    ] {
        ensure(listed == counted, Rule::Events, at, || {
            format!("{listed} {what} are there, {counted} were counted")
        })?;
    }
    for (what, in_order) in [
        (
            "packets",
            ascends(phase.packets.iter().map(|packet| packet.time)),
        ),
        (
            "answers",
            ascends(phase.answers.iter().map(|packet| packet.time)),
        ),
        (
            "readings",
            ascends(phase.shown.iter().map(|shown| shown.asked)),
        ),
        (
            "completions",
            ascends(phase.completions.iter().map(|completion| completion.time)),
        ),
    ] {
        ensure(in_order, Rule::Events, at, || {
            format!("{what} are out of order")
        })?;
    }
    let answered = phase
        .shown
        .iter()
        .all(|shown| shown.asked <= shown.answered);
    let since = phase
        .completions
        .iter()
        .all(|completion| completion.since <= completion.time);
    ensure(answered && since, Rule::Events, at, || {
        "a reading ends before it begins".into()
    })?;
    let ended = phase.until >= phase.posted && phase.after.is_some();
    // A READ that the DUT refused has no other end.
    ensure(ended || interrupted, Rule::Events, at, || {
        "it has no end".into()
    })
}
