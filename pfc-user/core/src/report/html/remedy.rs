//! What would change a verdict that is inconclusive or an error.

use std::collections::BTreeMap;

use super::markup::{Element, el};
use super::{Numbered, words};
use crate::case::{CheckResult, Verdict};

/// What to do where a precondition is not met, by its name.
const REMEDIES: [(&str, &str); 9] = [
    (
        "ports",
        "Keep the links up and unchanged for the whole run, and declare facts.watchdog = \"off\" \
         once the DUT's PFC watchdog is off.",
    ),
    (
        "accounting",
        "Take load off the tester, or give its ports longer rings, until it drops nothing itself.",
    ),
    (
        "baseline",
        "See that every flow reaches the rx port without a storm: VLAN, addresses and DSCP map.",
    ),
    (
        "rate",
        "Lower the rate (traffic.rate) or give the sender a CPU of its own.",
    ),
    (
        "storm-continuity",
        "Give the storm a CPU of its own, with nothing beside it on the machine.",
    ),
    (
        "storm-arrival",
        "Show that the DUT obeys a pause frame on this port: PFC enabled for a lossless priority.",
    ),
    (
        "pfc-visible",
        "Turn off pause handling in the MAC of the tx port, or use a port whose driver counts \
         the frames; `validator check` says what to type.",
    ),
    (
        "honoured",
        "Take load off the tester, so that the sender obeys the DUT's XOFF in time.",
    ),
    (
        "probe-latency",
        "Lower the latency of the path, or raise limits.max_response to what the DUT promises.",
    ),
];

/// A section for all checks that were not decided; `None` where all were.
pub fn section(cases: &[Numbered<'_>]) -> Option<Element> {
    let mut body = el("tbody");
    for case in cases {
        let result = case.result;
        if result.verdict == Verdict::Error && !result.reason.is_empty() {
            let none = "The tester or its surroundings failed; mend that and run the case again.";
            body = body.child(words::row(
                &result.case,
                ["the whole case", &result.reason, none],
            ));
        }
        for (reason, checks) in undecided(&result.checks) {
            let remedy = remedies(case, &reason);
            body = body.child(words::row(&result.case, [checks, reason, remedy]));
        }
    }
    let caption = "What would change an inconclusive or an error";
    (body.len() > 0).then(|| {
        let columns = ["case", "checks", "found", "what would change it"];
        let table = words::table(caption, &columns).child(body);
        el("section")
            .with("id", "undecided")
            .with("aria-labelledby", "undecided-title")
            .child(el("h2").with("id", "undecided-title").text(caption))
            .child(words::scroller("scroll", caption).child(table))
    })
}

/// Reasons of checks that are inconclusive or an error, with the checks that have them.
fn undecided(checks: &[CheckResult]) -> Vec<(String, String)> {
    let mut order: Vec<String> = Vec::new();
    let mut by_reason: BTreeMap<String, BTreeMap<&str, Vec<&str>>> = BTreeMap::new();
    let open =
        |check: &&CheckResult| matches!(check.verdict, Verdict::Inconclusive | Verdict::Error);
    for check in checks.iter().filter(open) {
        let reason = reason(check);
        if !order.contains(&reason) {
            order.push(reason.clone());
        }
        let of = by_reason.entry(reason).or_default();
        of.entry(&check.repetition).or_default().push(&check.check);
    }
    let told = order.into_iter().map(|reason| {
        let of = by_reason[&reason].iter();
        let of = of.map(|(repetition, checks)| format!("{} [{repetition}]", checks.join(", ")));
        let checks = of.collect::<Vec<_>>().join("; ");
        (reason, checks)
    });
    told.collect()
}

/// The reason of a check, or the first comparison that did not pass.
fn reason(check: &CheckResult) -> String {
    if !check.reason.is_empty() {
        return check.reason.clone();
    }
    let open = check.assertions.iter();
    let mut open = open.filter(|assertion| assertion.verdict == check.verdict);
    open.next()
        .map(super::super::text::sentence)
        .unwrap_or_default()
}

/// The remedies of the preconditions that a reason names; else a general one.
fn remedies(case: &Numbered<'_>, reason: &str) -> String {
    let named = REMEDIES.iter().filter(|(name, _)| {
        reason.split("; ").any(|part| {
            part.strip_prefix(name)
                .is_some_and(|rest| rest.starts_with(": "))
        })
    });
    let told: Vec<&str> = named.map(|(_, remedy)| *remedy).collect();
    if !told.is_empty() {
        return told.join(" ");
    }
    let interrupted = reason.contains("interrupted");
    let omitted = case.evidence.is_some_and(|case| {
        let of = case.omitted.iter();
        of.filter(|omitted| !omitted.not_applicable)
            .any(|omitted| omitted.reason == reason)
    });
    if interrupted {
        "Run the case again, to its end.".to_owned()
    } else if omitted {
        "Make the repetition possible, as the reason says, and run the case again.".to_owned()
    } else {
        "Mend what the reason names, and run the case again.".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::cases;

    #[test]
    fn there_is_a_remedy_for_each_precondition_of_the_pfc_cases_and_for_nothing_else() {
        let all = cases::all().into_iter();
        let pfc = all.filter(|case| case.id.starts_with("pfc."));
        let checks = pfc.flat_map(|case| case.checks);
        let named: BTreeSet<&str> = checks
            .flat_map(|check| check.preconditions)
            .copied()
            .collect();
        let known: BTreeSet<&str> = REMEDIES.iter().map(|(name, _)| *name).collect();
        assert_eq!(known, named);
    }
}
