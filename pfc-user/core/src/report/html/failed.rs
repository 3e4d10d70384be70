//! List of failures, before everything else: a line each, which leads to the check.

use super::markup::{Element, el};
use super::{Numbered, words};
use crate::report::findings::{self, Finding};
use crate::verdict::{CaseResult, Verdict};

/// Most lines; the matrix has the rest.
const SHOWN: usize = 40;

/// The list; `None` where nothing failed. What is undecided has a section of its own.
pub fn section(cases: &[Numbered<'_>], results: &[CaseResult]) -> Option<Element> {
    let mut found = findings::open(results);
    found.retain(|finding| finding.verdict != Verdict::Inconclusive);
    if found.is_empty() {
        return None;
    }
    let lines = found.iter().take(SHOWN).map(|finding| {
        el("li")
            .child(words::verdict(finding.verdict))
            .text(" ")
            .child(words::link(target(cases, finding), &finding.title))
            .text(format_args!(": {}", finding.found))
    });
    let mut list = el("ul").class("failed").children(lines);
    if found.len() > SHOWN {
        let more = format!("and {} more: the matrix", found.len() - SHOWN);
        list = list.child(el("li").child(words::link("matrix", more)));
    }
    Some(
        el("section")
            .with("id", "failed")
            .with("aria-label", "What failed")
            .child(list),
    )
}

/// Anchor of the check, or of the case.
fn target(cases: &[Numbered<'_>], finding: &Finding<'_>) -> String {
    let case = &cases[finding.index];
    let mut checks = findings::by_check(case.result).into_iter();
    match checks.position(|of| Some(of[0].check.as_str()) == finding.check) {
        Some(check) => case.check(check),
        None => case.anchor(),
    }
}
