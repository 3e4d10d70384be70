//! Causes of verdicts that are inconclusive or an error, with their remedies.

use super::markup::{Element, el};
use super::{Numbered, section, words};
use crate::cases::remedy::OTHER;
use crate::report::{REPORT, findings};
use crate::verdict::Verdict;

/// Most causes that are shown.
const SHOWN: usize = 60;

/// Cause that left results of a case undecided.
struct Cause<'a> {
    found: &'a str,
    remedy: &'static str,
    case: &'a str,
    /// Number of results; none where the whole case ended so.
    results: usize,
}

/// A section for all checks that were not decided; `None` where all were.
pub fn undecided(cases: &[Numbered<'_>]) -> Option<Element> {
    let causes = causes(cases);
    if causes.is_empty() {
        return None;
    }
    let mut body = el("tbody");
    for alike in causes.iter().take(SHOWN) {
        let by_case = findings::alike(alike, |one, other| one.case == other.case);
        let touched = by_case.iter().map(|of| {
            let case = of[0].case;
            match of.iter().map(|cause| cause.results).sum() {
                0 => case.to_owned(),
                1 => format!("{case} (1 result)"),
                results => format!("{case} ({results} results)"),
            }
        });
        let touched = touched.collect::<Vec<_>>().join(", ");
        body = body.child(words::row(alike[0].found, [alike[0].remedy, &touched]));
    }
    if causes.len() > SHOWN {
        let more = format!("and {} more: {REPORT}", causes.len() - SHOWN);
        body = body.child(words::row(&more, ["", ""]));
    }
    let caption = "What would change an inconclusive or an error";
    let columns = ["found", "what would change it", "touches"];
    let table = words::table("Causes, each with a remedy", &columns).child(body);
    let listed = words::scroller("scroll", caption).child(table);
    Some(section("undecided", el("h2").text(caption)).child(listed))
}

/// The causes of what is inconclusive or an error, in the order of the results; equal ones
/// together.
fn causes<'a>(cases: &[Numbered<'a>]) -> Vec<Vec<Cause<'a>>> {
    let mut causes = Vec::new();
    for case in cases {
        let result = case.result;
        let mut add = |found: &'a str, remedy, results| {
            causes.push(Cause {
                found,
                remedy,
                case: &result.case,
                results,
            });
        };
        if result.verdict == Verdict::Error && !result.reason.is_empty() {
            add(&result.reason, OTHER, 0);
        }
        for check in &result.checks {
            if matches!(check.verdict, Verdict::Inconclusive | Verdict::Error) {
                for cause in &check.causes {
                    add(&cause.found, cause.remedy, 1);
                }
            }
        }
    }
    findings::alike(causes, |one, other| {
        (one.found, one.remedy) == (other.found, other.remedy)
    })
}
