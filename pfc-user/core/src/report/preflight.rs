//! Facts found on the ports before a run: a table for people, and JSON.

use std::io::{self, Write};

use serde::Serialize;

use super::layout::{paint, paragraph};
use super::plain;
use crate::case::{Exit, Verdict};
use crate::evidence::Testbed;
use crate::evidence::preflight::{Port, Preflight, UnfitCase, Way};
use crate::preflight::{Item, State, judge, worst};

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

fn word(state: State) -> (&'static str, Verdict) {
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
    let ways = preflight.ways.iter().map(of_way);
    let ways: Vec<(&Way, Item)> = preflight.ways.iter().zip(ways).collect();
    if preflight.ports.is_empty() && ways.is_empty() {
        out +=
            "\nno port of this testbed carries frames of the tester; there is nothing to look at\n";
    }
    for (way, item) in &ways {
        out += &format!("\n{}: {}\n", way.table, plain::text(&way.place));
        table_row(&mut out, item, width, colour);
    }
    if !preflight.unfit.is_empty() {
        out += "\nplan\n";
    }
    for unfit in &preflight.unfit {
        table_row(&mut out, &of_plan(unfit), width, colour);
    }
    let count = |state| {
        let items = judged.iter().flatten();
        items.filter(|item| item.state == state).count()
    };
    let exit = exit(preflight);
    out + &format!(
        "\n{} problems, {} unknown (exit code {})\n",
        count(State::Problem) + preflight.unfit.len() + no_ways(&ways),
        count(State::Unknown),
        exit as u8
    )
}

fn no_ways(ways: &[(&Way, Item)]) -> usize {
    let wrong = ways.iter().filter(|(_, item)| item.state == State::Problem);
    wrong.count()
}

fn of_way(way: &Way) -> Item {
    let (state, found) = match &way.error {
        Some(error) => (State::Problem, error.clone()),
        None => (State::Ok, way.usable.to_owned()),
    };
    Item {
        what: way.what,
        state,
        found,
        expected: String::new(),
        mend: String::new(),
        fix: None,
    }
}

fn of_plan(unfit: &UnfitCase) -> Item {
    Item {
        what: "case",
        state: State::Problem,
        found: format!("{}: {}", unfit.case, unfit.reason),
        expected: String::new(),
        mend: unfit.remedy.clone(),
        fix: None,
    }
}

fn table_row(out: &mut String, item: &Item, width: usize, colour: bool) {
    let (word, verdict) = word(item.state);
    let found = if item.expected.is_empty() {
        item.found.clone()
    } else {
        format!("{}; expected: {}", item.found, item.expected)
    };
    let mut row = String::new();
    paragraph(
        &mut row,
        &format!("  {word:7}  {:width$}  ", item.what),
        &plain::text(&found),
    );
    out.push_str(&row.replacen(word, &paint(word, verdict, colour), 1));
    if !item.mend.is_empty() {
        // Kept on one line, to be copied.
        let mend = plain::text(&item.mend);
        out.push_str(&format!("  {:7}  {:width$}  -> {mend}\n", "", ""));
    }
}

/// Lists the problems, one line each, for notes and the report of a run.
pub fn shortfalls(preflight: &Preflight) -> Vec<String> {
    let lines = preflight
        .ports
        .iter()
        .zip(judge(preflight))
        .flat_map(|(port, items)| {
            let bad = items
                .into_iter()
                .filter(|item| item.state == State::Problem);
            bad.map(move |item| {
                let mend = if item.mend.is_empty() {
                    String::new()
                } else {
                    format!(" -> {}", item.mend)
                };
                format!(
                    "{}: {}: {}; expected: {}{mend}",
                    title(port),
                    item.what,
                    item.found,
                    item.expected
                )
            })
        });
    lines.collect()
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
    preflight
        .ports
        .iter()
        .zip(judge(preflight))
        .map(|(port, items)| Judged { port, items })
        .collect()
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
