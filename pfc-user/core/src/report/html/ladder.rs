//! Ladder diagrams of the MAD and RC cases: packets between tester and DUT, with waits to scale.

mod mad;
mod rc;

use std::collections::{BTreeMap, BTreeSet};

use pfc_ebpf::units::Nanos;

use super::markup::{Element, el};
use super::plot;
use super::words::{self, label};
use crate::quantity::ms;

pub use mad::mad;
pub use rc::rc;

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
/// Later ones that are drawn all the same.
const LATER: usize = 20;
const LISTED: usize = 1000;

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
    /// End of a wait after it, and the outcome of that wait.
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

/// Height of each time: an event has a row of its own, and waits longer than that are to scale.
struct Rows {
    at: BTreeMap<Nanos, f64>,
    /// Nanoseconds of the height of a row.
    row: f64,
    bottom: f64,
}

impl Rows {
    fn of(events: &[Event], top: f64) -> (Self, Vec<f64>) {
        let waits = events
            .iter()
            .filter_map(|event| Some(event.wait.as_ref()?.0));
        let times: BTreeSet<Nanos> = events.iter().map(|event| event.at).chain(waits).collect();
        let first = times.first().copied().unwrap_or(0);
        let last = times.last().copied().unwrap_or(0);
        let all = (last - first).max(1) as f64;
        let (mut y, mut before) = (top, first);
        let (mut at, mut rows) = (BTreeMap::new(), Vec::new());
        let mut events = events.iter().peekable();
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
        let row = ROW / WAITS * all;
        let bottom = y;
        (Self { at, row, bottom }, rows)
    }
}

/// The events that are drawn: the first ones, and of the others some that are wrong, each with the
/// one before it.
fn shown(events: &[Event]) -> Vec<Event> {
    let (first, rest) = events.split_at(events.len().min(SHOWN));
    let mut shown = first.to_vec();
    for (index, event) in rest.iter().enumerate() {
        let stands_before = rest.get(index + 1).is_some_and(|next| next.wrong);
        if (event.wrong || stands_before) && shown.len() < SHOWN + LATER {
            shown.push(event.clone());
        }
    }
    shown
}

fn draw(mut events: Vec<Event>, name: &str) -> Option<Element> {
    events.sort_by_key(|event| event.at);
    let all = events.len();
    events.truncate(LISTED);
    let shown = shown(&events);
    let first = shown.first()?.at;
    let (rows, at) = Rows::of(&shown, 44.0);
    let bottom = rows.bottom + ROW;
    let about = format!(
        "Packets of {name} between tester and DUT: {all} events; the table below lists them."
    );
    let view_box = format!("0 0 {WIDTH} {bottom:.0}");
    let lives = [(TESTER, "tester"), (DUT, "DUT")]
        .into_iter()
        .flat_map(|(x, word)| {
            let line = words::path("life", format_args!("M{x} 18V{bottom:.0}"));
            [label(x, 12.0, "middle", word), line]
        });
    let packets = shown.iter().zip(&at);
    let drawing = words::drawing("ladder", &about, view_box)
        .children(lives)
        .children(packets.map(|(event, y)| one(event, *y, first, &rows)));
    let more = if all == shown.len() {
        String::new()
    } else {
        let later = match shown.len().saturating_sub(SHOWN) {
            0 => String::new(),
            later => format!(", and {later} later ones that failed a check or stand before one"),
        };
        let rest = match all <= LISTED {
            true => "all of them: the table".to_owned(),
            false => format!("the first {LISTED}: the table; all of them: evidence.json"),
        };
        format!(" The first {SHOWN} of {all} events{later}; {rest}.")
    };
    let caption = format!(
        "Times from the first event. Waits of more than {} are to scale.{more}",
        plot::time(rows.row as Nanos)
    );
    let region = words::scroller("scroll drawing", &format!("Packets of {name}"));
    let listed = words::folded("packets as a table", table(&events, first, name));
    Some(
        el("figure")
            .child(region.child(drawing))
            .child(el("figcaption").text(caption))
            .child(listed),
    )
}

/// The time since the first event, always in one unit, so that times in a column compare.
fn since(at: Nanos, first: Nanos) -> String {
    ms(at.saturating_sub(first))
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
    group = group.child(words::path(event.class(class), d)).child(label(
        middle,
        y - 4.0,
        "middle",
        short(&event.label, LABEL),
    ));
    if let Some((until, text)) = &event.wait {
        let end = rows.at.get(until).copied().unwrap_or(y);
        let x = DUT + 14.0;
        let d = format!("M{} {y:.1}H{x}V{end:.1}h-6", x - 6.0);
        group = group
            .child(words::path(event.class("wait"), d))
            .child(label(x + 8.0, y + 4.0, "start", short(text, WAIT)));
    }
    if event.wrong {
        group = group.class("wrong");
    }
    match short(&event.label, LABEL) == event.label {
        true => group,
        false => group.tip(&event.label),
    }
}

fn table(events: &[Event], first: Nanos, name: &str) -> Element {
    let row = |event: &Event| {
        let way = match event.way {
            Way::ToDut => "tester to DUT",
            Way::ToTester => "DUT to tester",
            Way::Note => "",
        };
        let wait = event.wait.as_ref().map_or("", |wait| &wait.1);
        let row = words::row(&since(event.at, first), [way, &event.label, wait]);
        if event.wrong { row.class("wrong") } else { row }
    };
    let caption = format!("Packets of {name} in order");
    let columns = ["time", "way", "packet or event", "wait"];
    words::listed(&caption, &columns, events.iter().map(row))
}

/// Returns `text`, cut to at most `most` characters.
fn short(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let begin: String = text.chars().take(most - 1).collect();
    begin + "\u{2026}"
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
