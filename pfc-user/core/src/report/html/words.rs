//! Words and small parts that several sections share.

use pfc_ebpf::stamp::Phase;

use super::markup::{Element, el};
use crate::case::Verdict;

/// The name of a phase.
pub const fn phase(phase: Phase) -> &'static str {
    match phase {
        Phase::Baseline => "baseline",
        Phase::Storm => "storm",
        Phase::Drain => "drain",
        Phase::Resume => "resume",
        Phase::Probe => "probe",
    }
}

/// A sign for a verdict, beside its word: colour alone tells nothing.
pub const fn sign(verdict: Verdict) -> &'static str {
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

/// A table with a caption and a heading for each column.
pub fn table(caption: &str, columns: &[&str]) -> Element {
    let heading = |column: &&str| el("th").with("scope", "col").text(column);
    let row = el("tr").children(columns.iter().map(heading));
    el("table")
        .child(el("caption").text(caption))
        .child(el("thead").child(row))
}

/// A row whose first cell is its heading.
pub fn row<T: std::fmt::Display>(heading: &str, cells: impl IntoIterator<Item = T>) -> Element {
    let heading = el("th").with("scope", "row").text(heading);
    let cells = cells.into_iter().map(|cell| el("td").text(cell));
    el("tr").child(heading).children(cells)
}

/// A part that opens; `summary` is always shown.
pub fn fold(summary: Element, open: bool) -> Element {
    let fold = el("details");
    let fold = if open { fold.with("open", "") } else { fold };
    fold.child(summary)
}

/// Names and their values.
pub fn pairs<N: AsRef<str>, V: AsRef<str>>(pairs: impl IntoIterator<Item = (N, V)>) -> Element {
    let mut list = el("dl");
    for (name, value) in pairs {
        let pair = el("div")
            .child(el("dt").text(name.as_ref()))
            .child(el("dd").text(value.as_ref()));
        list = list.child(pair);
    }
    list
}

/// Text in a drawing; `anchor` says which end of it is at `x`.
pub fn label(x: f64, y: f64, anchor: &str, text: impl std::fmt::Display) -> Element {
    el("text")
        .with("x", format_args!("{x:.1}"))
        .with("y", format_args!("{y:.1}"))
        .with("text-anchor", anchor)
        .text(text)
}
