//! Changes between two runs, such as with another firmware of the DUT.

use std::io::{self, Write};

use serde::Serialize;

use super::layout::{paint, paragraph};
use super::{findings, plain};
use crate::evidence::Evidence;
use crate::verdict::{CaseResult, Exit, Figure, Verdict};

/// Schema version of the JSON.
pub const SCHEMA: u32 = 1;

/// A figure none of whose numbers changed by this share of what it was is left out of the text.
const NOTABLE: f64 = 0.1;

/// One of the runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Side {
    /// The earlier one.
    Before,
    /// The later one.
    After,
}

/// Two runs that cannot be compared: they share no check of a repetition.
#[derive(Debug, thiserror::Error)]
#[error(
    "the runs cannot be compared: expected a check of the same case and repetition in both, found \
     none; the first has {before}, the second {after}"
)]
pub struct Incomparable {
    before: String,
    after: String,
}

/// The difference between two runs.
#[derive(Debug, PartialEq, Serialize)]
pub struct Comparison<'r> {
    schema: u32,
    /// The earlier run.
    before: Run<'r>,
    /// The later run.
    after: Run<'r>,
    /// True if the verdict on a check is worse than it was, or a check that the earlier run had is
    /// missing.
    pub regression: bool,
    /// Checks with another verdict, in the order of the earlier run.
    pub checks: Vec<CheckChange<'r>>,
    /// Figures with another value.
    pub figures: Vec<FigureChange<'r>>,
    /// Checks of one run alone.
    pub unmatched: Vec<Unmatched<'r>>,
}

#[derive(Debug, PartialEq, Serialize)]
struct Run<'r> {
    version: &'r str,
    testbed: &'r str,
    started: u64,
    verdict: Verdict,
}

/// A check of a repetition.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
struct Place<'r> {
    case: &'r str,
    check: &'r str,
    repetition: &'r str,
}

impl<'r> Place<'r> {
    /// Its case and repetition.
    fn repetition(self) -> (&'r str, &'r str) {
        (self.case, self.repetition)
    }
}

/// A check with another verdict.
#[derive(Debug, PartialEq, Serialize)]
pub struct CheckChange<'r> {
    #[serde(flatten)]
    place: Place<'r>,
    before: Verdict,
    after: Verdict,
    /// True if it is worse than it was.
    pub worse: bool,
    /// The later reason.
    reason: &'r str,
}

/// A figure with another value.
#[derive(Debug, PartialEq, Serialize)]
pub struct FigureChange<'r> {
    case: &'r str,
    repetition: &'r str,
    name: &'r str,
    before: &'r str,
    after: &'r str,
    /// Change of its number as a share of what it was; `None` if it has no number of one unit.
    share: Option<f64>,
    #[serde(skip)]
    is_notable: bool,
}

/// A check that one run alone has.
#[derive(Debug, PartialEq, Serialize)]
pub struct Unmatched<'r> {
    #[serde(flatten)]
    place: Place<'r>,
    only: Side,
}

/// Badness of a verdict: a check that does not apply is as good as one that passed.
const fn badness(verdict: Verdict) -> u8 {
    match verdict {
        Verdict::Pass | Verdict::NotApplicable => 0,
        Verdict::Skipped => 1,
        Verdict::Inconclusive => 2,
        Verdict::Error => 3,
        Verdict::Fail => 4,
    }
}

/// A check of a repetition, with the verdict of all attempts.
struct Outcome<'r> {
    place: Place<'r>,
    verdict: Verdict,
    reason: &'r str,
}

fn outcomes(results: &[CaseResult]) -> Vec<Outcome<'_>> {
    let all = results.iter().flat_map(|result| {
        result.checks.iter().map(|check| Outcome {
            place: Place {
                case: &result.case,
                check: &check.check,
                repetition: &check.repetition,
            },
            verdict: check.verdict,
            reason: &check.reason,
        })
    });
    let places = findings::alike(all, |one, other| one.place == other.place);
    let worst = places.into_iter().filter_map(|attempts| {
        let worst = Verdict::of_parts(attempts.iter().map(|attempt| attempt.verdict));
        let mut attempts = attempts.into_iter();
        attempts.find(|attempt| attempt.verdict == worst)
    });
    worst.collect()
}

/// Compares two runs with their results.
///
/// # Errors
/// The runs have no check of a repetition in common.
pub fn compare<'r>(
    before: (&'r Evidence, &'r [CaseResult]),
    after: (&'r Evidence, &'r [CaseResult]),
) -> Result<Comparison<'r>, Incomparable> {
    let (earlier, later) = (outcomes(before.1), outcomes(after.1));
    let mut checks = Vec::new();
    let mut unmatched = Vec::new();
    let mut common = 0;
    for old in &earlier {
        let place = old.place;
        let Some(new) = later.iter().find(|new| new.place == place) else {
            let only = Side::Before;
            unmatched.push(Unmatched { place, only });
            continue;
        };
        common += 1;
        if old.verdict != new.verdict {
            checks.push(CheckChange {
                place,
                before: old.verdict,
                after: new.verdict,
                worse: badness(new.verdict) > badness(old.verdict),
                reason: new.reason,
            });
        }
    }
    let new = later.iter().map(|new| new.place);
    let new = new.filter(|place| !earlier.iter().any(|old| old.place == *place));
    let only = Side::After;
    unmatched.extend(new.map(|place| Unmatched { place, only }));
    if common == 0 {
        return Err(Incomparable {
            before: cases(before.1),
            after: cases(after.1),
        });
    }
    Ok(Comparison {
        schema: SCHEMA,
        before: run(before),
        after: run(after),
        // A check that only the earlier run has is a regression too.
        regression: checks.iter().any(|change| change.worse)
            || unmatched.iter().any(|alone| alone.only == Side::Before),
        checks,
        figures: figures(before.1, after.1),
        unmatched,
    })
}

fn run<'r>((evidence, results): (&'r Evidence, &'r [CaseResult])) -> Run<'r> {
    Run {
        version: &evidence.version,
        testbed: &evidence.testbed.name,
        started: evidence.started,
        verdict: Verdict::of_parts(results.iter().map(|result| result.verdict)),
    }
}

/// The names of the cases, for an error.
fn cases(results: &[CaseResult]) -> String {
    let names = results.iter().map(|result| plain::text(&result.case));
    match &names.collect::<Vec<_>>()[..] {
        [] => "no case".to_owned(),
        names => names.join(", "),
    }
}

/// Figures with another value. A repetition may have several of one name, such as a wait after each
/// phase: the first is compared with the first, the second with the second.
fn figures<'r>(before: &'r [CaseResult], after: &'r [CaseResult]) -> Vec<FigureChange<'r>> {
    let mut changes = Vec::new();
    for old_case in before {
        let new_case = after.iter().filter(|new| new.case == old_case.case);
        let mut new: Vec<&Figure> = new_case.flat_map(|case| &case.figures).collect();
        for old in &old_case.figures {
            let key = (&old.repetition, &old.name);
            let same = new
                .iter()
                .position(|new| (&new.repetition, &new.name) == key);
            let same = same.map(|at| new.remove(at));
            if let Some(new) = same.filter(|new| new.value != old.value) {
                changes.push(FigureChange {
                    case: &old_case.case,
                    repetition: &old.repetition,
                    name: &old.name,
                    before: &old.value,
                    after: &new.value,
                    share: share(old, new),
                    is_notable: is_notable(old, new),
                });
            }
        }
    }
    changes
}

/// The change of the one number of a figure, as a share of what it was.
fn share(before: &Figure, after: &Figure) -> Option<f64> {
    match (&before.numbers[..], &after.numbers[..]) {
        ([old], [new]) if before.form == after.form && old.value != 0.0 => {
            Some((new.value - old.value) / old.value)
        }
        _ => None,
    }
}

/// True if a figure says something else, or one of its numbers changed by [`NOTABLE`].
fn is_notable(before: &Figure, after: &Figure) -> bool {
    let mut pairs = before.numbers.iter().zip(&after.numbers);
    before.form != after.form
        || pairs.any(|(old, new)| {
            (new.value - old.value).abs() >= NOTABLE * old.value.abs() && new != old
        })
}

impl Comparison<'_> {
    /// The exit code: 1 on a regression, else 0.
    pub fn exit(&self) -> Exit {
        match self.regression {
            true => Exit::Failed,
            false => Exit::Passed,
        }
    }
}

/// Renders the comparison for people.
pub fn text(comparison: &Comparison<'_>, colour: bool) -> String {
    let mut out = String::new();
    for (word, run) in [
        ("before", &comparison.before),
        ("after ", &comparison.after),
    ] {
        let verdict = run.verdict;
        out.push_str(&format!(
            "{word}  {}, testbed {}, validator {}\n",
            paint(verdict.word(), verdict, colour),
            plain::text(run.testbed),
            plain::text(run.version)
        ));
    }
    let checks = comparison.checks.iter();
    let (worse, other): (Vec<_>, Vec<_>) = checks.partition(|change| change.worse);
    changes(&mut out, "worse", &worse, colour);
    changes(&mut out, "other changes of verdicts", &other, colour);
    changed_figures(&mut out, &comparison.figures);
    let missing = of_one_run(
        &mut out,
        "missing in the second run",
        comparison,
        Side::Before,
    );
    of_one_run(&mut out, "only in the second run", comparison, Side::After);
    let conclusion = match (worse.len(), missing) {
        (0, 0) if comparison.checks.is_empty() => {
            "no regression: every result is as it was".to_owned()
        }
        (0, 0) => "no regression: no result is worse".to_owned(),
        (0, missing) => format!("regression: {missing} results are missing"),
        (worse, 0) => format!("regression: {worse} results are worse"),
        (worse, missing) => {
            format!("regression: {worse} results are worse, and {missing} are missing")
        }
    };
    let exit = comparison.exit() as u8;
    out + &format!("\n{conclusion} (exit code {exit})\n")
}

/// Repetitions with checks of one run alone, and how many of them; returns how many in all.
fn of_one_run(out: &mut String, title: &str, comparison: &Comparison<'_>, only: Side) -> usize {
    let unmatched = comparison.unmatched.iter();
    let all: Vec<_> = unmatched.filter(|alone| alone.only == only).collect();
    if !all.is_empty() {
        out.push_str(&format!("\n{title}\n"));
    }
    for of in all.chunk_by(|one, next| one.place.repetition() == next.place.repetition()) {
        let (case, repetition) = of[0].place.repetition();
        let line = format!("{case} [{repetition}]: {} results of checks", of.len());
        paragraph(out, "  ", &plain::text(&line));
    }
    all.len()
}

fn changes(out: &mut String, title: &str, changes: &[&CheckChange<'_>], colour: bool) {
    if changes.is_empty() {
        return;
    }
    out.push_str(&format!("\n{title}\n"));
    for change in changes {
        let Place {
            case,
            check,
            repetition,
        } = change.place;
        let place = format!("{case} {check} [{repetition}]");
        paragraph(out, "  ", &plain::text(&place));
        let before = paint(change.before.word(), change.before, colour);
        let after = paint(change.after.word(), change.after, colour);
        out.push_str(&format!("      {before} -> {after}\n"));
        if !change.reason.is_empty() {
            paragraph(out, "      ", &plain::text(change.reason));
        }
    }
}

/// Figures that changed much, by case and repetition; the others are counted.
fn changed_figures(out: &mut String, figures: &[FigureChange<'_>]) {
    let (notable, lesser): (Vec<_>, Vec<_>) = figures.iter().partition(|figure| figure.is_notable);
    if figures.is_empty() {
        return;
    }
    out.push_str("\nfigures\n");
    let mut place = ("", "");
    for figure in notable {
        if place != (figure.case, figure.repetition) {
            place = (figure.case, figure.repetition);
            let title = format!("{} [{}]", figure.case, figure.repetition);
            paragraph(out, "  ", &plain::text(&title));
        }
        let share = figure
            .share
            .map_or(String::new(), |share| format!(" ({:+.0} %)", share * 100.0));
        let line = format!(
            "{}: {} -> {}{share}",
            figure.name, figure.before, figure.after
        );
        paragraph(out, "      ", &plain::text(&line));
    }
    if !lesser.is_empty() {
        let percent = NOTABLE * 100.0;
        out.push_str(&format!(
            "  {} more changed by less than {percent:.0} %: --format json\n",
            lesser.len()
        ));
    }
}

/// Writes the comparison as JSON.
pub fn json(mut out: impl Write, comparison: &Comparison<'_>) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut out, comparison)?;
    out.write_all(b"\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::value::{Value, number};

    fn ms(value: f64) -> Value {
        number(value, 1, "ms")
    }

    fn rate(rate: f64, share: f64) -> Value {
        number(rate, 1, "Mbit/s") + ", " + number(share, 1, "%") + " of the link"
    }

    #[test]
    fn a_figure_is_notable_by_a_tenth_of_a_number_and_one_of_one_number_has_a_share() {
        for (before, after, notable, expected) in [
            (ms(10.0), ms(15.0), true, Some(0.5)),
            (number(4.0, 0, ""), number(3.0, 0, ""), true, Some(-0.25)),
            (ms(100.0), ms(109.0), false, Some(0.09)),
            (ms(10.0), ms(9.0), true, Some(-0.1)),
            (ms(-10.0), ms(10.0), true, Some(-2.0)),
            (ms(0.0), ms(1.0), true, None),
            (ms(10.0), number(10.0, 1, "us"), true, None),
            (ms(1.0) + " late", ms(1.0) + " early", true, None),
            (rate(999.6, 100.0), rate(999.1, 99.9), false, None),
            (rate(999.6, 100.0), rate(990.0, 80.0), true, None),
            ("veth0".into(), "veth1".into(), true, None),
            ("none".into(), ms(1.0), true, None),
        ] {
            let of = |value: Value| value.figure("a", "b");
            let (before, after) = (of(before), of(after));
            assert_eq!(share(&before, &after), expected, "{before:?} {after:?}");
            assert_eq!(is_notable(&before, &after), notable, "{before:?} {after:?}");
        }
    }

    #[test]
    fn from_good_to_bad_verdicts_have_one_order() {
        let order = [
            Verdict::Pass,
            Verdict::Skipped,
            Verdict::Inconclusive,
            Verdict::Error,
            Verdict::Fail,
        ];
        assert!(order.is_sorted_by(|one, next| badness(*one) < badness(*next)));
        assert_eq!(badness(Verdict::NotApplicable), badness(Verdict::Pass));
    }
}
