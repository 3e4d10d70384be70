//! Remedies for verdicts that are inconclusive or an error.

use super::markup::{Element, el};
use super::{Numbered, section, words};
use crate::cases::attempts;
use crate::report::{REPORT, findings};
use crate::verdict::{CheckResult, Verdict};

/// Remedies for preconditions of all families that are not met, by the precondition's name.
const REMEDIES: [(&str, &str); 17] = [
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
        "Send fewer frames a second, by longer ones (traffic.frame of the plan) or a lower \
         limits.load, or give the sender a CPU of its own.",
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
        "own-storm",
        "Have the MAC of the tx port pass pause frames on, such as by `ethtool -K DEV rx-all on`, \
         or keep the DUT from forwarding them.",
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
    (
        "m-key",
        "Set mad.m_key_current of the testbed to the DUT's M_Key, or take its M_Key away.",
    ),
    (
        "qualifier",
        "Say by rc.apm of the testbed whether the DUT supports Automatic Path Migration.",
    ),
    (
        "neighbour",
        "See that the DUT reaches the tester's address (rc.address of the testbed): the link is \
         up, and the DUT's address is in the same subnet.",
    ),
    (
        "path",
        "See that the DUT's port is at the other end of the tester's port, and unload the RDMA \
         driver of the tester's adapter.",
    ),
    (
        "attributes",
        "Have the DUT's driver take the queue pair's attributes as asked, or plan those that it \
         takes (queue_pairs of the plan).",
    ),
    (
        "records",
        "Take load off the tester, until it keeps a record of each packet.",
    ),
    (
        "drops",
        "Take load off the tester's port: end other traffic on it, or give it longer rings.",
    ),
];

/// Remedies by words of a reason, for checks whose reason names no precondition.
const BY_WORDS: [(&[&str], &str); 9] = [
    (
        &[
            "nothing was asked",
            "nothing was answered",
            "not asked",
            "not reached",
            "not read",
            "not tried",
        ],
        "Mend what ended the case before: it stands in another row.",
    ),
    (
        &["stood still"],
        "Take load off the machine of the simulated DUT, or give it a CPU of its own.",
    ),
    (
        &["Initialized, Armed or Active"],
        "Bring both ends of the link up: a subnet manager sets their state to Active; end it \
         before the run.",
    ),
    (
        &["`timeout` of the testbed"],
        "Set mad.timeout of the testbed to longer than the DUT takes to answer.",
    ),
    (
        &["BUSY"],
        "Let the DUT's agent come to rest: end what else asks it, such as a subnet manager.",
    ),
    (
        &["other requests were lost"],
        "See that nothing else sends on VL15 of this link, and run the case again.",
    ),
    (
        &["no answer", "can be reached by", "none to anything"],
        "See that the DUT can be reached by mad.path of the testbed, as with `smpquery nodeinfo`, \
         and that mad.m_key_current is the DUT's M_Key.",
    ),
    (
        &["apm = "],
        "Say by rc.apm of the testbed whether the DUT supports Automatic Path Migration.",
    ),
    (
        &["come in late"],
        "Take load off the tester, or use a longer transport timer (queue_pairs of the plan).",
    ),
];

/// Remedy where nothing more is known of the cause.
const OTHER: &str = "Mend what is found, and run the case again.";

/// Most causes that are shown.
const SHOWN: usize = 60;

/// Cause that left results of a case undecided.
struct Cause<'a> {
    found: String,
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
        body = body.child(words::row(&alike[0].found, [alike[0].remedy, &touched]));
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
        let mut add = |found: &str, remedy, results| {
            causes.push(Cause {
                found: found.to_owned(),
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
                for part in parts(attempts::reason_alone(&reason(check))) {
                    add(part, remedy(case, part), 1);
                }
            }
        }
    }
    findings::alike(causes, |one, other| one.found == other.found)
}

/// The reason of a check, or the first comparison that was not decided.
fn reason(check: &CheckResult) -> String {
    if !check.reason.is_empty() {
        return check.reason.clone();
    }
    let mut open = check.assertions.iter();
    let open = open.find(|assertion| assertion.verdict == check.verdict);
    open.map(findings::sentence)
        .unwrap_or_else(|| "no reason is known".to_owned())
}

/// The parts of a reason, each of which begins with the name of a precondition; else all of it.
fn parts(reason: &str) -> Vec<&str> {
    let named = |text: &str| {
        let name = text.split_once(": ").map(|(name, _)| name);
        REMEDIES.iter().any(|(known, _)| Some(*known) == name)
    };
    let mut parts = Vec::new();
    let mut begin = 0;
    for (at, separator) in reason.match_indices("; ") {
        let next = at + separator.len();
        if named(&reason[next..]) {
            parts.push(&reason[begin..at]);
            begin = next;
        }
    }
    parts.push(&reason[begin..]);
    parts
}

/// The remedy of the precondition that a part of a reason names; else a general one.
fn remedy(case: &Numbered<'_>, part: &str) -> &'static str {
    let name = part.split(": ").next().unwrap_or_default();
    if let Some((_, remedy)) = REMEDIES.iter().find(|(known, _)| *known == name) {
        return remedy;
    }
    let mut omitted = case.evidence.iter().flat_map(|case| &case.omitted);
    if omitted.any(|omitted| !omitted.not_applicable && omitted.reason == part) {
        return "Make the repetition possible, as it says, and run the case again.";
    }
    if part.contains("interrupted") {
        return "Run the case again, to its end.";
    }
    let names = |(all, _): &&(&[&str], _)| all.iter().any(|words| part.contains(words));
    BY_WORDS
        .iter()
        .find(names)
        .map_or(OTHER, |(_, remedy)| remedy)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::cases;

    /// The precondition whose reasons are those of a check, of which each has a remedy of its own.
    const BY_ITS_REASON: &str = "port-state";

    #[test]
    fn a_reason_is_divided_at_preconditions_alone() {
        let reason = "ports: no carrier; declare it; rate: too low; accounting: lost; 5";
        assert_eq!(
            parts(reason),
            [
                "ports: no carrier; declare it",
                "rate: too low",
                "accounting: lost; 5"
            ]
        );
        assert_eq!(parts("a; b"), ["a; b"]);
    }

    #[test]
    fn there_is_a_remedy_for_each_precondition_of_all_cases_and_for_nothing_else() {
        let all = cases::all().into_iter();
        let checks = all.flat_map(|case| case.checks);
        let named: BTreeSet<&str> = checks
            .flat_map(|check| check.preconditions)
            .copied()
            .collect();
        let known = REMEDIES.iter().map(|(name, _)| *name);
        let known: BTreeSet<&str> = known.chain([BY_ITS_REASON]).collect();
        assert_eq!(known, named);
    }
}
