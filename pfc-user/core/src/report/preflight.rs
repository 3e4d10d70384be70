//! Facts found on the ports before a run: a table for people, and JSON.

use std::io::{self, Write};

use serde::Serialize;

use super::layout::verdict_paragraph;
use super::plain;
use crate::evidence::Testbed;
use crate::evidence::preflight::{Port, Preflight, UnfitCase, Way};
use crate::preflight::{Item, State, judge, ok, problem, worst};
use crate::verdict::{Exit, Verdict};

/// Schema version of the JSON.
pub const SCHEMA: u32 = 1;

/// Returns the exit code: 0 without a problem, 1 with one, 3 if something is unknown.
pub fn exit(preflight: &Preflight) -> Exit {
    match worst(preflight) {
        State::Ok => Exit::Passed,
        State::Problem => Exit::Failed,
        State::Unknown => Exit::Undecided,
    }
}

pub(super) fn word(state: State) -> (&'static str, Verdict) {
    match state {
        State::Ok => ("ok", Verdict::Pass),
        State::Problem => ("problem", Verdict::Fail),
        State::Unknown => ("unknown", Verdict::Inconclusive),
    }
}

/// Names a port's role and place, such as `tx: eth1 in network namespace lab`.
fn title(port: &Port) -> String {
    let place = port.facts.namespace.as_ref().map_or(String::new(), |name| {
        format!(" in network namespace {name}")
    });
    format!("{}: {}{place}", port.role.word(), port.facts.interface)
}

/// Renders the table.
pub fn text(testbed: &Testbed, preflight: &Preflight, colour: bool) -> String {
    let heading = format!("testbed {} ({})", testbed.name, testbed.dut);
    let mut out = plain::text(&heading) + "\n";
    let judged = judge(preflight);
    let width = judged
        .iter()
        .flatten()
        .map(|item| item.what.len())
        .max()
        .unwrap_or(0);
    for (port, items) in preflight.ports.iter().zip(&judged) {
        out += &format!("\n{}\n", plain::text(&title(port)));
        for item in items {
            table_row(&mut out, item, width, colour);
        }
    }
    let ways: Vec<Item> = preflight.ways.iter().map(of_way).collect();
    let unfit: Vec<Item> = preflight.unfit.iter().map(of_plan).collect();
    if preflight.ports.is_empty() && ways.is_empty() {
        out +=
            "\nno port of this testbed carries frames of the tester; there is nothing to look at\n";
    }
    for (way, item) in preflight.ways.iter().zip(&ways) {
        out += &format!("\n{}: {}\n", way.table, plain::text(&way.place));
        table_row(&mut out, item, width, colour);
    }
    if !unfit.is_empty() {
        out += "\nplan\n";
    }
    for item in &unfit {
        table_row(&mut out, item, width, colour);
    }
    let all = || judged.iter().flatten().chain(&ways).chain(&unfit);
    let count = |state| all().filter(|item| item.state == state).count();
    out + &format!(
        "\n{} problems, {} unknown (exit code {})\n",
        count(State::Problem),
        count(State::Unknown),
        exit(preflight) as u8
    )
}

fn of_way(way: &Way) -> Item {
    match &way.error {
        Some(error) => problem(error, "", ""),
        None => ok(way.usable),
    }
    .named(way.what)
}

fn of_plan(unfit: &UnfitCase) -> Item {
    let found = format!("{}: {}", unfit.case, unfit.reason);
    problem(found, "", &unfit.remedy).named("case")
}

fn table_row(out: &mut String, item: &Item, width: usize, colour: bool) {
    let (word, verdict) = word(item.state);
    let found = if item.expected.is_empty() {
        item.found.clone()
    } else {
        format!("{}; expected: {}", item.found, item.expected)
    };
    let lead = format!("  {word:7}  {:width$}  ", item.what);
    verdict_paragraph(out, &lead, (word, verdict, colour), &plain::text(&found));
    if !item.mend.is_empty() {
        // Kept on one line, to be copied.
        let mend = plain::text(&item.mend);
        out.push_str(&format!("  {:7}  {:width$}  -> {mend}\n", "", ""));
    }
}

/// Lists the problems, one line each, for notes and the report of a run.
pub fn shortfalls(preflight: &Preflight) -> Vec<String> {
    let mut lines = Vec::new();
    for (port, items) in preflight.ports.iter().zip(judge(preflight)) {
        for item in items {
            if item.state != State::Problem {
                continue;
            }
            let Item {
                what,
                found,
                expected,
                ..
            } = item;
            let mut line = format!("{}: {what}: {found}; expected: {expected}", title(port));
            if !item.mend.is_empty() {
                line += &format!(" -> {}", item.mend);
            }
            lines.push(line);
        }
    }
    lines
}

/// A port with its judgement.
#[derive(Serialize)]
pub(super) struct Judged<'a> {
    #[serde(flatten)]
    port: &'a Port,
    items: Vec<Item>,
}

/// All ports, for JSON.
pub(super) fn ports(preflight: &Preflight) -> Vec<Judged<'_>> {
    let ports = preflight.ports.iter().zip(judge(preflight));
    ports.map(|(port, items)| Judged { port, items }).collect()
}

/// Writes the same facts as JSON, with what killed runs left changed, in words.
pub fn json(
    mut out: impl Write,
    testbed: &Testbed,
    preflight: &Preflight,
    left: &[String],
) -> io::Result<()> {
    #[derive(Serialize)]
    struct Report<'a> {
        schema: u32,
        version: &'static str,
        testbed: &'a Testbed,
        state: State,
        exit_code: u8,
        ports: Vec<Judged<'a>>,
        ways: &'a [Way],
        plan: &'a [UnfitCase],
        left: &'a [String],
    }
    let report = Report {
        schema: SCHEMA,
        version: env!("CARGO_PKG_VERSION"),
        testbed,
        state: worst(preflight),
        exit_code: exit(preflight) as u8,
        ports: ports(preflight),
        ways: &preflight.ways,
        plan: &preflight.unfit,
        left,
    };
    serde_json::to_writer_pretty(&mut out, &report)?;
    out.write_all(b"\n")
}
