//! The time line of a PFC repetition: phases, the storm and its gaps, and for each priority the
//! offered and received rate with the DUT's XOFF and XON, losses and stalls.

use std::fmt::Write;

use pfc_ebpf::stamp::Phase;
use pfc_ebpf::units::{LineRate, Nanos, Priority};

use super::columns::{Columns, WIDTH};
use super::envelope::Envelope;
use super::expected::Failed;
use super::marks;
use super::markup::{Element, el};
use super::plot::{self, Scale};
use super::words::{self, label};
use crate::evidence::pfc::PfcEvidence;

/// Width of the labels on the left of the plot.
const LEFT: f64 = 84.0;
/// Width of the scales on its right.
const RIGHT: f64 = 92.0;
/// A lane whose greatest rate is less than that share of the others' has a scale of its own.
const SMALL: u32 = 4;
/// Where the labels begin.
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
    let scale = scale(e)?;
    let priorities: Vec<Priority> = Priority::all()
        .filter(|priority| e.plan.flows.iter().any(|flow| flow.priority == *priority))
        .collect();
    let lanes = PHASES + STORM;
    let stalls = lanes + LANE * priorities.len() as f64;
    let height = stalls + STALLS;
    let peaks: Vec<u32> = priorities
        .iter()
        .map(|priority| peak(e, *priority))
        .collect();
    let highest = peaks.iter().copied().max().unwrap_or(1);
    let peaks: Vec<u32> = peaks
        .into_iter()
        .map(|peak| {
            if peak.saturating_mul(SMALL) < highest {
                peak
            } else {
                highest
            }
        })
        .collect();
    let mut plot = el("svg")
        .class("plot")
        .with("x", LEFT)
        .with("y", 0)
        .with("width", WIDTH)
        .with("height", height)
        .with("viewBox", format_args!("0 0 {WIDTH} {height}"))
        .with("preserveAspectRatio", "none")
        .children(phase_bands(e, &scale, height))
        .children(storm(e, &scale, columns))
        .children(marks::own_pauses(e, &scale, columns, (PHASES, STORM - 2.0)));
    for (index, (priority, peak)) in priorities.iter().zip(&peaks).enumerate() {
        let top = lanes + LANE * index as f64;
        plot = plot.child(lane(e, failed, &scale, *priority, top, *peak, columns));
    }
    plot = plot.children(self::stalls(e, &scale, columns, stalls + 3.0));
    let about = format!(
        "Time line of {name}: {} s, {} priorities; the table below has its counts.",
        plot::shortest(scale.span() as f64 / 1e9, 2),
        priorities.len()
    );
    let drawing = el("svg")
        .class("timeline")
        .with("role", "img")
        .with("aria-label", &about)
        .with(
            "viewBox",
            format_args!("0 0 {} {}", LEFT + WIDTH + RIGHT, height + AXIS),
        )
        .with("data-left", LEFT)
        .with("data-width", WIDTH)
        .with("data-span", scale.span() as f64 / 1e9)
        .child(plot)
        .child(labels(e, &scale, &priorities))
        .child(scales(e, &peaks))
        .child(axis(&scale, height));
    let caption = "Layer-1 rate by priority over time in seconds; the scale of each lane stands on \
                   its right, one of its own where its rates are small.";
    Some(
        el("figure")
            .class("zoomable")
            .child(
                words::scroller("scroll drawing", &format!("Time line of {name}")).child(drawing),
            )
            .child(el("figcaption").text(caption).child(legend())),
    )
}

/// Names of the phases that have room for one, and of the rows.
fn labels(e: &PfcEvidence, scale: &Scale, priorities: &[Priority]) -> Element {
    let mut labels = el("g").class("labels");
    for (from, to, word) in spans(e) {
        let (left, right) = (scale.x(from), scale.x(to));
        let fits = right - left > word.len() as f64 * CHARACTER;
        let name = label(LEFT + (left + right) / 2.0, 14.0, "middle", word)
            .with("data-from", scale.seconds(from))
            .with("data-to", scale.seconds(to));
        labels = labels.child(if fits {
            name
        } else {
            name.with("style", "display:none")
        });
    }
    labels = labels.child(label(MARGIN, PHASES + 11.0, "start", "storm"));
    let mut top = PHASES + STORM;
    for priority in priorities {
        let kind = if e.plan.is_stormed(*priority) {
            "stormed"
        } else if e.plan.is_lossless(*priority) {
            "lossless"
        } else {
            "lossy"
        };
        let name = format!("{priority} {kind}");
        labels = labels.child(label(MARGIN, top + DRAWN / 2.0 + 4.0, "start", name));
        top += LANE;
    }
    labels.child(label(MARGIN, top + 12.0, "start", "stalls"))
}

/// The scale of each lane: its height in Mbit/s, and 0.
fn scales(e: &PfcEvidence, peaks: &[u32]) -> Element {
    let mut scales = el("g").class("scales");
    let x = LEFT + WIDTH + MARGIN;
    for (index, peak) in peaks.iter().enumerate() {
        let top = PHASES + STORM + LANE * index as f64;
        let rate = plot::shortest(rate(e, *peak), 1);
        scales = scales
            .child(label(x, top + 9.0, "start", format_args!("{rate} Mbit/s")))
            .child(label(x, top + DRAWN, "start", "0"));
    }
    scales
}

/// Ticks with their seconds, below all rows.
fn axis(scale: &Scale, height: f64) -> Element {
    let tick = |(time, text): (Nanos, String)| {
        let x = scale.x(time);
        let anchor = if x < 12.0 {
            "start"
        } else if x > WIDTH - 12.0 {
            "end"
        } else {
            "middle"
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
fn scale(e: &PfcEvidence) -> Option<Scale> {
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
    (to > from).then_some(Scale {
        from,
        to,
        width: WIDTH,
    })
}

/// The phases, each with its begin, end and name.
fn spans(e: &PfcEvidence) -> Vec<(Nanos, Nanos, &'static str)> {
    e.phases
        .iter()
        .map(|span| (span.from, span.to.max(span.from), words::phase(span.phase)))
        .collect()
}

fn phase_bands(e: &PfcEvidence, scale: &Scale, height: f64) -> Vec<Element> {
    let bands = spans(e).into_iter().enumerate();
    bands
        .map(|(index, (from, to, word))| {
            let tip = format!("{word}: {} to {} s", scale.seconds(from), scale.seconds(to));
            rect(scale, from, to, 0.0, height)
                .class(if index % 2 == 0 { "phase" } else { "phase odd" })
                .child(el("title").text(tip))
        })
        .collect()
}

/// A rectangle at least one pixel wide.
fn rect(scale: &Scale, from: Nanos, to: Nanos, y: f64, height: f64) -> Element {
    let (left, right) = (scale.x(from), scale.x(to));
    el("rect")
        .with("x", format_args!("{left:.1}"))
        .with("y", format_args!("{y:.1}"))
        .with("width", format_args!("{:.1}", (right - left).max(1.0)))
        .with("height", format_args!("{height:.1}"))
}

/// One path of spans, each at least a pixel wide and none drawn twice; `None` without spans.
fn boxes(
    scale: &Scale,
    columns: Columns,
    spans: impl Iterator<Item = (Nanos, Nanos)>,
    y: f64,
    height: f64,
) -> Option<Element> {
    let mut pixels: Vec<(u32, u32)> = spans
        .map(|(from, to)| {
            let left = columns.left(scale.x(from));
            (left, columns.right(scale.x(to)).max(left + 1))
        })
        .collect();
    pixels.sort_unstable();
    let mut merged: Vec<(u32, u32)> = Vec::new();
    for (from, to) in pixels {
        match merged.last_mut() {
            Some(last) if from <= last.1 => last.1 = last.1.max(to),
            _ => merged.push((from, to)),
        }
    }
    let mut d = String::new();
    for (from, to) in &merged {
        let width = to - from;
        write!(d, "M{from} {y:.0}h{width}v{height:.0}h-{width}z").expect("a String");
    }
    (!d.is_empty()).then(|| el("path").with("d", d))
}

fn storm(e: &PfcEvidence, scale: &Scale, columns: Columns) -> Vec<Element> {
    let Some(storm) = &e.storm else {
        return Vec::new();
    };
    let frames = plot::count(storm.frames);
    let tip = format!("storm: {frames} frames by {}", storm.method);
    let band = rect(
        scale,
        storm.first.before,
        storm.last.after,
        PHASES + 2.0,
        STORM - 6.0,
    );
    let gaps = storm.gaps.iter().map(|gap| (gap.from, gap.to));
    let left_out = &storm.gaps_left_out;
    let left_out = (!left_out.is_none()).then_some((left_out.from, left_out.to));
    let tip_of_gaps = format!(
        "{} gaps in which a pause may have run out; the largest: {}",
        plot::count(storm.gaps_above()),
        plot::time(storm.max_gap)
    );
    let gaps = boxes(scale, columns, gaps.chain(left_out), PHASES, STORM - 2.0)
        .map(|path| path.class("gap").child(el("title").text(tip_of_gaps)));
    let band = band.class("storm").child(el("title").text(tip));
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
    // All frames of a repetition have one length.
    let length = e.plan.flows.first().map_or(0, |flow| flow.length);
    let bits = LineRate::frame_bits(length.min(usize::from(u16::MAX))) as f64;
    f64::from(frames) * bits / e.windows.width.max(1) as f64 * 1e3
}

fn lane(
    e: &PfcEvidence,
    failed: &Failed<'_>,
    scale: &Scale,
    priority: Priority,
    top: f64,
    peak: u32,
    columns: Columns,
) -> Element {
    let index = priority.index();
    let series = |windows: &[[u32; 8]]| {
        let counts: Vec<u32> = windows.iter().map(|window| window[index]).collect();
        let times = (e.windows.epoch, e.windows.width);
        Envelope::of(&counts, times, scale, columns.of_series())
    };
    let (offered, received) = (series(&e.windows.offered), series(&e.windows.received));
    let mut curves = el("g").with(
        "transform",
        format_args!("translate(0 {top}) scale(1 {})", DRAWN / 100.0),
    );
    let area = |path: String| format!("{path}V100H0z");
    if received.thinned {
        let least = area(received.path(WIDTH, peak, |(least, _)| *least));
        curves = curves.child(el("path").class("received").with("d", least));
    }
    let most = area(received.path(WIDTH, peak, |(_, most)| *most));
    curves = curves.child(
        el("path")
            .class(if received.thinned {
                "received most"
            } else {
                "received"
            })
            .with("data-lane", format_args!("{priority} received"))
            .with("data-peak", format_args!("{:.3}", rate(e, peak)))
            .with("d", most),
    );
    curves = curves.child(
        el("path")
            .class("offered")
            .with("data-lane", format_args!("{priority} offered"))
            .with("data-peak", format_args!("{:.3}", rate(e, peak)))
            .with("d", offered.path(WIDTH, peak, |(_, most)| *most)),
    );
    el("g")
        .child(
            el("path")
                .class("ground")
                .with("d", format_args!("M0 {}H{WIDTH}", top + DRAWN)),
        )
        .children(held(e, scale, columns, priority, top))
        .child(curves)
        .children(losses(e, scale, priority, top))
        .children(pauses(e, scale, columns, priority, top))
        .children(marks::of_lane(
            e,
            failed,
            scale,
            columns,
            priority,
            (top, DRAWN),
        ))
}

/// Spans in which the sender obeyed the DUT's XOFF.
fn held(
    e: &PfcEvidence,
    scale: &Scale,
    columns: Columns,
    priority: Priority,
    top: f64,
) -> Option<Element> {
    let sender = &e.sender;
    let spans = sender.withheld.iter();
    let spans = spans
        .filter(|span| span.priority == priority)
        .map(|span| (span.from, span.to));
    let left_out = sender.withheld_left_out.iter();
    let left_out = left_out
        .filter(|span| span.priority == priority && !span.spans.is_none())
        .map(|span| (span.spans.from, span.spans.to));
    boxes(scale, columns, spans.chain(left_out), top, DRAWN).map(|path| {
        let tip = format!("priority {priority}: held back for the DUT's XOFF");
        path.class("held").child(el("title").text(tip))
    })
}

/// Frames of `priority` that left and arrived in `phase`.
pub fn frames(e: &PfcEvidence, priority: Priority, phase: Phase) -> (u64, u64) {
    let flows = e.plan.flows.iter();
    flows.filter(|flow| flow.priority == priority).fold(
        (0, 0),
        |(sent, received): (u64, u64), flow| {
            let left = e.sent(flow.id, phase).map_or(0, |sent| sent.frames);
            let arrived = e.received(flow.id, phase).map_or(0, |found| found.frames);
            (sent.saturating_add(left), received.saturating_add(arrived))
        },
    )
}

fn losses(e: &PfcEvidence, scale: &Scale, priority: Priority, top: f64) -> Vec<Element> {
    let phases = e.phases.iter();
    phases
        .filter_map(|span| {
            let (sent, received) = frames(e, priority, span.phase);
            let lost = sent.checked_sub(received).filter(|lost| *lost > 0)?;
            let tip = format!(
                "priority {priority}, {}: {} of {} frames lost",
                words::phase(span.phase),
                plot::count(lost),
                plot::count(sent)
            );
            Some(
                rect(scale, span.from, span.to, top + DRAWN - 5.0, 5.0)
                    .class("loss")
                    .child(el("title").text(tip)),
            )
        })
        .collect()
}

/// Ticks for the XOFF and XON frames of the DUT: above the lane and below it.
fn pauses(
    e: &PfcEvidence,
    scale: &Scale,
    columns: Columns,
    priority: Priority,
    top: f64,
) -> Vec<Element> {
    let index = priority.index();
    let of = |xoff: bool| {
        let controls = e.tx_port.controls.iter().filter(move |control| {
            control.vector >> index & 1 == 1 && (control.quanta[index] > 0) == xoff
        });
        controls.map(|control| control.time).collect::<Vec<_>>()
    };
    let tip =
        |word| move |_, number| format!("priority {priority}: {number} {word} frames of the DUT");
    let xoff = marks::ticks(scale, columns, &of(true), top, 9.0, "xoff", tip("XOFF"));
    let xon = marks::ticks(
        scale,
        columns,
        &of(false),
        top + 10.0,
        9.0,
        "xon",
        tip("XON"),
    );
    xoff.into_iter().chain(xon).collect()
}

/// Times at which the tester, or the simulated DUT, did not run though it should have.
fn stalls(e: &PfcEvidence, scale: &Scale, columns: Columns, y: f64) -> Vec<Element> {
    let left_out = &e.sender.stalls_left_out;
    let left_out = (!left_out.is_none()).then_some((left_out.from, left_out.to));
    let own = e.sender.stalls.iter().map(|stall| (stall.from, stall.to));
    let own = boxes(scale, columns, own.chain(left_out), y, 5.0).map(|path| {
        let number = e.sender.stalls.len() as u64 + e.sender.stalls_left_out.count;
        let tip = format!("{} stalls of the tester", plot::count(number));
        path.class("stall").child(el("title").text(tip))
    });
    let stalls = e.dut.iter().flat_map(|dut| &dut.stalls);
    let dut = boxes(
        scale,
        columns,
        stalls.map(|stall| (stall.from, stall.to)),
        y + 6.0,
        5.0,
    );
    let dut = dut.map(|path| {
        path.class("dut-stall")
            .child(el("title").text("stalls of the simulated DUT"))
    });
    own.into_iter().chain(dut).collect()
}
