//! Each check of a case: its requirement and clause, and what was expected and found.

use super::markup::{Element, el};
use super::{Numbered, matrix, words};
use crate::case::{Assertion, Check, CheckResult, Figure, Verdict, least_found};

/// Most comparisons that are shown of a result: those that did not pass, and those that did.
const SHOWN: usize = 20;
const PASSED: usize = 3;

/// All checks of a case, each in a part that opens.
pub fn of_case(case: &Numbered<'_>) -> Vec<Element> {
    let ids = matrix::checks(case.result);
    let checks = ids.into_iter().enumerate();
    checks
        .map(|(index, id)| {
            let row = case
                .case
                .and_then(|case| case.checks.iter().find(|row| row.id == id));
            check(case, index, id, row)
        })
        .collect()
}

fn check(case: &Numbered<'_>, index: usize, id: &str, row: Option<&Check>) -> Element {
    let results: Vec<&CheckResult> = case
        .result
        .checks
        .iter()
        .filter(|result| result.check == id)
        .collect();
    let shown = results.iter().copied();
    let shown: Vec<&CheckResult> = shown
        .filter(|result| !case.left_out.contains(result.repetition.as_str()))
        .collect();
    let verdict = Verdict::of_parts(results.iter().map(|result| result.verdict));
    let summary = el("summary")
        .child(words::verdict(verdict))
        .text(" ")
        .child(el("code").text(id))
        .text(row.map_or(String::new(), |row| format!(": {}", row.passes_when)));
    let caption = format!("Results of {id}");
    let columns = ["repetition", "verdict", "compared", "expected", "found"];
    let groups = groups(&shown);
    let table = words::table(&caption, &columns).children(groups.iter().map(group));
    let open = matches!(
        verdict,
        Verdict::Fail | Verdict::Error | Verdict::Inconclusive
    );
    words::fold(summary, open)
        .with("id", case.check(index))
        .children(row.map(|row| requirement(case, row)))
        .child(words::scroller("scroll", &caption).child(table))
        .children(attempts(case, id))
        .children(resolution(case, id))
}

/// Lists what each attempt at a repetition found, where there were several.
fn attempts(case: &Numbered<'_>, id: &str) -> Option<Element> {
    let caption = format!("Attempts at {id}");
    let mut body = el("tbody");
    let is_shown = |name: &str| !case.left_out.contains(name);
    let attempts = case.result.attempts.iter();
    for attempt in attempts.filter(|attempt| is_shown(&attempt.repetition)) {
        for found in attempt.checks.iter().filter(|found| found.check == id) {
            let heading = el("th").with("scope", "row").text(&attempt.repetition);
            let row = el("tr")
                .child(heading)
                .child(el("td").text(attempt.attempt))
                .child(el("td").child(words::verdict(found.verdict)))
                .child(el("td").text(&found.reason));
            body = body.child(row);
        }
    }
    (body.len() > 0).then(|| {
        let columns = ["repetition", "attempt", "verdict", "reason"];
        let table = words::table(&caption, &columns).child(body);
        words::scroller("scroll", &caption).child(table)
    })
}

/// The smallest violation that each pass would have found.
fn resolution(case: &Numbered<'_>, id: &str) -> Option<Element> {
    let caption = format!("The least that {id} would have found");
    let name = least_found(id);
    let of = |figure: &&Figure| {
        figure.name == name && !case.left_out.contains(figure.repetition.as_str())
    };
    let mut body = el("tbody");
    for figure in case.result.figures.iter().filter(of) {
        body = body.child(words::row(&figure.repetition, [&figure.value]));
    }
    (body.len() > 0).then(|| {
        let table = words::table(&caption, &["repetition", "violation"]).child(body);
        words::scroller("scroll", &caption).child(table)
    })
}

/// Where the requirement is from, and under which conditions it is judged.
fn requirement(case: &Numbered<'_>, row: &Check) -> Element {
    let document = case.case.map_or("", |case| case.document);
    let clause = match (row.step, row.extra) {
        ("" | "-", _) => format!("beyond {document}"),
        (step, true) => format!("beyond {document}, at its step {step}"),
        (step, false) => format!("{document}, step {step}"),
    };
    let tolerance = if row.tolerance.is_empty() {
        "none"
    } else {
        row.tolerance
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

/// Equal results of several repetitions.
struct Group<'a> {
    first: &'a CheckResult,
    repetitions: Vec<&'a str>,
}

fn groups<'a>(results: &[&'a CheckResult]) -> Vec<Group<'a>> {
    let mut groups: Vec<Group> = Vec::new();
    for result in results.iter().copied() {
        let same = |group: &&mut Group| {
            let first = group.first;
            first.verdict == result.verdict
                && first.reason == result.reason
                && first.assertions == result.assertions
        };
        match groups.iter_mut().find(same) {
            Some(group) => group.repetitions.push(&result.repetition),
            None => groups.push(Group {
                first: result,
                repetitions: vec![&result.repetition],
            }),
        }
    }
    groups
}

/// The rows of a group: its reason, and its comparisons.
fn group(group: &Group<'_>) -> Element {
    let first = group.first;
    let (shown, more) = shown(&first.assertions);
    let mut rows: Vec<Vec<Element>> = Vec::new();
    if !first.reason.is_empty() {
        rows.push(vec![
            el("td")
                .with("colspan", 3)
                .class("reason")
                .text(&first.reason),
        ]);
    }
    for assertion in shown {
        let what = if assertion.verdict == first.verdict {
            el("td").text(&assertion.what)
        } else {
            el("td")
                .child(words::verdict(assertion.verdict))
                .text(format_args!(" {}", assertion.what))
        };
        rows.push(vec![
            what,
            el("td").text(&assertion.expected),
            el("td").text(&assertion.actual),
        ]);
    }
    if more > 0 || rows.is_empty() {
        let text = if more > 0 {
            format!("{more} more: {}", crate::report::REPORT)
        } else {
            "nothing was compared".to_owned()
        };
        rows.push(vec![el("td").with("colspan", 3).text(text)]);
    }
    let number = rows.len();
    let mut body = el("tbody");
    for (index, cells) in rows.into_iter().enumerate() {
        let mut row = el("tr");
        if index == 0 {
            let heading = el("th")
                .with("scope", "rowgroup")
                .with("rowspan", number)
                .text(group.repetitions.join("; "));
            let verdict = el("td")
                .with("rowspan", number)
                .child(words::verdict(first.verdict));
            row = row.child(heading).child(verdict);
        }
        body = body.child(row.children(cells));
    }
    body
}

/// The comparisons that are shown, those that did not pass first; and how many are left out.
pub fn shown(all: &[Assertion]) -> (Vec<&Assertion>, usize) {
    let (passed, other): (Vec<_>, Vec<_>) = all
        .iter()
        .partition(|assertion| assertion.verdict == Verdict::Pass);
    let shown: Vec<&Assertion> = other
        .into_iter()
        .take(SHOWN)
        .chain(passed.into_iter().take(PASSED))
        .collect();
    let more = all.len() - shown.len();
    (shown, more)
}

/// The assertions of the document, a row each; `None` where it names none.
pub fn assertions(case: &Numbered<'_>) -> Option<Element> {
    let found = &case.result.assertions;
    if found.is_empty() {
        return None;
    }
    let mut body = el("tbody");
    for assertion in found {
        let outcome = match assertion.verdict {
            Some(verdict) => words::verdict(verdict),
            None => el("span").text(assertion.outcome()),
        };
        body = body.child(
            el("tr")
                .child(el("th").with("scope", "row").text(&assertion.id))
                .child(el("td").child(outcome))
                .child(el("td").text(assertion.checks.join(", "))),
        );
    }
    let caption = "Assertions of the document";
    let table = words::table(caption, &["assertion", "outcome", "decided by"]).child(body);
    Some(words::scroller("scroll", &format!("{caption} in {}", case.result.case)).child(table))
}
