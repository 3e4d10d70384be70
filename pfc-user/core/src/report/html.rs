//! The result to look at: `report.html`, one file that needs no network and no script.
//!
//! All text of evidence is escaped where it enters. The page is well-formed XML, so that any parser
//! reads it.

mod checks;
mod distributions;
mod envelope;
mod expected;
mod failed;
mod ladder;
mod marks;
mod markup;
mod matrix;
mod plot;
mod remedy;
mod repetition;
mod surroundings;
mod timeline;
mod words;

use std::collections::BTreeSet;

use self::markup::{Element, el};
use self::plot::Columns;
use super::{fixed_set, hooks, identity, text};
use crate::cases;
use crate::evidence::{CaseEvidence, Evidence};
use crate::verdict::{Case, CaseResult, Exit, Verdict};

/// Octets that a page may have: a mail server takes it.
pub const LARGEST: usize = 2_000_000;

/// Facts on the page in its head. The policy allows nothing from elsewhere, whatever the page
/// holds.
const METAS: [(&str, &str, &str); 3] = [
    (
        "http-equiv",
        "Content-Security-Policy",
        "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; base-uri \
         'none'; form-action 'none'",
    ),
    ("name", "viewport", "width=device-width, initial-scale=1"),
    ("name", "color-scheme", "light dark"),
];

/// A case with its place in the page.
struct Numbered<'a> {
    index: usize,
    result: &'a CaseResult,
    evidence: Option<&'a CaseEvidence>,
    case: Option<&'static Case>,
    /// Repetitions that are only named, for the page would be too large.
    left_out: BTreeSet<&'a str>,
}

impl Numbered<'_> {
    /// True if the page has more of a repetition than its name.
    fn shows(&self, repetition: &str) -> bool {
        !self.left_out.contains(repetition)
    }

    fn anchor(&self) -> String {
        format!("case-{}", self.index)
    }

    fn check(&self, index: usize) -> String {
        format!("case-{}-check-{index}", self.index)
    }

    fn repetition(&self, index: usize) -> String {
        format!("case-{}-repetition-{index}", self.index)
    }
}

/// Extent to which repetitions are drawn.
#[derive(Clone, Copy)]
struct Detail {
    columns: Columns,
    /// All attempts at a repetition; else the last one alone.
    all_attempts: bool,
    /// Most repetitions of a case; those that did not pass come first.
    most: usize,
}

impl Detail {
    const MOST: Self = Self {
        columns: Columns::FINEST,
        all_attempts: true,
        most: usize::MAX,
    };
    /// Repetitions of a case where not all of them have room: more than any document has.
    const MANY: usize = 32;

    /// Less of it; `None`: there is no less.
    fn less(self) -> Option<Self> {
        if let Some(columns) = self.columns.coarser() {
            return Some(Self { columns, ..self });
        }
        if self.all_attempts {
            return Some(Self {
                columns: Columns::FINEST,
                all_attempts: false,
                ..self
            });
        }
        let most = (self.most / 2).min(Self::MANY);
        (most > 0).then_some(Self { most, ..self })
    }
}

/// Renders the page. Where it would have more octets than [`LARGEST`], drawings are coarser, those
/// of attempts before the last one are left out, and at last whole repetitions, which are named.
pub fn page(evidence: &Evidence, results: &[CaseResult], exit: Exit) -> String {
    let mut detail = Detail::MOST;
    loop {
        let page = page_with(evidence, results, exit, detail);
        if page.len() <= LARGEST {
            return page;
        }
        // No step makes it less than half as large.
        let steps = (page.len() / LARGEST).ilog2().max(1);
        let less = (0..steps).try_fold(detail, |detail, _| detail.less());
        match less.or_else(|| detail.less()) {
            Some(less) => detail = less,
            None => return page,
        }
    }
}

fn page_with(evidence: &Evidence, results: &[CaseResult], exit: Exit, detail: Detail) -> String {
    let known = cases::all();
    let cases = results.iter().enumerate().map(|(index, result)| Numbered {
        index,
        result,
        evidence: evidence.cases.get(index),
        case: known.iter().copied().find(|case| case.id == result.case),
        left_out: matrix::beyond(result, detail.most),
    });
    let cases: Vec<Numbered> = cases.collect();
    let verdict = Verdict::of_parts(results.iter().map(|result| result.verdict));
    let head = el("head")
        .child(el("meta").with("charset", "utf-8"))
        .children(
            METAS.map(|(key, name, content)| el("meta").with(key, name).with("content", content)),
        )
        .child(el("title").text(format_args!("{verdict}: {}", evidence.testbed.name)))
        .child(el("style").verbatim(include_str!("html/style.css")));
    let failed = failed::section(&cases, results);
    let undecided = remedy::undecided(&cases);
    let body = el("body")
        .child(header(evidence, results, exit, verdict))
        .children(failed)
        .child(navigation(&cases, undecided.is_some()))
        .child(main(evidence, &cases, undecided, detail))
        .child(footer(evidence))
        .child(el("script").verbatim(include_str!("html/script.js")));
    let mut out = String::from("<!DOCTYPE html>\n");
    el("html")
        .with("lang", "en")
        .child(head)
        .child(body)
        .write(&mut out);
    out.push('\n');
    out
}

fn header(evidence: &Evidence, results: &[CaseResult], exit: Exit, verdict: Verdict) -> Element {
    let testbed = &evidence.testbed;
    let place = format!(
        "testbed {} ({}), {}, {:.1} s",
        testbed.name,
        testbed.dut,
        identity::rfc3339(evidence.started),
        evidence.seconds
    );
    let not_done = fixed_set::of_run(evidence).and_then(|set| set.sentence());
    let identity = testbed.identity.known().map(|(_, value)| value);
    let identity = identity.collect::<Vec<_>>().join(", ");
    let lines = [
        text::conclusion(results, exit, false).trim_end().into(),
        place,
    ]
    .into_iter()
    .chain(not_done.map(|cases| format!("Not done: {cases}")))
    .chain(hooks::failed_in_run(evidence))
    .chain((!identity.is_empty()).then_some(identity));
    el("header")
        .class(format_args!("banner {verdict}"))
        .child(el("p").class("kind").text("Conformance report"))
        .child(el("h1").child(words::verdict(verdict)))
        .children(lines.map(|line: String| el("p").text(line)))
}

fn navigation(cases: &[Numbered<'_>], undecided: bool) -> Element {
    let link = |target: &str, word: &str| el("li").child(words::link(target, word));
    let cases = cases.iter();
    let list = el("ul")
        .child(link("matrix", "Matrix"))
        .children(undecided.then(|| link("undecided", "Undecided")))
        .children(cases.map(|case| link(&case.anchor(), &case.result.case)))
        .child(link("surroundings", "Testbed and host"));
    el("nav").with("aria-label", "Sections").child(list)
}

/// Note for readers of the printed summary.
const ON_PAPER: &str =
    "A summary. Checks, drawings and counts of every repetition: the page in a browser.";

fn main(
    evidence: &Evidence,
    cases: &[Numbered<'_>],
    undecided: Option<Element>,
    detail: Detail,
) -> Element {
    let titled = |id, title| section(id, el("h2").text(title));
    let surroundings =
        titled("surroundings", "Testbed and host").children(surroundings::of_run(evidence));
    el("main")
        .child(el("p").class("on-paper").text(ON_PAPER))
        .child(titled("matrix", "Matrix").child(matrix::cases(cases)))
        .children(undecided)
        .children(cases.iter().map(|case| of_case(case, detail)))
        .child(surroundings)
}

/// A section with its title.
fn section(id: &str, title: Element) -> Element {
    let heading = format!("{id}-title");
    el("section")
        .with("id", id)
        .with("aria-labelledby", &heading)
        .child(title.with("id", heading))
}

fn of_case(case: &Numbered<'_>, detail: Detail) -> Element {
    let result = case.result;
    let title = el("h2")
        .text(format_args!("{} ", result.case))
        .child(words::verdict(result.verdict));
    let mut section = section(&case.anchor(), title);
    if let Some(known) = case.case {
        section = section
            .child(el("p").text(format_args!("{} ({})", known.title, known.document)))
            .child(el("p").text(known.requirement));
    }
    if !result.reason.is_empty() {
        section = section.child(el("p").class("reason").text(&result.reason));
    }
    let subtitle = |text| el("h3").text(text);
    if !result.checks.is_empty() {
        section = section
            .child(subtitle("Checks by repetition"))
            .child(matrix::of_case(case))
            .child(subtitle("Checks"))
            .children(checks::of_case(case));
    }
    if let Some(assertions) = checks::assertions(case) {
        section = section
            .child(subtitle("Assertions of the document"))
            .child(assertions);
    }
    let repetitions = repetition::of_case(case, detail);
    if !repetitions.is_empty() {
        section = section.child(subtitle("Repetitions")).children(repetitions);
    }
    section
}

fn footer(evidence: &Evidence) -> Element {
    el("footer").child(el("p").text(format_args!(
        "Written by validator {} from evidence of validator {}. report.json beside it has the \
         same for programs.",
        env!("CARGO_PKG_VERSION"),
        evidence.version
    )))
}
