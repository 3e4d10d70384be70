//! Decides about a fault by repeated runs on a machine that may stall.

use std::collections::BTreeSet;

use crate::common;
use crate::run::lab::CASES;
use crate::run::outcome::{Outcome, set};
use crate::run::witness::Witness;

/// Inconclusive checks are tried again; a wrong verdict never is.
const ATTEMPTS: usize = 4;

/// Makes `run` measure the cases of the open checks, one word each, until every check of `expected`
/// has failed in some attempt. In no attempt may another check fail that is not in `possible`, or
/// an expected one pass. `run` also returns the machine's disturbances, for messages.
///
/// Checks still open at the end are reported as undecided if the machine stalled in the last
/// attempt; otherwise this panics.
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
        // First all four cases: no other check may fail.
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

/// Checks that a stalling device may fail: it is late, or holds too much.
const BY_STANDING_STILL: [&str; 14] = [
    "paused",
    "background",
    "isolation",
    "delivered",
    "lets-go",
    "resume",
    "response",
    "xon",
    "test-traffic",
    "no-dip",
    "no-delay",
    "no-loss",
    "throughput",
    "no-pfc-on-lossy",
];

/// Makes `run` measure a good device that is a process of this machine and whose stalls the program
/// cannot see: what such a stall loses or delays counts as the device's. Returns the first outcome
/// without a failure. Returns `None`, reported as undecided, if each attempt had failures that
/// stalls explain, no check failed in all of them, and the machine stalled in each.
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
