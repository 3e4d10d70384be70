//! Resolution of a pass: the smallest violation that a check would have found in this repetition.
//! Each packet is looked at whole, so that it is one packet, or one bit of it.

use std::time::Duration;

use super::decoded::{Asked, View};
use crate::case::{CheckResult, Figure};
use crate::cases::resolution::{self, one_of};
use crate::evidence::mad::Purpose;
use crate::quantity::ms;

/// The resolution of each of `checks` that passed.
pub(super) fn figures(checks: &[CheckResult], view: &View<'_>) -> Vec<Figure> {
    resolution::figures(checks, |check| of(check, view))
}

fn of(check: &str, view: &View<'_>) -> Option<String> {
    use Purpose::*;
    let unanswered = |purpose| one_of("request not answered", asked(view, purpose));
    let wrong = |purposes: &[Purpose]| {
        let answers = purposes.iter().map(|purpose| answers(view, *purpose));
        one_of("wrong answer", answers.sum())
    };
    match check {
        "node-info" => wrong(&[NodeInfo]),
        "switch-info" | "random-fdb-cap" => wrong(&[SwitchInfo]),
        "set-answered" => unanswered(SetBlock),
        "get-answered" => unanswered(GetBlock),
        "set-attribute" | "set-modifier" | "set-status" => wrong(&[SetBlock]),
        "get-attribute" | "get-modifier" | "get-status" => wrong(&[GetBlock]),
        "get-data" => Some(format!("1 bit of {} octets", 64 * answers(view, GetBlock))),
        "key-set" => wrong(&[KeySet, KeyShown]),
        "own-key-answered" => unanswered(OwnKey),
        "other-key-answered" => unanswered(OtherKey),
        "dut-key-answered" => unanswered(DutKey),
        "own-key-value" => wrong(&[OwnKey]),
        "other-key-value" => wrong(&[OtherKey]),
        "dut-key-value" => wrong(&[DutKey]),
        "no-violation" => counted(view, OtherKey),
        "before-wrong-key" => counted(view, OwnKey),
        "one-violation" => counted(view, DutKey),
        "no-answer" => late(view),
        "reset" => wrong(&[Reset, ResetShown]),
        "restored" => Some("1 bit of M_Key, protect bits and lease".into()),
        "nothing-else-changed" => wrong(&[KeyShown, ResetShown, Restored]),
        "header" => one_of(
            "wrong answer",
            all(view).filter(|asked| asked.answer.is_some()).count() as u64,
        ),
        "single-answer" => single(view),
        _ => None,
    }
}

/// Requests to the DUT.
fn all<'v>(view: &'v View<'_>) -> impl DoubleEndedIterator<Item = &'v Asked> {
    let asked = view.asked.iter();
    asked.filter(|asked| asked.purpose != Purpose::TesterPort)
}

/// Requests of that purpose, those that were repeated once.
fn asked(view: &View<'_>, purpose: Purpose) -> u64 {
    view.askings(purpose).len() as u64
}

/// Answers to requests of that purpose on which a verdict rests.
fn answers(view: &View<'_>, purpose: Purpose) -> u64 {
    let askings = view.askings(purpose);
    let answers = askings.iter().filter_map(|asking| asking.answer());
    answers.count() as u64
}

fn counted(view: &View<'_>, purpose: Purpose) -> Option<String> {
    let answers = answers(view, purpose);
    (answers > 0).then(|| format!("1 violation more or fewer in 1 answer of {answers}"))
}

/// One answer to a wrong key, and until when it could have come.
fn late(view: &View<'_>) -> Option<String> {
    let askings = view.askings(Purpose::OtherKey);
    let asked = askings.iter().flat_map(|asking| &asking.all);
    let seen = asked.map(|asked| view.seen_until(asked).saturating_sub(asked.sent));
    let least = seen.min()?;
    let requests: usize = askings.iter().map(|asking| asking.all.len()).sum();
    let to = format!("1 answer to {requests} requests");
    Some(format!("{to}, up to {} after each", ms(least)))
}

/// One packet too many, and until when it could have come.
fn single(view: &View<'_>) -> Option<String> {
    let last = all(view).next_back()?;
    let requests = all(view).count();
    let longest = Duration::from_nanos(view.seen_until(last).saturating_sub(last.sent));
    let after = ms(longest.as_nanos() as u64);
    Some(format!(
        "1 packet too many for {requests} requests, up to {after} after the last"
    ))
}
