//! Packets of an RC repetition.

use pfc_ebpf::units::Nanos;
use pfc_ebpf::wire::roce::{self, RC_READ_REQUEST, RC_READ_RESPONSE_ONLY};

use super::super::expected::Failed;
use super::super::markup::Element;
use super::super::plot;
use super::{Event, Way, draw};
use crate::evidence::rc::{Packet, Phase, RcEvidence};
use crate::plan::rc::RcPlan;
use crate::verdict::{CaseResult, Subject};

/// Status of the completion that ends the test: the retries are used up.
const OF_TEST: u32 = 12;

/// Draws the packets of an RC repetition; `None` if none was recorded.
pub fn rc(e: &RcEvidence, result: &CaseResult, name: &str) -> Option<Element> {
    let failed = Failed::in_repetition(result, &e.plan.name);
    // With the status of the completion that ends each phase.
    let phases = [
        ("positive control", 0, &e.control),
        ("test", OF_TEST, &e.test),
        ("flush", 5, &e.flush),
    ];
    let timer = RcPlan::transport_timer(e.plan.timeout.min(31));
    let events = phases.into_iter().filter_map(|(word, status, recorded)| {
        let recorded = recorded.as_ref()?;
        Some(phase((word, status), recorded, &e.plan, timer, &failed))
    });
    let mut events: Vec<Event> = events.flatten().collect();
    if let Some(reason) = &e.unreachable {
        let label = format!("no channel: {reason}");
        events.push(Event::new(0, Way::Note, label).wrong(true));
    }
    draw(events, name)
}

fn phase(
    (word, status): (&str, u32),
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
        let wrong = completion.status != status;
        let event = Event::new(completion.time, Way::Note, label).wrong(wrong);
        events.push(event.failed(failed.on(Subject::Completion(completion.time))));
    }
    events.extend(missing(status == OF_TEST, phase, plan, timer));
    events
}

/// Requests and the completion that did not come.
fn missing(is_test: bool, phase: &Phase, plan: &RcPlan, timer: Nanos) -> Vec<Event> {
    let mut missing = Vec::new();
    let (sent, all) = (phase.packets.len(), plan.requests());
    if is_test && phase.refused.is_none() && sent < all {
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
