//! Outcome of each repetition: the cases at a glance, and the checks of a case.

use std::collections::BTreeSet;

use super::markup::{Element, el};
use super::{Numbered, words};
use crate::report::findings;
use crate::verdict::{CaseResult, CheckResult, Verdict};

/// Names of the repetitions in the order of the results, each once.
pub fn repetitions(result: &CaseResult) -> Vec<&str> {
    let same = |one: &&CheckResult, other: &&CheckResult| one.repetition == other.repetition;
    let groups = findings::alike(&result.checks, same).into_iter();
    groups.map(|of| of[0].repetition.as_str()).collect()
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

/// The worst result of a repetition.
pub fn of_repetition(result: &CaseResult, repetition: &str) -> Verdict {
    let checks = result.checks.iter();
    findings::worst(checks.filter(|check| check.repetition == repetition))
}

/// The table of all cases, a row each.
pub fn cases(cases: &[Numbered<'_>]) -> Element {
    let caption = "Cases and their repetitions";
    let columns = ["case", "verdict", "repetitions, each with its worst check"];
    words::listed(caption, &columns, cases.iter().map(row))
}

fn row(case: &Numbered<'_>) -> Element {
    let result = case.result;
    let names = repetitions(result).into_iter().enumerate();
    let shown = names.filter(|(_, name)| case.shows(name));
    let mut entries: Vec<Element> = shown
        .map(|(index, name)| {
            el("li")
                .child(words::verdict(of_repetition(result, name)))
                .text(" ")
                .child(words::link(case.repetition(index), name))
        })
        .collect();
    if !case.left_out.is_empty() {
        let more = format!("and {} more, named below", case.left_out.len());
        entries.push(el("li").text(more));
    }
    let cell = if entries.is_empty() {
        el("td").text("none")
    } else {
        el("td").child(el("ul").class("repetitions").children(entries))
    };
    words::headed(words::link(case.anchor(), &result.case))
        .child(words::cell(result.verdict))
        .child(cell)
}

/// The table of a case: checks by repetitions.
pub fn of_case(case: &Numbered<'_>) -> Element {
    let result = case.result;
    let mut repetitions = repetitions(result);
    repetitions.retain(|name| case.shows(name));
    let mut columns = vec!["check"];
    columns.extend(&repetitions);
    let checks = findings::by_check(result).into_iter().enumerate();
    let rows = checks.map(|(index, results)| {
        // There are several where it was attempted again.
        let cell = |repetition: &&str| {
            let of = results
                .iter()
                .filter(|found| found.repetition == **repetition);
            let verdicts = of.map(|found| el("div").child(words::verdict(found.verdict)));
            let mut verdicts = verdicts.peekable();
            match verdicts.peek() {
                None => el("td").text("not judged"),
                Some(_) => el("td").children(verdicts),
            }
        };
        words::headed(words::link(case.check(index), &results[0].check))
            .children(repetitions.iter().map(cell))
    });
    let caption = format!("Checks of {} by repetition", result.case);
    words::listed(&caption, &columns, rows)
}
