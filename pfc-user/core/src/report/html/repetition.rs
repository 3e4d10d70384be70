//! One repetition: what was drawn and counted of each attempt at it.

use pfc_ebpf::stamp::Phase;
use pfc_ebpf::units::Priority;

use super::columns::Columns;
use super::expected::Failed;
use super::markup::{Element, el};
use super::{Detail, Numbered, distributions, ladder, matrix, plot, timeline, words};
use crate::case::Verdict;
use crate::cases::attempts::of_attempt;
use crate::evidence::Repetition;
use crate::evidence::hooks;
use crate::evidence::pfc::{FlowReceived, PfcEvidence};
use crate::report::flows;

/// Name of the repetition.
fn name(repetition: &Repetition) -> &str {
    match repetition {
        Repetition::Pfc(e) => &e.plan.name,
        Repetition::Mad(e) => &e.plan.name,
        Repetition::Rc(e) => &e.plan.name,
    }
}

/// All repetitions of a case, each in a part that opens.
pub fn of_case(case: &Numbered<'_>, detail: Detail) -> Vec<Element> {
    let mut names = matrix::repetitions(case.result);
    let recorded = case.evidence.iter().flat_map(|case| &case.repetitions);
    let recorded: Vec<&Repetition> = recorded.collect();
    for repetition in &recorded {
        if !names.contains(&name(repetition)) {
            names.push(name(repetition));
        }
    }
    let parts = names.into_iter().enumerate();
    let mut drawn: Vec<Element> = parts
        .filter(|(_, wanted)| !case.left_out.contains(wanted))
        .map(|(index, wanted)| {
            let attempts = recorded.iter().copied();
            let mut attempts: Vec<_> = attempts.filter(|found| name(found) == wanted).collect();
            attempts.sort_by_key(|attempt| attempt.attempt());
            one(case, index, wanted, &attempts, detail)
        })
        .collect();
    if !case.left_out.is_empty() {
        let names: Vec<&str> = case.left_out.iter().copied().collect();
        let said = "Left out, for the page would be too large; report.json has them";
        drawn.push(el("p").text(format_args!("{said}: {}.", names.join("; "))));
    }
    drawn
}

/// Repetitions whose verdict leaves something to do.
fn is_open(case: &Numbered<'_>, name: &str) -> bool {
    let verdict = matrix::of_repetition(case.result, name);
    matches!(
        verdict,
        Verdict::Fail | Verdict::Error | Verdict::Inconclusive
    )
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
    let open = is_open(case, name);
    let names = matrix::repetitions(case.result);
    let first = names.into_iter().find(|name| is_open(case, name));
    let class = match first == Some(name) {
        true => "repetition printed",
        false => "repetition",
    };
    let mut part = words::fold(summary, open)
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
        part = part
            .children(recorded(case, attempt, &title, columns))
            .children(figures(case, &of_attempt(name, attempt.attempt())));
    }
    part.children(figures(case, name))
        .children(steps(case, name))
}

/// The drawings and counts of an attempt; `None`: neither.
fn recorded(
    case: &Numbered<'_>,
    repetition: &Repetition,
    title: &str,
    columns: Option<Columns>,
) -> Vec<Element> {
    match repetition {
        Repetition::Pfc(e) => {
            let Some(columns) = columns else {
                let said = "Not drawn: the page would be too large for an e-mail. Its counts are \
                            in evidence.json.";
                let not_drawn = el("p").text(said);
                return [not_drawn].into_iter().chain(own_losses(e)).collect();
            };
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
        Repetition::Mad(e) => ladder::mad(e, case.result, title).into_iter().collect(),
        Repetition::Rc(e) => ladder::rc(e, case.result, title).into_iter().collect(),
    }
}

/// Flows as planned.
fn flows(e: &PfcEvidence) -> Element {
    words::pairs(flows::told(&e.plan, e.limits.line_rate))
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
    let mut body = el("tbody");
    for span in &e.phases {
        for priority in Priority::all() {
            let (sent, received) = timeline::frames(e, priority, span.phase);
            if sent > 0 || received > 0 {
                body = body.child(count(e, priority, span.phase, sent, received));
            }
        }
    }
    let caption = format!("Frames of {title}");
    let table = words::table(&caption, &columns)
        .class("numbers")
        .child(body);
    let summary = el("summary").text("frames by phase and priority");
    words::fold(summary, false).child(words::scroller("scroll", &caption).child(table))
}

fn count(e: &PfcEvidence, priority: Priority, phase: Phase, sent: u64, received: u64) -> Element {
    let flows = e.plan.flows.iter();
    let of = flows.filter(|flow| flow.priority == priority);
    let found: Vec<&FlowReceived> = of.filter_map(|flow| e.received(flow.id, phase)).collect();
    let sum = |field: fn(&FlowReceived) -> u64| {
        let sum = found
            .iter()
            .fold(0u64, |sum, flow| sum.saturating_add(field(flow)));
        plot::count(sum)
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
    words::row(&format!("{}, {priority}", words::phase(phase)), cells)
}

/// The DUT's counters that changed, by the hook `counters`.
fn dut_counters(e: &PfcEvidence, title: &str) -> Option<Element> {
    let mut body = el("tbody");
    for counter in hooks::changes(&e.hooks) {
        let values = [
            plot::count(counter.before),
            plot::count(counter.after),
            counter.change(),
        ];
        body = body.child(words::row(&counter.counter, values));
    }
    let caption = format!("Counters of the DUT in {title}");
    (body.len() > 0).then(|| {
        let columns = ["counter of the DUT", "before", "after", "change"];
        let table = words::table(&caption, &columns)
            .class("numbers")
            .child(body);
        let summary = el("summary").text("counters of the DUT that changed");
        words::fold(summary, false).child(words::scroller("scroll", &caption).child(table))
    })
}

/// Frames that the tester's own side lost, where it lost some.
fn own_losses(e: &PfcEvidence) -> Option<Element> {
    let risen = e.accounting.iter().filter(|counter| counter.rise > 0);
    let told: Vec<String> = risen
        .map(|counter| format!("{} {} +{}", counter.place, counter.counter, counter.rise))
        .collect();
    (!told.is_empty()).then(|| {
        el("p").text(format_args!(
            "Lost on the tester's own side: {}",
            told.join("; ")
        ))
    })
}

/// Figures that are reported and not judged: those of the last attempt have the repetition's name.
fn figures(case: &Numbered<'_>, name: &str) -> Option<Element> {
    let all = case.result.figures.iter();
    let mut body = el("tbody");
    for figure in all.filter(|figure| figure.repetition == name) {
        body = body.child(words::row(&figure.name, [&figure.value]));
    }
    let caption = format!("Figures of {} [{name}]", case.result.case);
    (body.len() > 0).then(|| {
        let table = words::table(&caption, &["figure", "value"]).child(body);
        words::scroller("scroll", &caption).child(table)
    })
}

/// Steps of the document.
fn steps(case: &Numbered<'_>, name: &str) -> Option<Element> {
    let all = case.result.steps.iter();
    let mut body = el("tbody");
    for step in all.filter(|step| step.repetition == name) {
        body = body.child(
            el("tr")
                .child(el("th").with("scope", "row").text(&step.step))
                .child(el("td").text(&step.what))
                .child(el("td").text(&step.found))
                .child(el("td").child(words::verdict(step.verdict))),
        );
    }
    let caption = format!("Steps of {} [{name}]", case.result.case);
    (body.len() > 0).then(|| {
        let columns = ["step", "what the document asks", "found", "verdict"];
        let table = words::table(&caption, &columns).child(body);
        let summary = el("summary").text("steps of the document");
        words::fold(summary, false).child(words::scroller("scroll", &caption).child(table))
    })
}
