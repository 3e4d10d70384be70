//! Words and small parts that several sections share.

use std::fmt::Display;

use pfc_ebpf::stamp::Phase;

use super::markup::{Element, el};
use crate::plan::RepetitionPlan;
use crate::verdict::Verdict;

/// The name of a phase of that plan.
pub const fn phase(plan: &RepetitionPlan, phase: Phase) -> &'static str {
    match phase {
        Phase::Baseline => "baseline",
        Phase::Storm if plan.storm.is_none() => "traffic",
        Phase::Storm => "storm",
        Phase::Drain => "drain",
        Phase::Resume => "resume",
        Phase::Probe => "probe",
    }
}

/// A sign for a verdict, beside its word: colour alone tells nothing.
const fn sign(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Pass => "\u{2713}",
        Verdict::Fail => "\u{2717}",
        Verdict::Inconclusive => "?",
        Verdict::Error => "!",
        Verdict::NotApplicable => "\u{2013}",
        Verdict::Skipped => "\u{00bb}",
    }
}

/// Sign and word of a verdict.
pub fn verdict(verdict: Verdict) -> Element {
    let sign = el("span").with("aria-hidden", "true").text(sign(verdict));
    el("span")
        .class(format_args!("verdict {verdict}"))
        .child(sign)
        .text(format_args!(" {verdict}"))
}

/// A part that scrolls sideways by itself where the page is narrow; the keyboard reaches it.
pub fn scroller(class: &str, label: &str) -> Element {
    el("div")
        .class(class)
        .with("role", "group")
        .with("aria-label", label)
        .with("tabindex", "0")
}

/// A link to a part of the page.
pub fn link(anchor: impl Display, text: impl Display) -> Element {
    el("a").with("href", format_args!("#{anchor}")).text(text)
}

/// A table with a caption and a heading for each column.
pub fn table(caption: &str, columns: &[&str]) -> Element {
    let heading = |column: &&str| el("th").with("scope", "col").text(column);
    let row = el("tr").children(columns.iter().map(heading));
    el("table")
        .child(el("caption").text(caption))
        .child(el("thead").child(row))
}

/// A table with these rows, in a part that scrolls.
pub fn listed(caption: &str, columns: &[&str], rows: impl IntoIterator<Item = Element>) -> Element {
    let table = table(caption, columns).child(el("tbody").children(rows));
    scroller("scroll", caption).child(table)
}

/// Such a table; `None` without rows.
pub fn some_listed(caption: &str, columns: &[&str], rows: Vec<Element>) -> Option<Element> {
    (!rows.is_empty()).then(|| listed(caption, columns, rows))
}

/// A row without cells but its heading.
pub fn headed(heading: Element) -> Element {
    el("tr").child(el("th").with("scope", "row").child(heading))
}

/// A row whose first cell is its heading.
pub fn row<T: Display>(heading: &str, cells: impl IntoIterator<Item = T>) -> Element {
    let heading = el("th").with("scope", "row").text(heading);
    let cells = cells.into_iter().map(|cell| el("td").text(cell));
    el("tr").child(heading).children(cells)
}

/// A cell with a verdict.
pub fn cell(verdict: Verdict) -> Element {
    el("td").child(self::verdict(verdict))
}

/// A part that opens; `summary` is always shown.
pub fn fold(summary: Element, open: bool) -> Element {
    let fold = el("details");
    let fold = if open { fold.with("open", "") } else { fold };
    fold.child(summary)
}

/// A part that opens, and is closed at first.
pub fn folded(summary: &str, part: Element) -> Element {
    fold(el("summary").text(summary), false).child(part)
}

/// Names and their values.
pub fn pairs<N: AsRef<str>, V: AsRef<str>>(pairs: impl IntoIterator<Item = (N, V)>) -> Element {
    let pair = |(name, value): (N, V)| {
        el("div")
            .child(el("dt").text(name.as_ref()))
            .child(el("dd").text(value.as_ref()))
    };
    el("dl").children(pairs.into_iter().map(pair))
}

/// A drawing with its description, and the corner and size of what it shows.
pub fn drawing(class: &str, about: &str, view_box: impl Display) -> Element {
    el("svg")
        .class(class)
        .with("role", "img")
        .with("aria-label", about)
        .with("viewBox", view_box)
}

/// A line or area in a drawing.
pub fn path(class: impl Display, d: impl Display) -> Element {
    el("path").class(class).with("d", d)
}

/// Text in a drawing; `anchor` says which end of it is at `x`.
pub fn label(x: f64, y: f64, anchor: &str, text: impl Display) -> Element {
    el("text")
        .with("x", format_args!("{x:.1}"))
        .with("y", format_args!("{y:.1}"))
        .with("text-anchor", anchor)
        .text(text)
}
