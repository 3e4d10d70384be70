//! Ladder diagrams of the MAD and RC cases: packets between tester and DUT, with waits to scale.

use std::collections::BTreeMap;

use ib_mad::mad::Status;
use ib_mad::smp::Smp;
use pfc_ebpf::units::Nanos;
use pfc_ebpf::wire::roce::{self, RC_READ_REQUEST, RC_READ_RESPONSE_ONLY};

use super::expected::{self, Failed};
use super::markup::{Element, el};
use super::plot;
use super::words::{self, label};
use crate::case::{CaseResult, Subject};
use crate::evidence::mad::{Exchange, MadEvidence, Octets};
use crate::evidence::rc::{Packet, Phase, RcEvidence};
use crate::plan::rc::RcPlan;

/// The lines of tester and DUT, and the width of all.
const TESTER: f64 = 100.0;
const DUT: f64 = 560.0;
const WIDTH: f64 = 880.0;
/// Least height of an event, and the height that all waits share.
const ROW: f64 = 19.0;
const WAITS: f64 = 420.0;
/// Characters of an arrow's label and of a wait's.
const LABEL: usize = 68;
const WAIT: usize = 46;
/// Most events that are drawn, and that the table lists.
const SHOWN: usize = 160;
const LISTED: usize = 1000;
/// Exchanges alike from which on one arrow stands for all.
const ALIKE: usize = 4;

/// Direction of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    ToDut,
    ToTester,
    /// Something that happened, and no packet.
    Note,
}

/// A packet, or something that happened.
#[derive(Clone, Debug)]
struct Event {
    at: Nanos,
    way: Way,
    label: String,
    /// Until when something was awaited after it, and what became of that.
    wait: Option<(Nanos, String)>,
    /// True if the event should not have happened, or if what was awaited after it should have
    /// come.
    wrong: bool,
}

impl Event {
    fn new(at: Nanos, way: Way, label: impl Into<String>) -> Self {
        Self {
            at,
            way,
            label: label.into(),
            wait: None,
            wrong: false,
        }
    }

    fn wrong(self, wrong: bool) -> Self {
        Self { wrong, ..self }
    }

    /// Names the checks that failed on it.
    fn failed(mut self, checks: &[&str]) -> Self {
        if !checks.is_empty() {
            self.label += &format!("; fails {}", checks.join(", "));
            self.wrong = true;
        }
        self
    }

    /// `class`, and a further one where something is wrong.
    fn class(&self, class: &str) -> String {
        match self.wrong {
            true => format!("{class} wrong"),
            false => class.to_owned(),
        }
    }
}

/// Draws the packets of a MAD repetition; `None` if none was recorded.
pub fn mad(e: &MadEvidence, result: &CaseResult, name: &str) -> Option<Element> {
    let failed = Failed::in_repetition(result, &e.plan.name);
    // The repetition whose request it answers judges an answer that came in a later one.
    let failed_in_any = Failed::in_any(result);
    let mut events = Vec::new();
    let mut rest = &e.exchanges[..];
    while let [first, ..] = rest {
        let alike = rest
            .iter()
            .take_while(|other| looks_like(first, other, &failed))
            .count();
        let (run, after) = rest.split_at(alike.max(1));
        if run.len() >= ALIKE {
            events.extend(folded(e, run, &failed));
        } else {
            events.extend(run.iter().flat_map(|one| exchange(e, one, &failed)));
        }
        rest = after;
    }
    for stray in &e.strays {
        let label = format!("unasked: {}", packet(&stray.packet.octets));
        let stray_event = Event::new(stray.packet.at, Way::ToTester, label);
        let stray_event = stray_event.wrong(expected::is_wrong(stray));
        let failed = if stray.of_earlier {
            &failed_in_any
        } else {
            &failed
        };
        events.push(stray_event.failed(failed.on(Subject::Packet(stray.packet.at))));
    }
    let end = match (&e.error, e.interrupted) {
        (Some(error), _) => Some(format!("ended early: {error}")),
        (None, true) => Some("interrupted".to_owned()),
        (None, false) => None,
    };
    events.extend(end.map(|label| Event::new(e.listened_until, Way::Note, label).wrong(true)));
    draw(events, name)
}

/// True if one arrow may stand for both.
fn looks_like(one: &Exchange, other: &Exchange, failed: &Failed<'_>) -> bool {
    let answer = |exchange: &Exchange| {
        let answer = exchange.answer.as_ref();
        answer.map(|answer| packet(&answer.octets))
    };
    one.purpose == other.purpose
        && one.attempt == other.attempt
        && packet(&one.request) == packet(&other.request)
        && answer(one) == answer(other)
        && one.answer.is_some()
        && failed.on(subject(one)) == failed.on(subject(other))
}

fn subject(exchange: &Exchange) -> Subject {
    Subject::Exchange(exchange.sent)
}

/// An exchange: the request, and the answer or the wait for it.
fn exchange(e: &MadEvidence, exchange: &Exchange, failed: &Failed<'_>) -> Vec<Event> {
    let wrong = !expected::is_answered(e, exchange);
    let failed = failed.on(subject(exchange));
    let purpose = purpose(exchange);
    let label = format!("{} ({purpose})", packet(&exchange.request));
    let mut request = Event::new(exchange.sent, Way::ToDut, label);
    match &exchange.answer {
        Some(answer) => {
            let mut label = packet(&answer.octets);
            if answer.at > exchange.deadline {
                label += ", late";
            }
            let answer = Event::new(answer.at, Way::ToTester, label).wrong(wrong);
            vec![request, answer.failed(failed)]
        }
        None => {
            let waited = exchange.deadline.saturating_sub(exchange.sent);
            let text = format!("no answer within {}", plot::time(waited));
            request.wait = Some((exchange.deadline, text));
            vec![request.wrong(wrong).failed(failed)]
        }
    }
}

/// One arrow each way for exchanges that look alike.
fn folded(e: &MadEvidence, run: &[Exchange], failed: &Failed<'_>) -> Vec<Event> {
    let (Some(first), Some(last)) = (run.first(), run.last()) else {
        return Vec::new();
    };
    let times = run.iter().filter_map(|exchange| {
        let answer = exchange.answer.as_ref()?;
        Some(answer.at.saturating_sub(exchange.sent))
    });
    let (least, most) = times.fold((Nanos::MAX, 0), |(least, most), time| {
        (least.min(time), most.max(time))
    });
    let (purpose, number) = (purpose(first), run.len());
    let request = format!("{number} times {} ({purpose})", packet(&first.request));
    let mut request = Event::new(first.sent, Way::ToDut, request);
    let Some(answer) = &last.answer else {
        return vec![request];
    };
    let text = format!(
        "each answered after {} to {}",
        plot::time(least),
        plot::time(most)
    );
    request.wait = Some((answer.at, text));
    let label = format!("{number} times {}", packet(&answer.octets));
    let wrong = run.iter().any(|one| !expected::is_answered(e, one));
    let answer = Event::new(answer.at, Way::ToTester, label).wrong(wrong);
    vec![request, answer.failed(failed.on(subject(first)))]
}

/// The purpose's word in evidence.
fn purpose(exchange: &Exchange) -> String {
    let word = serde_json::to_value(exchange.purpose).ok();
    let word = word.and_then(|word| word.as_str().map(str::to_owned));
    word.unwrap_or_default()
}

/// Method, attribute and status of a packet.
fn packet(octets: &Octets) -> String {
    match Smp::parse(&octets.0) {
        Ok(smp) if smp.method().is_response() && smp.status() != Status::OK => {
            format!(
                "{} {}, status {}",
                smp.method(),
                smp.attribute(),
                smp.status()
            )
        }
        Ok(smp) => format!("{} {}", smp.method(), smp.attribute()),
        Err(error) => error.to_string(),
    }
}

/// Draws the packets of an RC repetition; `None` if none was recorded.
pub fn rc(e: &RcEvidence, result: &CaseResult, name: &str) -> Option<Element> {
    let failed = Failed::in_repetition(result, &e.plan.name);
    let phases = [
        ("positive control", &e.control),
        ("test", &e.test),
        ("flush", &e.flush),
    ];
    let timer = RcPlan::transport_timer(e.plan.timeout.min(31));
    let events = phases.into_iter().filter_map(|(word, phase)| {
        Some(self::phase(word, phase.as_ref()?, &e.plan, timer, &failed))
    });
    let mut events: Vec<Event> = events.flatten().collect();
    if let Some(reason) = &e.unreachable {
        let label = format!("no channel: {reason}");
        events.push(Event::new(0, Way::Note, label).wrong(true));
    }
    draw(events, name)
}

fn phase(
    word: &str,
    phase: &Phase,
    plan: &RcPlan,
    timer: Nanos,
    failed: &Failed<'_>,
) -> Vec<Event> {
    let begin = match &phase.refused {
        Some(reason) => format!("{word}: the DUT refused the READ: {reason}"),
        None => format!("{word}: the DUT is asked to send a READ"),
    };
    let begin = Event::new(phase.posted, Way::Note, begin);
    let mut events = vec![begin.wrong(phase.refused.is_some())];
    let ends = phase.answers.iter().map(|answer| answer.time);
    let ends = ends.chain(phase.completions.iter().map(|completion| completion.time));
    let ends: Vec<Nanos> = ends.collect();
    for (index, packet) in phase.packets.iter().enumerate() {
        let mut event = Event::new(packet.time, Way::ToTester, read(packet));
        let next = phase.packets.get(index + 1).map(|next| next.time);
        let end = ends.iter().copied().filter(|end| *end > packet.time).min();
        event.wait = match (next, end) {
            (Some(next), end) if end.is_none_or(|end| next < end) => Some((next, "the next")),
            (_, Some(end)) => Some((end, "its end")),
            _ => None,
        }
        .map(|(until, what)| {
            let waited = plot::time(until.saturating_sub(packet.time));
            let text = format!("{waited} to {what}; T_tr {}", plot::time(timer));
            (until, text)
        });
        events.push(event.failed(failed.on(Subject::Packet(packet.time))));
    }
    let answers = phase.answers.iter();
    events.extend(answers.map(|answer| Event::new(answer.time, Way::ToDut, read(answer))));
    for completion in &phase.completions {
        let label = format!("the DUT completes it with status {}", completion.status);
        let wrong = !expected::is_status(word, completion);
        let event = Event::new(completion.time, Way::Note, label).wrong(wrong);
        events.push(event.failed(failed.on(Subject::Completion(completion.time))));
    }
    events.extend(missing(word, phase, plan, timer));
    events
}

/// Requests and the completion that did not come.
fn missing(word: &str, phase: &Phase, plan: &RcPlan, timer: Nanos) -> Vec<Event> {
    let mut missing = Vec::new();
    let (sent, all) = (phase.packets.len(), plan.requests());
    if word == "test" && phase.refused.is_none() && sent < all {
        let last = phase
            .packets
            .last()
            .map_or(phase.posted, |packet| packet.time);
        let at = last.saturating_add(timer).min(phase.until.max(last));
        let label = format!("missing: {} of {all} READ requests", all - sent);
        missing.push(Event::new(at, Way::Note, label).wrong(true));
    }
    if phase.refused.is_none() && phase.completions.is_empty() {
        let waited = phase.until.saturating_sub(phase.posted);
        let label = format!("missing: a completion within {}", plot::time(waited));
        missing.push(Event::new(phase.until, Way::Note, label).wrong(true));
    }
    missing
}

/// Kind and PSN of a packet.
fn read(packet: &Packet) -> String {
    let frame = packet.frame().unwrap_or_default();
    let Some(found) = roce::parse(&frame[..]) else {
        return format!("{} octets that are not RoCEv2", packet.length);
    };
    let kind = match found.bth.opcode {
        RC_READ_REQUEST => "READ request".to_owned(),
        RC_READ_RESPONSE_ONLY => "READ response".to_owned(),
        other => format!("opcode {other:#04x}"),
    };
    format!(
        "{kind}, PSN {:#08x}, {} octets",
        found.bth.psn, packet.length
    )
}

/// Where each time is: an event has a row of its own, and waits longer than that are to scale.
struct Rows {
    at: BTreeMap<Nanos, f64>,
    /// Nanoseconds of the height of a row.
    row: f64,
    bottom: f64,
}

impl Rows {
    fn of(events: &[Event], top: f64) -> (Self, Vec<f64>) {
        let mut times: Vec<Nanos> = events.iter().map(|event| event.at).collect();
        times.extend(
            events
                .iter()
                .filter_map(|event| Some(event.wait.as_ref()?.0)),
        );
        times.sort_unstable();
        let first = times.first().copied().unwrap_or(0);
        let all = times
            .last()
            .copied()
            .unwrap_or(0)
            .saturating_sub(first)
            .max(1) as f64;
        let (mut y, mut before) = (top, first);
        let (mut at, mut rows) = (BTreeMap::new(), Vec::new());
        let mut events = events.iter().peekable();
        times.dedup();
        for time in times {
            let advance = (time - before) as f64 / all * WAITS;
            let mut own = 0;
            while events.next_if(|event| event.at <= time).is_some() {
                let least = if rows.is_empty() { 0.0 } else { ROW };
                y += if own == 0 { advance.max(least) } else { ROW };
                rows.push(y);
                own += 1;
            }
            if own == 0 {
                y += advance;
            }
            at.insert(time, y);
            before = time;
        }
        let rows_of = Self {
            at,
            row: ROW / WAITS * all,
            bottom: y,
        };
        (rows_of, rows)
    }
}

fn draw(mut events: Vec<Event>, name: &str) -> Option<Element> {
    events.sort_by_key(|event| event.at);
    let all = events.len();
    events.truncate(LISTED);
    let shown = &events[..all.min(SHOWN)];
    let first = shown.first()?.at;
    let (rows, at) = Rows::of(shown, 44.0);
    let bottom = rows.bottom + ROW;
    let about = format!(
        "Packets of {name} between tester and DUT: {all} events; the table below lists them."
    );
    let mut drawing = el("svg")
        .class("ladder")
        .with("role", "img")
        .with("aria-label", &about)
        .with("viewBox", format_args!("0 0 {WIDTH} {bottom:.0}"));
    for (x, word) in [(TESTER, "tester"), (DUT, "DUT")] {
        let line = el("path")
            .class("life")
            .with("d", format_args!("M{x} 18V{bottom:.0}"));
        drawing = drawing.child(label(x, 12.0, "middle", word)).child(line);
    }
    for (event, y) in shown.iter().zip(&at) {
        drawing = drawing.child(one(event, *y, first, &rows));
    }
    let more = if all <= SHOWN {
        String::new()
    } else if all <= LISTED {
        format!(" The first {SHOWN} of {all} events; all of them: the table.")
    } else {
        format!(
            " The first {SHOWN} of {all} events; the first {LISTED}: the table; all of them: \
             evidence.json."
        )
    };
    let caption = format!(
        "Times from the first event. Waits of more than {} are to scale.{more}",
        plot::time(rows.row as Nanos)
    );
    let region = words::scroller("scroll drawing", &format!("Packets of {name}"));
    let summary = el("summary").text("packets as a table");
    let listed = words::fold(summary, false).child(table(&events, first, name));
    Some(
        el("figure")
            .child(region.child(drawing))
            .child(el("figcaption").text(caption))
            .child(listed),
    )
}

/// The time since the first event, always in one unit, so that times in a column compare.
fn since(at: Nanos, first: Nanos) -> String {
    format!("{:.3} ms", at.saturating_sub(first) as f64 / 1e6)
}

fn one(event: &Event, y: f64, first: Nanos, rows: &Rows) -> Element {
    let since = since(event.at, first);
    let mut group = el("g").child(label(6.0, y + 4.0, "start", &since));
    let (d, class) = match event.way {
        Way::ToDut => (format!("M{TESTER} {y:.1}H{DUT}m-7 -4l7 4l-7 4"), "to-dut"),
        Way::ToTester => (format!("M{DUT} {y:.1}H{TESTER}m7 -4l-7 4l7 4"), "to-tester"),
        Way::Note => (format!("M{TESTER} {y:.1}H{DUT}"), "note"),
    };
    let middle = (TESTER + DUT) / 2.0;
    group = group
        .child(el("path").class(event.class(class)).with("d", d))
        .child(label(middle, y - 4.0, "middle", short(&event.label, LABEL)));
    if let Some((until, text)) = &event.wait {
        let end = rows.at.get(until).copied().unwrap_or(y);
        let x = DUT + 14.0;
        group = group
            .child(
                el("path")
                    .class(event.class("wait"))
                    .with("d", format_args!("M{} {y:.1}H{x}V{end:.1}h-6", x - 6.0)),
            )
            .child(label(x + 8.0, y + 4.0, "start", short(text, WAIT)));
    }
    if event.wrong {
        group = group.class("wrong");
    }
    group.child(el("title").text(&event.label))
}

fn table(events: &[Event], first: Nanos, name: &str) -> Element {
    let mut body = el("tbody");
    for event in events {
        let way = match event.way {
            Way::ToDut => "tester to DUT",
            Way::ToTester => "DUT to tester",
            Way::Note => "",
        };
        let wait = event.wait.as_ref().map_or("", |wait| &wait.1);
        let since = since(event.at, first);
        let row = words::row(&since, [way, &event.label, wait]);
        body = body.child(if event.wrong { row.class("wrong") } else { row });
    }
    let caption = format!("Packets of {name} in order");
    let columns = ["time", "way", "packet or event", "wait"];
    words::scroller("scroll", &caption).child(words::table(&caption, &columns).child(body))
}

/// Returns `text`, cut to at most `most` characters.
fn short(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let kept: String = text.chars().take(most - 1).collect();
    kept + "\u{2026}"
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Begin and end of each wait in the drawing.
    fn waits(drawing: &str) -> Vec<(f64, f64)> {
        let paths = drawing.split("class=\"wait\" d=\"").skip(1);
        paths
            .map(|path| {
                let (path, _) = path.split_once('"').unwrap();
                let (_, rest) = path.split_once(' ').unwrap();
                let (begin, rest) = rest.split_once('H').unwrap();
                let (_, rest) = rest.split_once('V').unwrap();
                let (end, _) = rest.split_once('h').unwrap();
                (begin.parse().unwrap(), end.parse().unwrap())
            })
            .collect()
    }

    #[test]
    fn waits_that_are_longer_than_a_row_are_to_scale_and_shorter_ones_are_a_row() {
        const MS: Nanos = 1_000_000;
        // Each is followed by the next request at once.
        let lengths = [100, 200, 700, 1].map(|length| length * MS);
        let mut at = 5_000 * MS;
        let mut events = Vec::new();
        for length in lengths {
            let mut event = Event::new(at, Way::ToDut, "Get(NodeInfo)");
            at += length;
            event.wait = Some((at, "no answer".into()));
            events.push(event);
        }
        events.push(Event::new(at, Way::ToTester, "GetResp(NodeInfo)"));
        let mut drawing = String::new();
        draw(events, "a case").unwrap().write(&mut drawing);
        let all: Nanos = lengths.iter().sum();
        let found = waits(&drawing);
        assert_eq!(found.len(), lengths.len(), "{drawing}");
        for ((begin, end), length) in found.iter().zip(lengths) {
            let expected = (length as f64 / all as f64 * WAITS).max(ROW);
            let height = end - begin;
            assert!(
                (height - expected).abs() < 0.11,
                "{length}: {height} not {expected}"
            );
        }
        let row = plot::time((ROW / WAITS * all as f64) as Nanos);
        let caption = format!("Waits of more than {row} are to scale.");
        assert!(drawing.contains(&caption), "{caption} in {drawing}");
    }
}
