//! The time line of a PFC repetition: phases, the storm and its gaps, and for each priority the
//! offered and received rate with the DUT's XOFF and XON, losses and stalls.

use pfc_ebpf::stamp::Phase;
use pfc_ebpf::units::{Nanos, Priority};

use super::envelope::Envelope;
use super::expected::Failed;
use super::marks;
use super::markup::{Element, el};
use super::plot::{self, Columns, Scale, WIDTH};
use super::words::{self, label};
use crate::evidence::pfc::{LeftOut, PfcEvidence};
use crate::plan::PortName;

/// Width of the labels on the left of the plot.
const LEFT: f64 = 84.0;
/// Width of the scales on its right.
const RIGHT: f64 = 92.0;
/// A lane whose greatest rate is less than that share of the others' has a scale of its own.
const SMALL: u32 = 4;
/// Left edge of the labels.
const MARGIN: f64 = 6.0;
/// Heights: the row of phases, the row of the storm, a lane with and without its gap, the row of
/// stalls, the axis.
const PHASES: f64 = 20.0;
const STORM: f64 = 16.0;
const LANE: f64 = 38.0;
const DRAWN: f64 = 32.0;
const STALLS: f64 = 18.0;
const AXIS: f64 = 20.0;
/// Width of a character of the labels.
const CHARACTER: f64 = 6.6;

/// Draws the time line with its legend. `None` if the repetition recorded no times.
pub fn draw(e: &PfcEvidence, failed: &Failed<'_>, name: &str, columns: Columns) -> Option<Element> {
    let scale = scale(e, columns)?;
    let priorities: Vec<Priority> = Priority::all()
        .filter(|priority| e.plan.flows.iter().any(|flow| flow.priority == *priority))
        .collect();
    let lanes = PHASES + STORM;
    let stalls = lanes + LANE * priorities.len() as f64;
    let height = stalls + STALLS;
    let peaks: Vec<u32> = priorities.iter().map(|of| peak(e, *of)).collect();
    let highest = peaks.iter().copied().max().unwrap_or(1);
    let scaled = |peak: u32| match peak.saturating_mul(SMALL) < highest {
        true => peak,
        false => highest,
    };
    let peaks: Vec<u32> = peaks.into_iter().map(scaled).collect();
    let mut plot = el("svg")
        .class("plot")
        .with("x", LEFT)
        .with("y", 0)
        .with("width", WIDTH)
        .with("height", height)
        .with("viewBox", format_args!("0 0 {WIDTH} {height}"))
        .with("preserveAspectRatio", "none")
        .children(phase_bands(e, &scale, height))
        .children(storm(e, &scale))
        .children(marks::own_pauses(e, &scale, (PHASES, STORM - 2.0)));
    for (index, (priority, peak)) in priorities.iter().zip(&peaks).enumerate() {
        let top = lanes + LANE * index as f64;
        plot = plot.child(lane(e, failed, &scale, *priority, top, *peak));
    }
    plot = plot.children(self::stalls(e, &scale, stalls + 3.0));
    let about = format!(
        "Time line of {name}: {} s, {} priorities; the table below has its counts.",
        plot::shortest(scale.span() as f64 / 1e9, 2),
        priorities.len()
    );
    let view_box = format!("0 0 {} {}", LEFT + WIDTH + RIGHT, height + AXIS);
    let drawing = words::drawing("timeline", &about, view_box)
        .with("data-left", LEFT)
        .with("data-width", WIDTH)
        .with("data-span", scale.span() as f64 / 1e9)
        .child(plot)
        .child(labels(e, &scale, &priorities))
        .child(scales(e, &peaks))
        .child(axis(&scale, height));
    let caption = "Layer-1 rate by priority over time in seconds; the scale of each lane stands on \
                   its right, one of its own where its rates are small.";
    let region = words::scroller("scroll drawing", &format!("Time line of {name}"));
    Some(
        el("figure")
            .class("zoomable")
            .child(region.child(drawing))
            .child(el("figcaption").text(caption).child(legend())),
    )
}

/// Names of the phases that have room for one, and of the rows.
fn labels(e: &PfcEvidence, scale: &Scale, priorities: &[Priority]) -> Element {
    let phase = |(from, to, word): (Nanos, Nanos, &'static str)| {
        let (left, right) = (scale.x(from), scale.x(to));
        let name = label(LEFT + (left + right) / 2.0, 14.0, "middle", word)
            .with("data-from", scale.seconds(from))
            .with("data-to", scale.seconds(to));
        match right - left > word.len() as f64 * CHARACTER {
            true => name,
            false => name.with("style", "display:none"),
        }
    };
    let top = PHASES + STORM;
    let lane = |(index, priority): (usize, &Priority)| {
        let of_it = e
            .plan
            .flows
            .iter()
            .filter(|flow| flow.priority == *priority);
        let elsewhere = of_it.clone().any(|flow| flow.to != PortName::RX);
        let kind = match (e.plan.is_stormed(*priority), e.plan.is_lossless(*priority)) {
            (true, _) if elsewhere => "stormed at rx",
            (true, _) => "stormed",
            (false, true) => "lossless",
            (false, false) => "lossy",
        };
        let y = top + LANE * index as f64 + DRAWN / 2.0 + 4.0;
        label(MARGIN, y, "start", format_args!("{priority} {kind}"))
    };
    let stalls = top + LANE * priorities.len() as f64 + 12.0;
    el("g")
        .class("labels")
        .children(spans(e).into_iter().map(phase))
        .children(
            e.plan
                .storm
                .iter()
                .map(|_| label(MARGIN, PHASES + 11.0, "start", "storm")),
        )
        .children(priorities.iter().enumerate().map(lane))
        .child(label(MARGIN, stalls, "start", "stalls"))
}

/// The scale of each lane: its height in Mbit/s, and 0.
fn scales(e: &PfcEvidence, peaks: &[u32]) -> Element {
    let x = LEFT + WIDTH + MARGIN;
    let scale = |(index, peak): (usize, &u32)| {
        let top = PHASES + STORM + LANE * index as f64;
        let rate = plot::shortest(rate(e, *peak), 1);
        [
            label(x, top + 9.0, "start", format_args!("{rate} Mbit/s")),
            label(x, top + DRAWN, "start", "0"),
        ]
    };
    let scales = peaks.iter().enumerate().flat_map(scale);
    el("g").class("scales").children(scales)
}

/// Ticks with their seconds, below all rows.
fn axis(scale: &Scale, height: f64) -> Element {
    let tick = |(time, text): (Nanos, String)| {
        let x = scale.x(time);
        let anchor = match x {
            ..12.0 => "start",
            x if x > WIDTH - 12.0 => "end",
            _ => "middle",
        };
        label(LEFT + x, height + 14.0, anchor, text)
    };
    el("g")
        .class("axis")
        .children(scale.ticks().into_iter().map(tick))
}

/// The marks and their words.
fn legend() -> Element {
    let entries = [
        ("own-xoff", "single XOFF of the tester"),
        ("own-odd", "frame of the tester that is almost PFC"),
        ("own-xon", "single XON of the tester"),
        ("offered", "offered"),
        ("received", "received"),
        ("storm", "storm"),
        ("gap", "gap of the storm"),
        ("xoff", "XOFF of the DUT"),
        ("xon", "XON of the DUT"),
        ("held", "held back for the DUT's XOFF"),
        ("loss", "loss in the phase"),
        ("stall", "stall of the tester"),
        ("dut-stall", "stall of the simulated DUT"),
    ];
    let entries = entries.into_iter().chain(marks::FRAMES);
    let entry = |(class, word): (&str, &str)| {
        let swatch = el("span")
            .class(format_args!("swatch {class}"))
            .with("aria-hidden", "true");
        el("li").child(swatch).text(word)
    };
    el("ul").class("legend").children(entries.map(entry))
}

/// Scale from the first event to the last.
fn scale(e: &PfcEvidence, columns: Columns) -> Option<Scale> {
    let storm = e.storm.as_ref();
    let begins = e.phases.iter().map(|span| span.from);
    let from = begins.chain(storm.map(|storm| storm.first.before)).min()?;
    let last = |windows: &[[u32; 8]]| windows.iter().rposition(|window| *window != [0; 8]);
    let windows = last(&e.windows.offered).max(last(&e.windows.received));
    let end = windows.map(|last| {
        let length = e.windows.width.saturating_mul(last as u64 + 1);
        e.windows.epoch.saturating_add(length)
    });
    let ends = e.phases.iter().map(|span| span.to);
    let to = ends
        .chain(storm.map(|storm| storm.last.after))
        .chain(end)
        .max()?;
    (to > from).then_some(Scale { from, to, columns })
}

/// The phases, each with its begin, end and name.
fn spans(e: &PfcEvidence) -> Vec<(Nanos, Nanos, &'static str)> {
    e.phases
        .iter()
        .map(|span| {
            (
                span.from,
                span.to.max(span.from),
                words::phase(&e.plan, span.phase),
            )
        })
        .collect()
}

fn phase_bands(e: &PfcEvidence, scale: &Scale, height: f64) -> Vec<Element> {
    let bands = spans(e).into_iter().enumerate();
    bands
        .map(|(index, (from, to, word))| {
            let tip = format!("{word}: {} to {} s", scale.seconds(from), scale.seconds(to));
            let class = if index % 2 == 0 { "phase" } else { "phase odd" };
            scale.rect((from, to), (0.0, height), class, tip)
        })
        .collect()
}

/// The span of what a list had no room for.
fn left_out(spans: &LeftOut) -> Option<(Nanos, Nanos)> {
    (!spans.is_none()).then_some((spans.from, spans.to))
}

fn storm(e: &PfcEvidence, scale: &Scale) -> Vec<Element> {
    let Some(storm) = &e.storm else {
        return Vec::new();
    };
    let span = (storm.first.before, storm.last.after);
    let tip = format!(
        "storm: {} frames by {}",
        plot::count(storm.frames),
        storm.method
    );
    let band = scale.rect(span, (PHASES + 2.0, STORM - 6.0), "storm", tip);
    let gaps = storm.gaps.iter().map(|gap| (gap.from, gap.to));
    let gaps = gaps.chain(left_out(&storm.gaps_left_out));
    let tip = format!(
        "{} gaps in which a pause may have run out; the largest: {}",
        plot::count(storm.gaps_above()),
        plot::time(storm.max_gap)
    );
    let gaps = scale.boxes(gaps, (PHASES, STORM - 2.0), "gap", tip);
    [band].into_iter().chain(gaps).collect()
}

/// Most frames of that priority in a window, at least one.
fn peak(e: &PfcEvidence, priority: Priority) -> u32 {
    let all = e.windows.offered.iter().chain(&e.windows.received);
    let all = all.map(|window| window[priority.index()]);
    all.max().unwrap_or(0).max(1)
}

/// Layer-1 Mbit/s of `frames` in a window.
fn rate(e: &PfcEvidence, frames: u32) -> f64 {
    f64::from(frames) * e.plan.frame_bits() / e.windows.width.max(1) as f64 * 1e3
}

fn lane(
    e: &PfcEvidence,
    failed: &Failed<'_>,
    scale: &Scale,
    priority: Priority,
    top: f64,
    peak: u32,
) -> Element {
    let index = priority.index();
    let series = |windows: &[[u32; 8]]| {
        let counts: Vec<u32> = windows.iter().map(|window| window[index]).collect();
        Envelope::of(&counts, (e.windows.epoch, e.windows.width), scale)
    };
    let (offered, received) = (series(&e.windows.offered), series(&e.windows.received));
    let curve = |class: &str, name: &str, d: String| {
        el("path")
            .class(class)
            .with("data-lane", format_args!("{priority} {name}"))
            .with("data-peak", format_args!("{:.3}", rate(e, peak)))
            .with("d", d)
    };
    let area = |path: String| format!("{path}V100H0z");
    let least = received.thinned.then(|| {
        let least = received.path(peak, |(least, _)| *least);
        words::path("received", area(least))
    });
    let class = match received.thinned {
        true => "received most",
        false => "received",
    };
    let most = |series: &Envelope| series.path(peak, |(_, most)| *most);
    let transform = format!("translate(0 {top}) scale(1 {})", DRAWN / 100.0);
    let curves = el("g")
        .with("transform", transform)
        .children(least)
        .child(curve(class, "received", area(most(&received))))
        .child(curve("offered", "offered", most(&offered)));
    let ground = format!("M0 {}H{WIDTH}", top + DRAWN);
    el("g")
        .child(words::path("ground", ground))
        .children(held(e, scale, priority, top))
        .child(curves)
        .children(losses(e, scale, priority, top))
        .children(pauses(e, scale, priority, top))
        .children(marks::of_lane(e, failed, scale, priority, (top, DRAWN)))
}

/// Spans in which the sender obeyed the DUT's XOFF.
fn held(e: &PfcEvidence, scale: &Scale, priority: Priority, top: f64) -> Option<Element> {
    let spans = e.sender.withheld.iter();
    let spans = spans.filter(|span| span.priority == priority);
    let spans = spans.map(|span| (span.from, span.to));
    let more = e.sender.withheld_left_out.iter();
    let more = more.filter(|span| span.priority == priority);
    let more = more.filter_map(|span| left_out(&span.spans));
    let tip = format!("priority {priority}: held back for the DUT's XOFF");
    scale.boxes(spans.chain(more), (top, DRAWN), "held", tip)
}

/// Frames of `priority` that left and arrived in `phase`.
pub fn frames(e: &PfcEvidence, priority: Priority, phase: Phase) -> (u64, u64) {
    let (mut sent, mut received) = (0u64, 0u64);
    for flow in e.plan.flows.iter().filter(|flow| flow.priority == priority) {
        let (left, arrived) = (e.sent(flow.id, phase), e.received(flow.id, phase));
        sent = sent.saturating_add(left.map_or(0, |left| left.frames));
        received = received.saturating_add(arrived.map_or(0, |arrived| arrived.frames));
    }
    (sent, received)
}

fn losses(e: &PfcEvidence, scale: &Scale, priority: Priority, top: f64) -> Vec<Element> {
    let phases = e.phases.iter();
    phases
        .filter_map(|span| {
            let (sent, received) = frames(e, priority, span.phase);
            let lost = sent.checked_sub(received).filter(|lost| *lost > 0)?;
            let tip = format!(
                "priority {priority}, {}: {} of {} frames lost",
                words::phase(&e.plan, span.phase),
                plot::count(lost),
                plot::count(sent)
            );
            let place = (top + DRAWN - 5.0, 5.0);
            Some(scale.rect((span.from, span.to), place, "loss", tip))
        })
        .collect()
}

/// Ticks for the XOFF and XON frames of the DUT: above the lane and below it.
fn pauses(e: &PfcEvidence, scale: &Scale, priority: Priority, top: f64) -> Vec<Element> {
    let index = priority.index();
    let lines = |word: &str, class: &str, top: f64, asks: bool| {
        let ports = e.ports.senders().map(|(_, port)| port);
        let controls = ports.flat_map(|port| &port.counts.controls);
        let controls = controls.filter(|control| control.vector >> index & 1 == 1);
        let controls = controls.filter(|control| (control.quanta[index] > 0) == asks);
        let times: Vec<Nanos> = controls.map(|control| control.time).collect();
        let tip = |_, number| format!("priority {priority}: {number} {word} frames of the DUT");
        scale.lines(&times, (top, 9.0), class, tip)
    };
    let xoff = lines("XOFF", "xoff", top, true);
    let xon = lines("XON", "xon", top + 10.0, false);
    xoff.into_iter().chain(xon).collect()
}

/// Times at which the tester, or the simulated DUT, did not run though it should have.
fn stalls(e: &PfcEvidence, scale: &Scale, y: f64) -> Vec<Element> {
    let more = &e.sender.stalls_left_out;
    let own = e.sender.stalls.iter().map(|stall| (stall.from, stall.to));
    let number = plot::count(e.sender.stalls.len() as u64 + more.count);
    let tip = format!("{number} stalls of the tester");
    let own = scale.boxes(own.chain(left_out(more)), (y, 5.0), "stall", tip);
    let dut = e.dut.iter().flat_map(|dut| &dut.stalls);
    let dut = dut.map(|stall| (stall.from, stall.to));
    let dut = scale.boxes(
        dut,
        (y + 6.0, 5.0),
        "dut-stall",
        "stalls of the simulated DUT",
    );
    own.into_iter().chain(dut).collect()
}
