//! Each check of a case: its requirement and clause, and what was expected and found.

use super::markup::{Element, el};
use super::{Numbered, words};
use crate::report::{REPORT, findings};
use crate::verdict::{Assertion, AssertionResult, Check, CheckResult, Verdict, least_found};

/// Most comparisons that are shown of a result: those that did not pass, and those that did.
const SHOWN: usize = 20;
const PASSED: usize = 3;

/// All checks of a case, each in a part that opens.
pub fn of_case(case: &Numbered<'_>) -> Vec<Element> {
    let checks = findings::by_check(case.result).into_iter().enumerate();
    checks
        .map(|(index, results)| check(case, index, &results))
        .collect()
}

fn check(case: &Numbered<'_>, index: usize, results: &[&CheckResult]) -> Element {
    let id = results[0].check.as_str();
    let rows = case.case.map_or(&[][..], |case| case.checks);
    let row = rows.iter().find(|row| row.id == id);
    let shown = results.iter().copied();
    let shown = shown.filter(|result| case.shows(&result.repetition));
    let groups = findings::alike(shown, |one, other| {
        (one.verdict, &one.reason) == (other.verdict, &other.reason)
            && one.assertions == other.assertions
    });
    let verdict = findings::worst(results.iter().copied());
    let summary = el("summary")
        .child(words::verdict(verdict))
        .text(" ")
        .child(el("code").text(id))
        .text(row.map_or(String::new(), |row| format!(": {}", row.passes_when)));
    let caption = format!("Results of {id}");
    let columns = ["repetition", "verdict", "compared", "expected", "found"];
    let groups = groups.iter().map(|results| group(results));
    let table = words::table(&caption, &columns).children(groups);
    words::fold(summary, findings::is_open(verdict))
        .with("id", case.check(index))
        .children(row.map(|row| requirement(case, row)))
        .child(words::scroller("scroll", &caption).child(table))
        .children(attempts(case, id))
        .children(resolution(case, id))
}

/// Lists what each attempt at a repetition found, where there were several.
fn attempts(case: &Numbered<'_>, id: &str) -> Option<Element> {
    let mut rows = Vec::new();
    let attempts = case.result.attempts.iter();
    for attempt in attempts.filter(|attempt| case.shows(&attempt.repetition)) {
        for found in attempt.checks.iter().filter(|found| found.check == id) {
            let row = words::row(&attempt.repetition, [attempt.attempt])
                .child(words::cell(found.verdict))
                .child(el("td").text(&found.reason));
            rows.push(row);
        }
    }
    let caption = format!("Attempts at {id}");
    let columns = ["repetition", "attempt", "verdict", "reason"];
    words::some_listed(&caption, &columns, rows)
}

/// The smallest violation that each pass would have found.
fn resolution(case: &Numbered<'_>, id: &str) -> Option<Element> {
    let name = least_found(id);
    let figures = case.result.figures.iter();
    let rows = figures
        .filter(|figure| figure.name == name && case.shows(&figure.repetition))
        .map(|figure| words::row(&figure.repetition, [&figure.value]))
        .collect();
    let caption = format!("The least that {id} would have found");
    words::some_listed(&caption, &["repetition", "violation"], rows)
}

/// Source of the requirement, and the conditions under which it is judged.
fn requirement(case: &Numbered<'_>, row: &Check) -> Element {
    let document = case.case.map_or("", |case| case.document);
    let clause = match (row.steps.join(", ").as_str(), row.extra) {
        ("", _) => format!("beyond {document}"),
        (steps, true) => format!("beyond {document}, at its step {steps}"),
        (steps, false) => format!("{document}, step {steps}"),
    };
    let tolerance = match row.tolerance {
        "" => "none",
        tolerance => tolerance,
    };
    let mut pairs = vec![("clause", clause), ("tolerance", tolerance.to_owned())];
    if !row.preconditions.is_empty() {
        pairs.push(("preconditions", row.preconditions.join(", ")));
    }
    if !row.depends_on.is_empty() {
        pairs.push(("judged after", row.depends_on.join(", ")));
    }
    words::pairs(pairs)
}

/// The rows of equal results of several repetitions: their reason, and their comparisons.
fn group(results: &[&CheckResult]) -> Element {
    let first = results[0];
    let (shown, more) = shown(&first.assertions);
    let mut rows: Vec<Vec<Element>> = Vec::new();
    if !first.reason.is_empty() {
        let reason = el("td").with("colspan", 3).class("reason");
        rows.push(vec![reason.text(&first.reason)]);
    }
    for assertion in shown {
        let what = if assertion.verdict == first.verdict {
            el("td").text(&assertion.what)
        } else {
            words::cell(assertion.verdict).text(format_args!(" {}", assertion.what))
        };
        let [expected, actual] = [&assertion.expected, &assertion.actual];
        rows.push(vec![what, el("td").text(expected), el("td").text(actual)]);
    }
    if more > 0 || rows.is_empty() {
        let text = match more {
            0 => "nothing was compared".to_owned(),
            more => format!("{more} more: {REPORT}"),
        };
        rows.push(vec![el("td").with("colspan", 3).text(text)]);
    }
    let repetitions: Vec<&str> = results.iter().map(|of| of.repetition.as_str()).collect();
    let heading = el("th")
        .with("scope", "rowgroup")
        .with("rowspan", rows.len())
        .text(repetitions.join("; "));
    let verdict = el("td")
        .with("rowspan", rows.len())
        .child(words::verdict(first.verdict));
    // They stand in the first row alone, for all of them.
    rows[0].splice(0..0, [heading, verdict]);
    let rows = rows.into_iter().map(|cells| el("tr").children(cells));
    el("tbody").children(rows)
}

/// The comparisons that are shown, those that did not pass first; and how many are left out.
fn shown(all: &[Assertion]) -> (Vec<&Assertion>, usize) {
    let (passed, other): (Vec<_>, Vec<_>) = all
        .iter()
        .partition(|assertion| assertion.verdict == Verdict::Pass);
    let other = other.into_iter().take(SHOWN);
    let shown: Vec<&Assertion> = other.chain(passed.into_iter().take(PASSED)).collect();
    let more = all.len() - shown.len();
    (shown, more)
}

/// The assertions of the document, a row each; `None` where it names none.
pub fn assertions(case: &Numbered<'_>) -> Option<Element> {
    let found = &case.result.assertions;
    if found.is_empty() {
        return None;
    }
    let row = |assertion: &AssertionResult| {
        let outcome = match assertion.verdict {
            Some(verdict) => words::verdict(verdict),
            None => el("span").text(assertion.outcome()),
        };
        let cells = [
            el("td").child(outcome),
            el("td").text(assertion.checks.join(", ")),
        ];
        words::row(&assertion.id, [""; 0]).children(cells)
    };
    let rows = el("tbody").children(found.iter().map(row));
    let caption = "Assertions of the document";
    let table = words::table(caption, &["assertion", "outcome", "decided by"]).child(rows);
    Some(words::scroller("scroll", &format!("{caption} in {}", case.result.case)).child(table))
}
