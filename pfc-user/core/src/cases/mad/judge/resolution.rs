//! Resolution of a pass: the smallest violation that a check would have found in this repetition.
//! Each packet is looked at whole, so that it is one packet, or one bit of it.

use super::decoded::View;
use crate::cases::mad::MadCase;
use crate::cases::resolution::one_of;
use crate::cases::value::{Value, count, time};
use crate::evidence::mad::Purpose;

/// The resolution of `check`; `None` for a check that has none.
pub(super) fn of(case: &MadCase, check: &str, view: &View<'_>) -> Option<Value> {
    match check {
        "header" => {
            let answers = view.of_dut().filter(|asked| asked.answer.is_some());
            one_of("wrong answer", answers.count() as u64)
        }
        "single-answer" => single(view),
        _ => (case.resolution)(check, view),
    }
}

pub fn unanswered(view: &View<'_>, purpose: Purpose) -> Option<Value> {
    one_of("request not answered", view.askings(purpose).len() as u64)
}

pub fn wrong(view: &View<'_>, purposes: &[Purpose]) -> Option<Value> {
    let answers = purposes.iter().map(|purpose| answers(view, *purpose));
    one_of("wrong answer", answers.sum())
}

/// Answers to requests of that purpose on which a verdict rests.
pub fn answers(view: &View<'_>, purpose: Purpose) -> u64 {
    let askings = view.askings(purpose);
    let answers = askings.iter().filter_map(|asking| asking.answer());
    answers.count() as u64
}

/// One packet too many, and until when it could have come.
fn single(view: &View<'_>) -> Option<Value> {
    let after = time(view.seen_for(view.of_dut().next_back()?));
    let requests = count(view.of_dut().count() as u64, "requests");
    let found = Value::from("1 packet too many for ") + requests;
    Some(found + ", up to " + after + " after the last")
}
