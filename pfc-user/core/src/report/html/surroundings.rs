//! Where the run took place: testbed, host and versions, and the facts found on the ports.

use super::markup::{Element, el};
use super::words;
use crate::evidence::Evidence;
use crate::evidence::preflight::Preflight;
use crate::preflight::{self, State};
use crate::report::identity;

/// Testbed, host and versions.
pub fn of_run(evidence: &Evidence) -> Vec<Element> {
    let facts = words::pairs(identity::of(evidence));
    let file = |what: &str, text: &str| {
        let name = format!("file of the {what}");
        let file = words::scroller("scroll", &name).child(el("pre").text(text));
        words::fold(el("summary").text(&name), false).child(file)
    };
    let testbed = file("testbed", &evidence.testbed.toml);
    let plan = &evidence.invocation.toml;
    let plan = (!plan.is_empty()).then(|| file("plan", plan));
    let ports = evidence.preflight.as_ref().map(ports);
    let all = [facts, testbed].into_iter();
    all.chain(plan).chain(ports).collect()
}

/// The facts that were found on the ports before the run.
fn ports(found: &Preflight) -> Element {
    let columns = [
        "port and subject",
        "state",
        "found",
        "expected",
        "to mend it",
    ];
    let mut body = el("tbody");
    let judged = found.ports.iter().zip(preflight::judge(found));
    for (port, items) in judged {
        for item in items {
            let state = match item.state {
                State::Ok => "ok",
                State::Problem => "problem",
                State::Unknown => "unknown",
            };
            let subject = format!(
                "{} {}: {}",
                port.role.word(),
                port.facts.interface,
                item.what
            );
            let cells = [state.to_owned(), item.found, item.expected, item.mend];
            body = body.child(words::row(&subject, cells));
        }
    }
    let caption = "Ports before the run";
    words::scroller("scroll ports", caption).child(words::table(caption, &columns).child(body))
}
