//! From verdicts on a machine that may stand still to a statement on the fault.

use std::collections::BTreeSet;

use crate::common;
use crate::lab::CASES;
use crate::outcome::{Outcome, set};
use crate::witness::Witness;

/// What was left undecided is tried again; a wrong verdict never is.
const ATTEMPTS: usize = 4;

/// Has `run` measure the cases of what is still open, by one word each, until every check of `expected` has failed in one of
/// the attempts. In none may a check fail that is neither of these nor `possible`, nor pass one that has to fail. `run` also
/// says what it knows of the machine's part in it, for the message.
///
/// What is open at the end is noted as undecided where the machine was seen to stand still in the last attempt, and panics otherwise.
pub fn until_all_fail(
    test: &str,
    expected: &[&str],
    possible: &[&str],
    mut run: impl FnMut(&[&str]) -> (Outcome, String),
) {
    let allowed = set(&[expected, possible].concat());
    let mut open = set(expected);
    let mut last = None;
    for _ in 0..ATTEMPTS {
        // At first all four: nothing else may fail.
        let cases: BTreeSet<&str> = match last {
            None => BTreeSet::from(CASES),
            Some(_) => open
                .iter()
                .map(|check| check.split(' ').next().unwrap())
                .collect(),
        };
        let witness = Witness::begin();
        let (outcome, hindrances) = run(&Vec::from_iter(cases));
        let stillness = witness.end();
        let report = outcome.report();
        let failed = report.checks("fail");
        let unexpected: Vec<_> = failed.difference(&allowed).collect();
        assert!(
            unexpected.is_empty(),
            "{unexpected:?} fail:\n{}{hindrances}",
            report.reasons("fail")
        );
        assert_eq!(
            report.checks("error"),
            set(&[]),
            "{}",
            report.reasons("error")
        );
        assert_eq!(
            outcome.code,
            Some(if failed.is_empty() { 3 } else { 1 }),
            "{}",
            outcome.stderr
        );
        open.retain(|check| !failed.contains(check));
        if open.is_empty() {
            return;
        }
        let inconclusive = report.checks("inconclusive");
        let wrong: Vec<_> = open.difference(&inconclusive).collect();
        assert!(wrong.is_empty(), "{wrong:?} do not fail\n{hindrances}");
        last = Some((stillness, report.reasons("inconclusive")));
    }
    let (stillness, reasons) = last.expect("at least one attempt");
    assert!(
        stillness.explains(),
        "undecided in {ATTEMPTS} attempts, and {stillness}: {open:?}\n{reasons}"
    );
    common::undecided(test, &format!("{open:?}: {stillness}"));
}

/// Checks that a device which stands still may fail: it comes late, or what it holds is too much.
const BY_STANDING_STILL: [&str; 12] = [
    "paused",
    "background",
    "isolation",
    "delivered",
    "resume",
    "response",
    "xon",
    "test-traffic",
    "no-dip",
    "no-loss",
    "throughput",
    "no-pfc-on-lossy",
];

/// Has `run` measure a good device that is a process of this machine, and of whose stalls the program knows nothing: what such a
/// stall loses or delays is the device's. Returns the first outcome in which nothing fails. `None`, noted as undecided, where in every
/// attempt something failed that standing still explains, no check did so in all of them, and the machine was seen to stand still in each.
pub fn until_none_fails(test: &str, mut run: impl FnMut() -> Outcome) -> Option<Outcome> {
    let mut always: Option<BTreeSet<String>> = None;
    let mut last = String::new();
    for _ in 0..ATTEMPTS {
        let witness = Witness::begin();
        let outcome = run();
        let stillness = witness.end();
        let report = outcome.report();
        let failed = report.checks("fail");
        if failed.is_empty() {
            return Some(outcome);
        }
        let explained = failed
            .iter()
            .all(|check| BY_STANDING_STILL.contains(&check.split(' ').nth(1).unwrap()));
        assert!(
            explained && stillness.explains(),
            "{failed:?} fail, and {stillness}:\n{}",
            report.reasons("fail")
        );
        last = format!("{failed:?} fail: {stillness}\n{}", report.reasons("fail"));
        always = Some(always.map_or_else(
            || failed.clone(),
            |before| before.intersection(&failed).cloned().collect(),
        ));
    }
    let always = always.expect("at least one attempt");
    assert!(
        always.is_empty(),
        "{always:?} fail in each of {ATTEMPTS} attempts; in the last {last}"
    );
    common::undecided(test, last.lines().next().unwrap());
    None
}
