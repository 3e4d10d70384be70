//! The finding of a check, before its preconditions are weighed.

use std::borrow::{Borrow, Cow};
use std::mem;

use super::remedy;
use super::value::Value;
use crate::verdict::{Assertion, Cause, Flow, Subject, Verdict};

/// The use of measuring a repetition again because of a check that could not be decided. Of several
/// the greater counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Again {
    /// Measuring again may decide the check: the tester was disturbed.
    MayDecide,
    /// Measuring again finds the same: nothing declares or shows what the check rests on.
    CannotDecide,
}

/// The finding of a check; where the evidence allows none, the reason, which makes the check
/// inconclusive.
pub(super) type Judgement = Result<Finding, Undecided>;

impl From<Judgement> for Finding {
    fn from(judgement: Judgement) -> Self {
        judgement.unwrap_or_else(|undecided| Self {
            remedy: undecided.remedy,
            ..Self::inconclusive(undecided.reason)
        })
    }
}

/// Reason why the evidence allows no finding, and the remedy.
#[derive(Debug)]
pub(super) struct Undecided {
    reason: Cow<'static, str>,
    pub(super) remedy: &'static str,
}

impl<R: Into<Cow<'static, str>>> From<R> for Undecided {
    fn from(reason: R) -> Self {
        Self {
            reason: reason.into(),
            remedy: remedy::OTHER,
        }
    }
}

impl Undecided {
    /// Undecided because the judged part was not reached, read or asked for.
    pub(super) const fn not_reached(reason: &'static str) -> Self {
        Self {
            reason: Cow::Borrowed(reason),
            remedy: remedy::NOT_REACHED,
        }
    }
}

/// A check's own finding.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Finding {
    /// `Pass`, `Fail`, `Inconclusive` or `NotApplicable`.
    pub(super) verdict: Verdict,
    /// Why; empty on a plain pass.
    pub(super) reason: String,
    /// Where inconclusive: what would change that.
    pub(super) remedy: &'static str,
    /// Preconditions that are not met, where they are the reason.
    pub(super) unmet: Vec<Cause>,
    /// The comparisons.
    pub(super) assertions: Vec<Assertion>,
    /// True: a failure that no fault of the tester explains.
    pub(super) certain: bool,
    /// Where inconclusive: the use of measuring again.
    pub(super) again: Again,
}

impl Finding {
    /// A pass that can still be worsened.
    pub(super) fn new() -> Self {
        Self {
            verdict: Verdict::Pass,
            reason: String::new(),
            remedy: remedy::OTHER,
            unmet: Vec::new(),
            assertions: Vec::new(),
            certain: false,
            again: Again::MayDecide,
        }
    }

    fn with(verdict: Verdict, reason: impl Into<String>) -> Self {
        Self {
            verdict,
            reason: reason.into(),
            ..Self::new()
        }
    }

    /// The check has no subject here.
    pub(super) fn not_applicable(reason: impl Into<String>) -> Self {
        Self::with(Verdict::NotApplicable, reason)
    }

    /// The evidence does not allow a verdict, nor would that of another try.
    pub(super) fn inconclusive(reason: impl Into<String>) -> Self {
        Self {
            again: Again::CannotDecide,
            ..Self::with(Verdict::Inconclusive, reason)
        }
    }

    /// A check that it depends on did not pass.
    pub(super) fn skipped(reason: impl Into<String>) -> Self {
        Self::with(Verdict::Skipped, reason)
    }

    /// The evidence cannot be judged at all.
    pub(super) fn error(reason: impl Into<String>) -> Self {
        Self::with(Verdict::Error, reason)
    }

    /// Returns the finding if it rests on a comparison; else `reason` makes it inconclusive.
    pub(super) fn compared(self, reason: impl Into<Undecided>) -> Judgement {
        match self.assertions.is_empty() {
            true => Err(reason.into()),
            false => Ok(self),
        }
    }

    /// Takes out the causes of an open verdict.
    pub(super) fn causes(&mut self) -> Vec<Cause> {
        match self.verdict {
            Verdict::Inconclusive | Verdict::Error if self.unmet.is_empty() => {
                let (found, remedy) = (self.reason.clone(), self.remedy);
                vec![Cause { found, remedy }]
            }
            _ => mem::take(&mut self.unmet),
        }
    }

    /// Names what the comparisons are about that `judge` records.
    pub(super) fn about<T>(
        &mut self,
        subjects: impl IntoIterator<Item = impl Borrow<Subject>>,
        judge: impl FnOnce(&mut Self) -> T,
    ) -> T {
        let subjects = subjects.into_iter().map(|subject| *subject.borrow());
        let subjects: Vec<Subject> = subjects.collect();
        self.marked(judge, |made| made.about.extend(&subjects))
    }

    /// Names the flow that the comparisons are about that `judge` records.
    pub(super) fn of_flow(&mut self, flow: &Flow, judge: impl FnOnce(&mut Self)) {
        self.marked(judge, |made| made.flow = Some(flow.clone()));
    }

    /// Applies `mark` to each comparison that `judge` records.
    fn marked<T>(
        &mut self,
        judge: impl FnOnce(&mut Self) -> T,
        mark: impl Fn(&mut Assertion),
    ) -> T {
        let before = self.assertions.len();
        let judged = judge(self);
        self.assertions[before..].iter_mut().for_each(mark);
        judged
    }

    /// Names what would change the verdict, where a comparison that `judge` records gives the
    /// reason.
    pub(super) fn remedied<T>(
        &mut self,
        remedy: &'static str,
        judge: impl FnOnce(&mut Self) -> T,
    ) -> T {
        let before = self.verdict;
        let judged = judge(self);
        if self.verdict > before {
            self.remedy = remedy;
        }
        judged
    }

    /// Records a comparison that has to hold.
    pub(super) fn expect(
        &mut self,
        what: impl Into<String>,
        expected: impl Into<Value>,
        actual: impl Into<Value>,
        holds: bool,
    ) {
        self.compare(
            what,
            expected,
            actual,
            if holds { Verdict::Pass } else { Verdict::Fail },
        );
    }

    /// Records a comparison about these subjects that has to hold.
    pub(super) fn expect_about(
        &mut self,
        subjects: impl IntoIterator<Item = impl Borrow<Subject>>,
        what: impl Into<String>,
        expected: impl Into<Value>,
        actual: impl Into<Value>,
        holds: bool,
    ) {
        self.about(subjects, |finding| {
            finding.expect(what, expected, actual, holds)
        });
    }

    /// Records a comparison that has to hold. A `certain` failure cannot be explained by a fault of
    /// the tester.
    pub(super) fn prove(
        &mut self,
        what: impl Into<String>,
        expected: impl Into<Value>,
        actual: impl Into<Value>,
        holds: bool,
        certain: bool,
    ) {
        self.expect(what, expected, actual, holds);
        self.certain |= certain && !holds;
    }

    /// Adds another finding on the same check: the worse verdict counts.
    pub(super) fn merge(&mut self, other: Self) {
        if other.verdict > self.verdict {
            self.verdict = other.verdict;
            (self.reason, self.remedy) = (other.reason, other.remedy);
        }
        self.certain |= other.certain && other.verdict == Verdict::Fail;
        self.again = self.again.max(other.again);
        self.assertions.extend(other.assertions);
    }

    /// Records that two values have to be equal.
    pub(super) fn equal<T: Into<Value> + PartialEq>(
        &mut self,
        what: impl Into<String>,
        expected: T,
        actual: T,
    ) {
        let holds = expected == actual;
        self.expect(what, expected, actual, holds);
    }

    /// Records that two values without a quantity have to be equal: keys, states, packets.
    pub(super) fn equal_words<T: ToString + PartialEq>(
        &mut self,
        what: impl Into<String>,
        expected: T,
        actual: T,
    ) {
        self.equal(what, expected.to_string(), actual.to_string());
    }

    /// Records a comparison that could not be made, because the tester was disturbed.
    pub(super) fn undecided(
        &mut self,
        what: impl Into<String>,
        expected: impl Into<Value>,
        actual: impl Into<Value>,
    ) {
        self.compare(what, expected, actual, Verdict::Inconclusive);
    }

    /// Records a comparison that could not be made, with what would change that.
    pub(super) fn undecided_until(
        &mut self,
        remedy: &'static str,
        what: impl Into<String>,
        expected: impl Into<Value>,
        actual: impl Into<Value>,
    ) {
        self.remedied(remedy, |finding| finding.undecided(what, expected, actual));
    }

    /// Records a comparison that could not be made, and could not be by measuring again.
    pub(super) fn undecidable(
        &mut self,
        what: impl Into<String>,
        expected: impl Into<Value>,
        actual: impl Into<Value>,
    ) {
        self.undecided(what, expected, actual);
        self.again = Again::CannotDecide;
    }

    /// Records a comparison with its outcome; the first of the worst gives the reason.
    pub(super) fn compare(
        &mut self,
        what: impl Into<String>,
        expected: impl Into<Value>,
        actual: impl Into<Value>,
        verdict: Verdict,
    ) {
        let assertion = expected
            .into()
            .compared(what.into(), actual.into(), verdict);
        if verdict > self.verdict {
            self.verdict = verdict;
            self.reason = format!(
                "{}: expected {}, found {}",
                assertion.what, assertion.expected, assertion.actual
            );
        }
        self.assertions.push(assertion);
    }
}
