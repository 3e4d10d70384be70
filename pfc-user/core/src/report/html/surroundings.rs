//! Place of the run: testbed, host and versions, and the facts found on the ports.

use super::markup::{Element, el};
use super::words;
use crate::evidence::Evidence;
use crate::evidence::preflight::Preflight;
use crate::preflight;
use crate::report::identity;
use crate::report::preflight::word;

/// Testbed, host and versions.
pub fn of_run(evidence: &Evidence) -> Vec<Element> {
    let facts = words::pairs(identity::of(evidence));
    let file = |what: &str, text: &str| {
        let name = format!("file of the {what}");
        let file = words::scroller("scroll", &name).child(el("pre").text(text));
        words::folded(&name, file)
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
    for (port, items) in found.ports.iter().zip(preflight::judge(found)) {
        let place = format!("{} {}", port.role.word(), port.facts.interface);
        body = body.children(items.into_iter().map(|item| {
            let state = word(item.state).0.to_owned();
            let cells = [state, item.found, item.expected, item.mend];
            words::row(&format!("{place}: {}", item.what), cells)
        }));
    }
    let caption = "Ports before the run";
    words::scroller("scroll ports", caption).child(words::table(caption, &columns).child(body))
}
