//! What a check finds.

use std::fmt::Display;

use crate::case::{Assertion, Verdict};

/// A check's own finding.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Finding {
    /// `Pass`, `Fail`, `Inconclusive` or `NotApplicable`.
    pub(super) verdict: Verdict,
    /// Why; empty on a plain pass.
    pub(super) reason: String,
    /// The comparisons.
    pub(super) assertions: Vec<Assertion>,
}

impl Finding {
    /// A pass that can still be worsened.
    pub(super) fn new() -> Self {
        Self {
            verdict: Verdict::Pass,
            reason: String::new(),
            assertions: Vec::new(),
        }
    }

    /// The check has no subject here.
    pub(super) fn not_applicable(reason: impl Into<String>) -> Self {
        Self {
            verdict: Verdict::NotApplicable,
            reason: reason.into(),
            assertions: Vec::new(),
        }
    }

    /// What it rests on was not reached.
    pub(super) fn not_reached(reason: impl Into<String>) -> Self {
        Self {
            verdict: Verdict::Inconclusive,
            reason: reason.into(),
            assertions: Vec::new(),
        }
    }

    /// Records a comparison that has to hold.
    pub(super) fn expect(
        &mut self,
        what: impl Into<String>,
        expected: impl Display,
        actual: impl Display,
        holds: bool,
    ) {
        self.compare(
            what,
            expected,
            actual,
            if holds { Verdict::Pass } else { Verdict::Fail },
        );
    }

    /// Records that two values have to be equal.
    pub(super) fn equal<T: Display + PartialEq>(
        &mut self,
        what: impl Into<String>,
        expected: T,
        actual: T,
    ) {
        let holds = expected == actual;
        self.expect(what, expected, actual, holds);
    }

    /// Records a comparison that could not be made.
    pub(super) fn undecided(
        &mut self,
        what: impl Into<String>,
        expected: impl Display,
        actual: impl Display,
    ) {
        self.compare(what, expected, actual, Verdict::Inconclusive);
    }

    /// Records a comparison with its outcome; the first of the worst gives the reason.
    pub(super) fn compare(
        &mut self,
        what: impl Into<String>,
        expected: impl Display,
        actual: impl Display,
        verdict: Verdict,
    ) {
        let assertion = Assertion {
            what: what.into(),
            expected: expected.to_string(),
            actual: actual.to_string(),
            verdict,
        };
        if Verdict::of_parts([self.verdict, verdict]) != self.verdict {
            self.verdict = verdict;
            self.reason = format!(
                "{}: expected {}, found {}",
                assertion.what, assertion.expected, assertion.actual
            );
        }
        self.assertions.push(assertion);
    }
}
