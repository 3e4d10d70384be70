//! Packets of a MAD repetition.

use ib_mad::mad::Status;
use ib_mad::smp::Smp;
use pfc_ebpf::units::Nanos;

use super::super::expected::{self, Failed};
use super::super::markup::Element;
use super::super::plot;
use super::{Event, Way, draw};
use crate::evidence::mad::{Exchange, MadEvidence, Octets};
use crate::verdict::{CaseResult, Subject};

/// Exchanges alike from which on one arrow stands for all.
const ALIKE: usize = 4;

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
