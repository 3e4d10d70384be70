//! What a check finds before its preconditions are weighed.

use crate::case::{Assertion, Verdict};

/// A check's own finding.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::cases::pfc) struct Finding {
    /// `Pass`, `Fail`, `Inconclusive` or `NotApplicable`.
    pub(in crate::cases::pfc) verdict: Verdict,
    /// Why; empty on a plain pass.
    pub(in crate::cases::pfc) reason: String,
    /// The comparisons.
    pub(in crate::cases::pfc) assertions: Vec<Assertion>,
    /// A failure that no unmet precondition can explain.
    pub(in crate::cases::pfc) certain: bool,
}

impl Finding {
    /// A pass that can still be worsened by [`Finding::expect`].
    pub(in crate::cases::pfc) fn new() -> Self {
        Self {
            verdict: Verdict::Pass,
            reason: String::new(),
            assertions: Vec::new(),
            certain: false,
        }
    }

    /// The check has no subject here.
    pub(in crate::cases::pfc) fn not_applicable(reason: impl Into<String>) -> Self {
        Self {
            verdict: Verdict::NotApplicable,
            reason: reason.into(),
            ..Self::new()
        }
    }

    /// Records a comparison that has to hold. A `certain` failure cannot be explained by a fault of the tester.
    pub(in crate::cases::pfc) fn expect(
        &mut self,
        what: impl Into<String>,
        expected: impl Into<String>,
        actual: impl Into<String>,
        holds: bool,
        certain: bool,
    ) {
        let assertion = Assertion {
            what: what.into(),
            expected: expected.into(),
            actual: actual.into(),
            verdict: if holds { Verdict::Pass } else { Verdict::Fail },
        };
        if !holds {
            if self.verdict != Verdict::Fail {
                self.reason = format!(
                    "{}: expected {}, found {}",
                    assertion.what, assertion.expected, assertion.actual
                );
            }
            self.verdict = Verdict::Fail;
            self.certain |= certain;
        }
        self.assertions.push(assertion);
    }

    /// Adds another finding on the same check: the worse verdict counts.
    pub(in crate::cases::pfc) fn merge(&mut self, other: Self) {
        if Verdict::of_parts([self.verdict, other.verdict]) != self.verdict {
            self.verdict = other.verdict;
            self.reason = other.reason;
        }
        self.certain |= other.certain && other.verdict == Verdict::Fail;
        self.assertions.extend(other.assertions);
    }

    /// Records a comparison that could not be made.
    pub(in crate::cases::pfc) fn undecided(
        &mut self,
        what: impl Into<String>,
        expected: impl Into<String>,
        actual: impl Into<String>,
    ) {
        let assertion = Assertion {
            what: what.into(),
            expected: expected.into(),
            actual: actual.into(),
            verdict: Verdict::Inconclusive,
        };
        if self.verdict == Verdict::Pass {
            self.verdict = Verdict::Inconclusive;
            self.reason = format!(
                "{}: expected {}, found {}",
                assertion.what, assertion.expected, assertion.actual
            );
        }
        self.assertions.push(assertion);
    }
}

/// Nanoseconds as milliseconds for people.
pub(in crate::cases::pfc) fn ms(nanos: u64) -> String {
    format!("{:.3} ms", nanos as f64 / 1e6)
}
