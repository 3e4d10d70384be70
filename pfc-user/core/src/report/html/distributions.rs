//! Distributions of a PFC repetition: gaps of the storm, and latencies by phase.

use pfc_ebpf::abi::account::LATENCY_BUCKETS;
use pfc_ebpf::stamp::Phase;
use pfc_ebpf::units::Nanos;

use super::markup::{Element, el};
use super::plot;
use super::words::{self, label};
use crate::evidence::pfc::PfcEvidence;
use crate::report::storm::quantile;

/// Size of the plot; the axis is below it, a line for marks above.
const WIDTH: f64 = 420.0;
/// Width of the vertical axis on the left.
const LEFT: f64 = 48.0;
const HEIGHT: f64 = 90.0;
const ABOVE: f64 = 18.0;
const BELOW: f64 = 20.0;

/// The distributions that the repetition recorded.
pub fn draw(e: &PfcEvidence, name: &str) -> Vec<Element> {
    let storm = e.plan.storm.as_ref().zip(e.storm.as_ref());
    let storm = storm.and_then(|(plan, storm)| {
        let lapse = plan.lapse(e.limits.line_rate);
        let (beside, mark) = if plan.asks() {
            ("pause of one frame", "pause")
        } else {
            ("three intervals", "three intervals")
        };
        let quantiles = [(0.5, "50 %"), (0.99, "99 %"), (0.999, "99.9 %")];
        let below = quantiles.iter().filter_map(|(q, word)| {
            let below = quantile(storm, *q)?;
            Some(format!("{word} below {}", plot::time(below)))
        });
        let below: Vec<String> = below.collect();
        let caption = format!(
            "Gaps between pause frames: {}; the largest {}; {beside} {}",
            below.join(", "),
            plot::time(storm.max_gap),
            plot::time(lapse)
        );
        // A gap is known to a sixteenth of an octave.
        let bars = storm.histogram.0.iter();
        let bars = bars.map(|(below, count)| Bar {
            from: below - below / 17,
            to: *below,
            count: *count,
        });
        histogram(
            &bars.collect::<Vec<_>>(),
            Some((lapse, mark)),
            name,
            &caption,
        )
    });
    let latencies = Phase::ALL
        .into_iter()
        .filter_map(|phase| latency(e, name, phase));
    storm.into_iter().chain(latencies).collect()
}

/// Latencies of all flows in a phase.
fn latency(e: &PfcEvidence, name: &str, phase: Phase) -> Option<Element> {
    let mut counts = [0u64; LATENCY_BUCKETS];
    let of_phase = e.received.iter().filter(|received| received.phase == phase);
    let mut largest = 0;
    for received in of_phase {
        largest = largest.max(received.latency_max);
        for (sum, count) in counts.iter_mut().zip(&received.latency) {
            *sum += u64::from(*count);
        }
    }
    let bars = counts.into_iter().enumerate().map(|(bits, count)| Bar {
        from: (1 << bits) / 2,
        to: 1 << bits,
        count,
    });
    let bars: Vec<Bar> = bars.collect();
    let total: u64 = counts.iter().sum();
    let caption = format!(
        "Latency in the phase {}: {} frames, the longest {}",
        words::phase(&e.plan, phase),
        plot::count(total),
        plot::time(largest)
    );
    histogram(&bars, None, name, &caption)
}

/// Number of lengths in a span, its end not included.
#[derive(Clone, Copy)]
struct Bar {
    from: Nanos,
    to: Nanos,
    count: u64,
}

/// Bars on a logarithmic axis; `None` if nothing was counted.
fn histogram(
    bars: &[Bar],
    mark: Option<(Nanos, &str)>,
    name: &str,
    caption: &str,
) -> Option<Element> {
    let bars: Vec<Bar> = bars.iter().copied().filter(|bar| bar.count > 0).collect();
    let marked = mark.map(|mark| mark.0);
    let least = bars.first()?.from.min(marked.unwrap_or(Nanos::MAX)).max(1);
    let most = bars.last()?.to.max(marked.unwrap_or(0)).max(2);
    // A part of a decade on each side, so that the ends are not at the edge.
    let (low, high) = ((least as f64).log10() - 0.2, (most as f64).log10() + 0.2);
    let x = |length: Nanos| ((length.max(1) as f64).log10() - low) / (high - low) * WIDTH;
    let highest = bars.iter().map(|bar| bar.count).max()?;
    let bottom = ABOVE + HEIGHT;
    let bar = |Bar { from, to, count }: &Bar| {
        let left = x(*from);
        let width = (x(*to) - left).max(2.0);
        // A single gap among thousands is the one to be seen.
        let height = (*count as f64 / highest as f64 * HEIGHT).max(2.0);
        format!("M{left:.1} {bottom}v-{height:.1}h{width:.1}v{height:.1}z")
    };
    let d: String = bars.iter().map(bar).collect();
    let about = format!("{caption} ({name})");
    let view_box = format!("-{LEFT} 0 {} {}", WIDTH + LEFT, bottom + BELOW);
    let mut drawing = words::drawing("histogram", &about, view_box)
        .child(words::path("bar", d))
        .child(words::path("ground", format_args!("M0 {bottom}H{WIDTH}")));
    // The numbers of the highest bar and of the ground.
    let unit = if mark.is_some() { "gaps" } else { "frames" };
    for (y, text) in [
        (ABOVE + 9.0, plot::count(highest)),
        (ABOVE + HEIGHT / 2.0 + 4.0, unit.to_owned()),
        (bottom, "0".to_owned()),
    ] {
        drawing = drawing.child(label(-4.0, y, "end", text));
    }
    if let Some((at, word)) = mark {
        let x = x(at);
        let (anchor, beside) = match x > WIDTH / 2.0 {
            true => ("end", x - 4.0),
            false => ("start", x + 4.0),
        };
        let text = format!("{word} {}", plot::time(at));
        drawing = drawing
            .child(words::path("mark", format_args!("M{x:.1} 4V{bottom}")))
            .child(label(beside, 12.0, anchor, text));
    }
    let mut free = 0.0;
    // Between two decades there may be no round length but 2 and 5 of them.
    let factors: &[u64] = if high - low < 1.6 { &[1, 2, 5] } else { &[1] };
    let decades = (0..=18).map(|decade| 10u64.pow(decade));
    for length in decades.flat_map(|decade| factors.iter().map(move |factor| factor * decade)) {
        let at = x(length);
        if at > free + 30.0 && at < WIDTH - 30.0 {
            let text = plot::time(length);
            drawing = drawing.child(label(at, bottom + 14.0, "middle", &text));
            free = at + 30.0;
        }
    }
    Some(
        el("figure")
            .class("distribution")
            .child(drawing)
            .child(el("figcaption").text(caption)),
    )
}
