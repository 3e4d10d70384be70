//! One repetition: what was drawn and counted of each attempt at it.

use pfc_ebpf::stamp::Phase;
use pfc_ebpf::units::Priority;

use super::expected::Failed;
use super::markup::{Element, el};
use super::plot::Columns;
use super::{Detail, Numbered, distributions, ladder, matrix, plot, timeline, words};
use crate::cases::attempts::of_attempt;
use crate::evidence::Repetition;
use crate::evidence::hooks::{self, DutCounter};
use crate::evidence::pfc::{FlowReceived, PfcEvidence};
use crate::report::{findings, flows};

/// All repetitions of a case, each in a part that opens.
pub fn of_case(case: &Numbered<'_>, detail: Detail) -> Vec<Element> {
    let mut names = matrix::repetitions(case.result);
    let recorded = case.evidence.iter().flat_map(|case| &case.repetitions);
    let recorded: Vec<&Repetition> = recorded.collect();
    for repetition in &recorded {
        if !names.contains(&repetition.name()) {
            names.push(repetition.name());
        }
    }
    let parts = names.into_iter().enumerate();
    let mut drawn: Vec<Element> = parts
        .filter(|(_, wanted)| case.shows(wanted))
        .map(|(index, wanted)| {
            let attempts = recorded.iter().copied();
            let mut attempts: Vec<_> = attempts.filter(|found| found.name() == wanted).collect();
            attempts.sort_by_key(|attempt| attempt.attempt());
            one(case, index, wanted, &attempts, detail)
        })
        .collect();
    if !case.left_out.is_empty() {
        let names: Vec<&str> = case.left_out.iter().copied().collect();
        let reason = "Left out, for the page would be too large; report.json has them";
        drawn.push(el("p").text(format_args!("{reason}: {}.", names.join("; "))));
    }
    drawn
}

/// Repetitions whose verdict leaves something to do.
fn is_open(case: &Numbered<'_>, name: &str) -> bool {
    findings::is_open(matrix::of_repetition(case.result, name))
}

fn one(
    case: &Numbered<'_>,
    index: usize,
    name: &str,
    attempts: &[&Repetition],
    detail: Detail,
) -> Element {
    let verdict = matrix::of_repetition(case.result, name);
    let summary = el("summary")
        .child(words::verdict(verdict))
        .text(" ")
        .child(el("strong").text(name));
    let names = matrix::repetitions(case.result);
    let first = names.into_iter().find(|name| is_open(case, name));
    let class = match first == Some(name) {
        true => "repetition printed",
        false => "repetition",
    };
    let mut part = words::fold(summary, findings::is_open(verdict))
        .class(class)
        .with("id", case.repetition(index));
    let omitted = case.evidence.iter().flat_map(|case| &case.omitted);
    for omitted in omitted.filter(|omitted| omitted.name == name) {
        part = part.child(el("p").text(format_args!("not done: {}", omitted.reason)));
    }
    for (index, attempt) in attempts.iter().enumerate() {
        let title = if attempts.len() > 1 {
            let number = attempt.attempt();
            part = part.child(el("h4").text(format_args!("attempt {number}")));
            format!("{} [{name}], attempt {number}", case.result.case)
        } else {
            format!("{} [{name}]", case.result.case)
        };
        let columns =
            (detail.all_attempts || index + 1 == attempts.len()).then_some(detail.columns);
        part = part.children(recorded(case, attempt, &title, columns));
        if columns.is_some() {
            part = part.children(figures(case, &of_attempt(name, attempt.attempt())));
        }
    }
    part.children(figures(case, name))
        .children(steps(case, name))
}

/// The drawings and counts of an attempt; without columns no drawings.
fn recorded(
    case: &Numbered<'_>,
    repetition: &Repetition,
    title: &str,
    columns: Option<Columns>,
) -> Vec<Element> {
    match (repetition, columns) {
        (Repetition::Pfc(e), None) => {
            let reason = "Not drawn: the page would be too large for an e-mail. Its figures are in \
                          report.json, its counts in evidence.json.";
            let not_drawn = el("p").text(reason);
            [not_drawn].into_iter().chain(own_losses(e)).collect()
        }
        (Repetition::Pfc(e), Some(columns)) => {
            let distributions = distributions::draw(e, title);
            let distributions = (!distributions.is_empty())
                .then(|| el("div").class("distributions").children(distributions));
            let failed = Failed::in_attempt(case.result, &e.plan.name, e.attempt);
            let drawn = timeline::draw(e, &failed, title, columns);
            drawn
                .into_iter()
                .chain([flows(e), counts(e, title)])
                .chain(distributions)
                .chain(own_losses(e))
                .chain(dut_counters(e, title))
                .collect()
        }
        (Repetition::Mad(e), _) => ladder::mad(e, case.result, title).into_iter().collect(),
        (Repetition::Rc(e), _) => ladder::rc(e, case.result, title).into_iter().collect(),
    }
}

/// A table of numbers in a part that opens.
fn numbers(summary: &str, caption: &str, columns: &[&str], rows: Vec<Element>) -> Element {
    let table = words::table(caption, columns)
        .class("numbers")
        .child(el("tbody").children(rows));
    words::folded(summary, words::scroller("scroll", caption).child(table))
}

/// Flows as planned.
fn flows(e: &PfcEvidence) -> Element {
    words::pairs(flows::by_role(&e.plan, e.limits.line_rate))
}

/// Frames by phase and priority: what the time line shows, in numbers.
fn counts(e: &PfcEvidence, title: &str) -> Element {
    let columns = [
        "phase and priority",
        "sent",
        "received",
        "lost",
        "duplicate",
        "reordered",
        "corrupt",
        "re-marked",
        "longest latency",
    ];
    let mut rows = Vec::new();
    for span in &e.phases {
        for priority in Priority::all() {
            let (sent, received) = timeline::frames(e, priority, span.phase);
            if sent > 0 || received > 0 {
                rows.push(count(e, priority, span.phase, sent, received));
            }
        }
    }
    let caption = format!("Frames of {title}");
    numbers("frames by phase and priority", &caption, &columns, rows)
}

fn count(e: &PfcEvidence, priority: Priority, phase: Phase, sent: u64, received: u64) -> Element {
    let flows = e.plan.flows.iter();
    let of = flows.filter(|flow| flow.priority == priority);
    let found: Vec<&FlowReceived> = of.filter_map(|flow| e.received(flow.id, phase)).collect();
    let sum = |field: fn(&FlowReceived) -> u64| {
        let fields = found.iter().map(|flow| field(flow));
        plot::count(fields.fold(0, u64::saturating_add))
    };
    let latency = found.iter().map(|flow| flow.latency_max).max();
    let cells = [
        plot::count(sent),
        plot::count(received),
        plot::count(sent.saturating_sub(received)),
        sum(|flow| flow.duplicate),
        sum(|flow| flow.reordered),
        sum(|flow| flow.corrupt),
        sum(|flow| flow.remarked),
        latency.map_or(String::new(), plot::time),
    ];
    words::row(
        &format!("{}, {priority}", words::phase(&e.plan, phase)),
        cells,
    )
}

/// The DUT's counters that changed, by the hook `counters`.
fn dut_counters(e: &PfcEvidence, title: &str) -> Option<Element> {
    let row = |counter: DutCounter| {
        let [before, after] = [counter.before, counter.after].map(plot::count);
        words::row(&counter.counter, [before, after, counter.change()])
    };
    let rows: Vec<Element> = hooks::changes(&e.hooks).into_iter().map(row).collect();
    let summary = "counters of the DUT that changed";
    let caption = format!("Counters of the DUT in {title}");
    let columns = ["counter of the DUT", "before", "after", "change"];
    (!rows.is_empty()).then(|| numbers(summary, &caption, &columns, rows))
}

/// Frames that the tester's own side lost, where it lost some.
fn own_losses(e: &PfcEvidence) -> Option<Element> {
    let risen = e.accounting.iter().filter(|counter| counter.rise > 0);
    let lost: Vec<String> = risen
        .map(|counter| format!("{} {} +{}", counter.place, counter.counter, counter.rise))
        .collect();
    let lost = lost.join("; ");
    (!lost.is_empty()).then(|| el("p").text(format_args!("Lost on the tester's own side: {lost}")))
}

/// Figures that are reported and not judged: those of the last attempt have the repetition's name.
fn figures(case: &Numbered<'_>, name: &str) -> Option<Element> {
    let figures = case.result.figures.iter();
    let rows = figures
        .filter(|figure| figure.repetition == name)
        .map(|figure| words::row(&figure.name, [&figure.value]))
        .collect();
    let caption = format!("Figures of {} [{name}]", case.result.case);
    words::some_listed(&caption, &["figure", "value"], rows)
}

/// Steps of the document.
fn steps(case: &Numbered<'_>, name: &str) -> Option<Element> {
    let steps = case.result.steps.iter();
    let rows = steps
        .filter(|step| step.repetition == name)
        .map(|step| {
            words::row(&step.step, [&step.what, &step.found]).child(words::cell(step.verdict))
        })
        .collect();
    let caption = format!("Steps of {} [{name}]", case.result.case);
    let columns = ["step", "what the document asks", "found", "verdict"];
    let listed = words::some_listed(&caption, &columns, rows)?;
    Some(words::folded("steps of the document", listed))
}
