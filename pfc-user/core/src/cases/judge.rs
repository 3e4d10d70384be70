//! The judging engine of all families: from the rows of a case's table to results.
//!
//! Every check of every family is judged in this order; the first that applies decides:
//!
//! 1. The evidence contradicts itself: `error`.
//! 2. The document does not apply to this DUT: `not-applicable`.
//! 3. The check has no subject in this repetition ([`Row::applies`]): `not-applicable`.
//! 4. The repetition was interrupted: `inconclusive`, but for rows that are judged
//!    [even then](Row::even_interrupted).
//! 5. A check that it depends on failed or was skipped: `skipped`.
//! 6. The check's own function finds nothing to judge: `not-applicable`.
//! 7. A precondition is not met: `inconclusive`, with the reasons of all that are not. A failure
//!    that is [certain](Finding::certain) stands, unless the precondition
//!    [explains even that](Precondition::explains_certain).
//! 8. Else the finding of the check's own function; a pass that compared nothing is
//!    `inconclusive`.

use super::finding::{Again, Finding};
use super::remedy;
use super::value::Value;
use crate::verdict::{Cause, Check, CheckResult, Figure, Judged, StepResult, Verdict};

/// A family of cases: the form in which its checks see the evidence of a repetition.
pub trait Family: Sized + 'static {
    /// The evidence, decoded.
    type View<'e>;

    /// Result of the function of a check.
    type Outcome: Into<Finding>;

    /// True if the user ended the repetition.
    fn is_interrupted(view: &Self::View<'_>) -> bool;

    /// Why the repetition ended early, where the tester or its surroundings failed. Stands before
    /// the reason of each check that is inconclusive.
    fn failure<'v>(_view: &'v Self::View<'_>) -> Option<&'v str> {
        None
    }
}

/// The function behind a check.
pub type Judge<F> = fn(&<F as Family>::View<'_>) -> <F as Family>::Outcome;

/// Name of a figure that is reported and not judged, and its value where the evidence has one.
pub type NamedFigure<F> = (&'static str, fn(&<F as Family>::View<'_>) -> Option<Value>);

/// A condition; an error is the reason why it does not hold.
pub type Condition<F> = fn(&<F as Family>::View<'_>) -> Result<(), String>;

/// The rule of a precondition.
pub enum Met<F: Family> {
    /// A condition, which fails with the figure that is at fault.
    If(Condition<F>),
    /// Another check passes; else its finding has the reason and the remedy.
    By(Judge<F>),
    /// The check that needs it weighs it itself.
    InCheck,
}

/// A condition without which a check is inconclusive.
pub struct Precondition<F: Family> {
    /// Its name in lists and reasons.
    pub name: &'static str,
    /// The remedy where it is not met.
    pub remedy: &'static str,
    /// Its rule.
    pub met: Met<F>,
    /// True: where it is not met, it explains even a failure that is certain.
    pub explains_certain: bool,
    /// Where it is not met: the use of measuring the repetition again.
    pub again: Again,
}

impl<F: Family> Precondition<F> {
    /// A precondition that explains no certain failure, and that measuring again does not meet.
    pub const fn new(name: &'static str, remedy: &'static str, met: Condition<F>) -> Self {
        Self {
            remedy,
            ..Self::by(name, Met::If(met))
        }
    }

    /// A precondition that a disturbance of the tester leaves unmet: measuring again may meet it.
    pub const fn of_tester(name: &'static str, remedy: &'static str, met: Condition<F>) -> Self {
        Self {
            again: Again::MayDecide,
            ..Self::new(name, remedy, met)
        }
    }

    /// A precondition whose rule says the remedy itself, or needs none.
    pub const fn by(name: &'static str, met: Met<F>) -> Self {
        Self {
            name,
            remedy: remedy::OTHER,
            met,
            explains_certain: false,
            again: Again::CannotDecide,
        }
    }

    /// Where it is not met: the reason and the remedy.
    fn unmet(&self, view: &F::View<'_>) -> Option<Cause> {
        let (why, remedy) = match self.met {
            Met::InCheck => return None,
            Met::If(condition) => (condition(view).err()?, self.remedy),
            Met::By(judge) => {
                let finding: Finding = judge(view).into();
                if finding.verdict <= Verdict::Pass {
                    return None;
                }
                (finding.reason, finding.remedy)
            }
        };
        let found = format!("{}: {why}", self.name);
        Some(Cause { found, remedy })
    }
}

/// The preconditions of a row; made by [`needs!`].
pub struct Needs<F: Family> {
    /// All of them.
    pub all: &'static [Precondition<F>],
    /// Their names.
    pub names: &'static [&'static str],
}

/// The [`Needs`] of a row, from preconditions.
macro_rules! needs {
    ($($precondition:expr),* $(,)?) => {
        &$crate::cases::judge::Needs {
            all: &[$($precondition),*],
            names: &[$($precondition.name),*],
        }
    };
}
pub(crate) use needs;

/// One row of a case's table: a check's words, its function and its preconditions.
pub struct Row<F: Family> {
    /// Name, such as `paused`.
    pub id: &'static str,
    /// Steps or sections of the source document, by number or name; empty where the check is ours.
    pub steps: &'static [&'static str],
    /// True: not asked by the document, but expected by its users.
    pub extra: bool,
    /// Condition for a pass.
    pub passes_when: &'static str,
    /// Tolerance and its source; empty when exact.
    pub tolerance: &'static str,
    /// Preconditions; where one is not met the check is inconclusive.
    pub needs: &'static Needs<F>,
    /// Checks of the same repetition without whose pass this one is skipped.
    pub depends_on: &'static [&'static str],
    /// Fault of the simulated DUT that makes it fail.
    pub fault: &'static str,
    /// Fails where the check has no subject in the repetition; `None`: it has one in each.
    pub applies: Option<Condition<F>>,
    /// True: judged even if the repetition was interrupted.
    pub even_interrupted: bool,
    /// Judges the evidence, regardless of preconditions.
    pub judge: Judge<F>,
}

impl<F: Family> Row<F> {
    const NEEDS_NOTHING: &'static Needs<F> = needs![];

    /// A row with these words that is judged by `judge`, without anything else.
    pub const fn new(
        id: &'static str,
        steps: &'static [&'static str],
        passes_when: &'static str,
        fault: &'static str,
        judge: Judge<F>,
    ) -> Self {
        Self {
            id,
            steps,
            extra: false,
            passes_when,
            tolerance: "",
            needs: Self::NEEDS_NOTHING,
            depends_on: &[],
            fault,
            applies: None,
            even_interrupted: false,
            judge,
        }
    }

    /// The words, as they stand in lists.
    const fn words(&self) -> Check {
        Check {
            id: self.id,
            steps: self.steps,
            extra: self.extra,
            passes_when: self.passes_when,
            tolerance: self.tolerance,
            preconditions: self.needs.names,
            depends_on: self.depends_on,
            fault: self.fault,
        }
    }

    /// Steps 3 to 8 of the order.
    fn find(&self, view: &F::View<'_>, earlier: &[CheckResult]) -> Finding {
        if let Some(applies) = self.applies
            && let Err(reason) = applies(view)
        {
            return Finding::not_applicable(reason);
        }
        if F::is_interrupted(view) && !self.even_interrupted {
            let mut finding = Finding::inconclusive("the repetition was interrupted");
            finding.remedy = remedy::INTERRUPTED;
            return finding;
        }
        if let Some(reason) = reason_to_skip(self.depends_on, earlier) {
            return Finding::skipped(reason);
        }
        let mut finding: Finding = (self.judge)(view).into();
        if finding.verdict == Verdict::NotApplicable {
            return finding;
        }
        if finding.verdict == Verdict::Pass && finding.assertions.is_empty() {
            finding = Finding::inconclusive("nothing was compared");
        }
        let certain = finding.verdict == Verdict::Fail && finding.certain;
        for needed in self.needs.all {
            if (!certain || needed.explains_certain)
                && let Some(cause) = needed.unmet(view)
            {
                finding.again = finding.again.max(needed.again);
                finding.unmet.push(cause);
            }
        }
        if !finding.unmet.is_empty() {
            let reasons: Vec<_> = finding.unmet.iter().map(|cause| &*cause.found).collect();
            (finding.verdict, finding.reason) = (Verdict::Inconclusive, reasons.join("; "));
        }
        if let Some(failure) = F::failure(view)
            && finding.verdict == Verdict::Inconclusive
        {
            finding.reason = format!("{failure}; {}", finding.reason);
            if !finding.unmet.is_empty() {
                let found = failure.to_owned();
                let remedy = remedy::OTHER;
                finding.unmet.insert(0, Cause { found, remedy });
            }
        }
        finding
    }
}

/// The reason to skip a check that depends on these: the first of them that failed or was skipped.
pub(super) fn reason_to_skip(depends_on: &[&str], earlier: &[CheckResult]) -> Option<String> {
    let failed = |on: &&&str| {
        earlier.iter().any(|result| {
            result.check == **on && matches!(result.verdict, Verdict::Fail | Verdict::Skipped)
        })
    };
    let on = depends_on.iter().find(failed)?;
    Some(format!("it depends on `{on}`, which did not pass"))
}

/// The words of a table's rows.
pub const fn words<F: Family, const ROWS: usize>(rows: &[Row<F>; ROWS]) -> [Check; ROWS] {
    let mut words = [rows[0].words(); ROWS];
    let mut index = 1;
    while index < ROWS {
        words[index] = rows[index].words();
        index += 1;
    }
    words
}

/// The table of a case.
pub struct Table<F: Family> {
    /// Its rows; each depends on earlier ones only.
    pub rows: &'static [Row<F>],
    /// Fails where the document does not apply to this DUT; `None`: it applies to each.
    pub applies: Option<Condition<F>>,
}

impl<F: Family> Table<F> {
    /// A result for each row, in its order. `view` is an error where the evidence contradicts
    /// itself.
    pub fn judge(&self, repetition: &str, view: Result<&F::View<'_>, &str>) -> Vec<CheckResult> {
        self.judge_attempt(repetition, view).0
    }

    /// Judges a repetition. Of one whose evidence makes sense there are also these figures, and the
    /// steps and resolutions that `further` has.
    pub(super) fn judge_all<'e>(
        &self,
        repetition: &str,
        view: Result<F::View<'e>, String>,
        figures: &[NamedFigure<F>],
        further: impl FnOnce(&F::View<'e>, &[CheckResult]) -> (Vec<StepResult>, Vec<Figure>),
    ) -> Judged {
        let checks = self.judge(repetition, view.as_ref().map_err(String::as_str));
        let Ok(view) = view else {
            return Judged {
                checks,
                ..Judged::default()
            };
        };
        let figure = |(name, value): &NamedFigure<F>| Some(value(&view)?.figure(repetition, *name));
        let (steps, resolutions) = further(&view, &checks);
        let figures = figures.iter().filter_map(figure).chain(resolutions);
        Judged {
            steps,
            figures: figures.collect(),
            checks,
        }
    }

    /// Returns a result for each row, and the inconclusive checks that measuring again may decide.
    pub fn judge_attempt(
        &self,
        repetition: &str,
        view: Result<&F::View<'_>, &str>,
    ) -> (Vec<CheckResult>, Vec<&'static str>) {
        let mut results = Vec::with_capacity(self.rows.len());
        let mut open = Vec::new();
        let not_applicable = match (view, self.applies) {
            (Ok(view), Some(applies)) => applies(view).err(),
            _ => None,
        };
        for row in self.rows {
            let mut finding = match (view, &not_applicable) {
                (Err(contradiction), _) => {
                    Finding::error(format!("the evidence contradicts itself: {contradiction}"))
                }
                (_, Some(reason)) => Finding::not_applicable(reason.clone()),
                (Ok(view), None) => row.find(view, &results),
            };
            if finding.verdict == Verdict::Inconclusive && finding.again == Again::MayDecide {
                open.push(row.id);
            }
            results.push(CheckResult {
                check: row.id.into(),
                repetition: repetition.into(),
                verdict: finding.verdict,
                causes: finding.causes(),
                reason: finding.reason,
                assertions: finding.assertions,
            });
        }
        (results, open)
    }
}

#[cfg(test)]
mod tests;
