//! Which repetition of which case came out how: the cases at a glance, and the checks of a case.

use std::collections::BTreeSet;

use super::markup::{Element, el};
use super::{Numbered, words};
use crate::case::{CaseResult, CheckResult, Verdict};
use crate::report::findings;

/// Names of the repetitions in the order of the results, each once.
pub fn repetitions(result: &CaseResult) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for check in &result.checks {
        if !names.contains(&check.repetition.as_str()) {
            names.push(&check.repetition);
        }
    }
    names
}

/// Repetitions beyond the first `most`, of which those that did not pass come first.
pub fn beyond(result: &CaseResult, most: usize) -> BTreeSet<&str> {
    let mut names = repetitions(result);
    if names.len() <= most {
        return BTreeSet::new();
    }
    names.sort_by_key(|name| findings::rank(of_repetition(result, name)));
    names.into_iter().skip(most).collect()
}

/// Ids of a case's checks in the order of its table.
pub fn checks(result: &CaseResult) -> Vec<&str> {
    let mut ids: Vec<&str> = Vec::new();
    for check in &result.checks {
        if !ids.contains(&check.check.as_str()) {
            ids.push(&check.check);
        }
    }
    ids
}

/// Results of a check in a repetition: several where it was attempted again.
fn attempts<'a>(
    result: &'a CaseResult,
    check: &'a str,
    repetition: &'a str,
) -> impl Iterator<Item = &'a CheckResult> {
    let all = result.checks.iter();
    all.filter(move |found| found.check == check && found.repetition == repetition)
}

/// The worst result of a repetition.
pub fn of_repetition(result: &CaseResult, repetition: &str) -> Verdict {
    let of = result.checks.iter();
    let of = of.filter(|check| check.repetition == repetition);
    Verdict::of_parts(of.map(|check| check.verdict))
}

/// The table of all cases, a row each.
pub fn cases(cases: &[Numbered<'_>]) -> Element {
    let mut body = el("tbody");
    for case in cases {
        let result = case.result;
        let link = el("a")
            .with("href", format_args!("#{}", case.anchor()))
            .text(&result.case);
        let mut cell = el("ul").class("repetitions");
        for (index, repetition) in repetitions(result).into_iter().enumerate() {
            if case.left_out.contains(repetition) {
                continue;
            }
            let verdict = of_repetition(result, repetition);
            let link = el("a")
                .with("href", format_args!("#{}", case.repetition(index)))
                .text(repetition);
            cell = cell.child(
                el("li")
                    .child(words::verdict(verdict))
                    .text(" ")
                    .child(link),
            );
        }
        if !case.left_out.is_empty() {
            let more = format!("and {} more, named below", case.left_out.len());
            cell = cell.child(el("li").text(more));
        }
        let cell = if cell.len() == 0 {
            el("td").text("none")
        } else {
            el("td").child(cell)
        };
        body = body.child(
            el("tr")
                .child(el("th").with("scope", "row").child(link))
                .child(el("td").child(words::verdict(result.verdict)))
                .child(cell),
        );
    }
    let caption = "Cases and their repetitions";
    words::scroller("scroll", caption).child(
        words::table(
            caption,
            &["case", "verdict", "repetitions, each with its worst check"],
        )
        .child(body),
    )
}

/// The table of a case: checks by repetitions.
pub fn of_case(case: &Numbered<'_>) -> Element {
    let result = case.result;
    let mut repetitions = repetitions(result);
    repetitions.retain(|name| !case.left_out.contains(name));
    let mut columns = vec!["check"];
    columns.extend(&repetitions);
    let mut body = el("tbody");
    for (index, check) in checks(result).into_iter().enumerate() {
        let link = el("a")
            .with("href", format_args!("#{}", case.check(index)))
            .text(check);
        let mut row = el("tr").child(el("th").with("scope", "row").child(link));
        for repetition in &repetitions {
            let found: Vec<Element> = attempts(result, check, repetition)
                .map(|found| el("div").child(words::verdict(found.verdict)))
                .collect();
            row = row.child(if found.is_empty() {
                el("td").text("not judged")
            } else {
                el("td").children(found)
            });
        }
        body = body.child(row);
    }
    let caption = format!("Checks of {} by repetition", result.case);
    words::scroller("scroll", &caption).child(words::table(&caption, &columns).child(body))
}
