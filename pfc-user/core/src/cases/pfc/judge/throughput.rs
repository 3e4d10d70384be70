//! Checks on rates: `no-dip` and `throughput`; and the figures that are reported beside them.

use pfc_ebpf::abi::account::{BATCH, Clock};
use pfc_ebpf::stamp::Phase;
use pfc_ebpf::units::{LineRate, Priority};

use super::mac;
use super::preconditions::{lost_by_tester, stalled_within, stalls, withheld};
use crate::case::Figure;
use crate::cases::finding::Finding;
use crate::evidence::pfc::{PfcEvidence, Stall, StormReport};
use crate::plan::Nanos;
use crate::quantity::ms;

/// Width of the windows of `no-dip`.
const DIP_WINDOW: Nanos = 100_000_000;
/// Share of what was offered that has to arrive in each.
const DIP_SHARE: f64 = 0.99;

/// Lateness of frames for which the tester itself may be the reason: the sender's burst after a
/// delay, and the simulated DUT's lateness.
fn lateness(e: &PfcEvidence) -> Nanos {
    e.sender.max_burst + e.dut.as_ref().map_or(0, |dut| dut.max_lateness)
}

/// The whole windows of `phase` that were counted in, as indices; `None` where not all were.
fn whole_windows(e: &PfcEvidence, phase: Phase) -> Option<std::ops::Range<usize>> {
    let span = e.span(phase)?;
    let width = e.windows.width.max(1);
    let (first, last) = (
        (span.from - e.windows.epoch).div_ceil(width),
        (span.to - e.windows.epoch) / width,
    );
    let counted = e.windows.offered.len().min(e.windows.received.len());
    (last <= counted as u64).then_some(first as usize..last as usize)
}

/// Number of windows in a [`DIP_WINDOW`].
fn windows_in_a_dip(e: &PfcEvidence) -> usize {
    (DIP_WINDOW / e.windows.width.max(1)).clamp(1, DIP_WINDOW) as usize
}

/// Frames in `[from, from + DIP_WINDOW)` of the priorities in `group`, from windows whose start is
/// at `epoch`.
fn sum(windows: &[[u32; 8]], range: std::ops::Range<usize>, group: &[Priority]) -> u64 {
    windows
        .get(range)
        .unwrap_or(&[])
        .iter()
        .map(|window| {
            group
                .iter()
                .map(|p| u64::from(window[p.index()]))
                .sum::<u64>()
        })
        .sum()
}

/// Why a window between these times that received too little says nothing about the DUT, if so.
fn dip_excuse(e: &PfcEvidence, share: f64, from: Nanos, to: Nanos) -> Option<String> {
    if let Some(stall) = stalls(e).find(|stall| stall.from < to && stall.to > from) {
        return Some(format!(
            "the tester or the simulated DUT stalled for {}",
            ms(stall.to - stall.from)
        ));
    }
    let left_out = &e.sender.stalls_left_out;
    if left_out.may_overlap(from, to) {
        return Some(format!(
            "the tester stalled for {} in all, {} times more than there was room to list",
            ms(left_out.total),
            left_out.count
        ));
    }
    // Delays too short for a stall add up: at full load nothing makes up for the time that a late
    // burst leaves idle. The latency of the path delays the arrival of each phase as well.
    let Some(path) = path_latency(e) else {
        return Some(format!(
            "the latency of the path is not known: a reading of the clock served up to {BATCH} \
             frames, and no probe was logged"
        ));
    };
    let late = lateness(e) + path;
    let missing = ((1.0 - share) * DIP_WINDOW as f64) as Nanos;
    (missing <= late).then(|| {
        format!(
            "lateness of the tester and the path of up to {} explains it",
            ms(late)
        )
    })
}

/// The latency of the path itself, from above: the least that any frame was seen to have. A queue
/// in the DUT, which makes most frames later, is its own doing. `None`: not known.
///
/// Where the clock is read for each frame it is the least of the baseline, rounded up to a power of
/// two. With [`Clock::Batched`] that would not be from above: an arrival told too early may show
/// next to no latency on any path. Logged arrivals are exact all the same, and those of the probe
/// are of frames that nothing held back as well as of such that were.
fn path_latency(e: &PfcEvidence) -> Option<Nanos> {
    match e.counting.clock {
        Clock::Exact => {
            let baseline = e
                .received
                .iter()
                .filter(|received| received.phase == Phase::Baseline);
            let least = baseline
                .filter_map(|received| received.latency.iter().position(|frames| *frames > 0))
                .min();
            Some(least.map_or(0, |bits| 1 << bits))
        }
        Clock::Batched => {
            let probed = e
                .arrivals
                .records
                .iter()
                .filter(|arrival| arrival.phase == Phase::Probe);
            probed.map(|arrival| Nanos::from(arrival.latency)).min()
        }
    }
}

/// `no-dip`.
pub(in crate::cases::pfc) fn no_dip(e: &PfcEvidence) -> Finding {
    let mut finding = Finding::new();
    let (lossless, lossy): (Vec<Priority>, Vec<Priority>) = Priority::all()
        .filter(|p| e.plan.flows.iter().any(|flow| flow.priority == *p))
        .partition(|p| e.plan.is_lossless(*p));
    for phase in [Phase::Baseline, Phase::Storm] {
        if e.span(phase).is_none() {
            continue;
        }
        let Some(windows) = whole_windows(e, phase) else {
            finding.undecided(
                format!("windows of phase {phase:?}"),
                "all",
                "some were not counted in",
            );
            continue;
        };
        for (name, group) in [("lossy", &lossy), ("lossless", &lossless)] {
            let what = format!(
                "least share received of the {name} frames offered in 100 ms of phase {phase:?}"
            );
            least_share(e, windows.clone(), group).record(e, &what, &mut finding);
        }
    }
    if finding.assertions.is_empty() {
        finding.undecided("windows of 100 ms with traffic", "at least 1", "0");
    }
    finding
}

/// The least shares of a group of priorities in 100 ms of a phase, each with the number of its
/// first window in the phase.
#[derive(Default)]
struct LeastShare {
    /// The least share that nothing of the tester explains, and its window.
    worst: Option<(f64, usize)>,
    /// The least share below the limit that the tester may explain, its window, and the
    /// explanation.
    excused: Option<(f64, usize, String)>,
}

fn least_share(e: &PfcEvidence, windows: std::ops::Range<usize>, group: &[Priority]) -> LeastShare {
    let mut least = LeastShare::default();
    let width = e.windows.width.max(1);
    let many = windows_in_a_dip(e);
    // Every 100 ms, and not every tenth: a dip may straddle two of those.
    let starts = windows.clone();
    for start in starts.take_while(|start| start + many <= windows.end) {
        let offered = sum(&e.windows.offered, start..start + many, group);
        if offered == 0 {
            continue;
        }
        let received = sum(&e.windows.received, start..start + many, group);
        let share = received as f64 / offered as f64;
        let from = e.windows.epoch + start as Nanos * width;
        let excuse = if share >= DIP_SHARE {
            None
        } else {
            dip_excuse(
                e,
                share,
                from.saturating_sub(width),
                from + DIP_WINDOW + width,
            )
        };
        let at = start - windows.start;
        if let Some(excuse) = excuse {
            if least
                .excused
                .as_ref()
                .is_none_or(|(least, ..)| share < *least)
            {
                least.excused = Some((share, at, excuse));
            }
        } else if least.worst.is_none_or(|(least, _)| share < least) {
            least.worst = Some((share, at));
        }
    }
    least
}

impl LeastShare {
    fn record(self, e: &PfcEvidence, what: &str, finding: &mut Finding) {
        let width = e.windows.width.max(1);
        let place = |at: usize| format!("{} after its first window", ms(at as Nanos * width));
        let expected = format!(">= {DIP_SHARE}");
        if let Some((share, at, excuse)) = self.excused {
            let found = format!("{share:.4} ({}), but {excuse}", place(at));
            finding.undecided(what, &expected, found);
        }
        if let Some((share, at)) = self.worst {
            finding.prove(
                what,
                expected,
                format!("{share:.4} ({})", place(at)),
                share >= DIP_SHARE,
                lost_by_tester(e).0 == 0,
            );
        }
    }
}

/// The time that `throughput` is taken over: from the storm phase's begin to the last of its frames
/// that arrived, and at the least to its end.
fn storm_time(e: &PfcEvidence) -> Option<(Nanos, Nanos)> {
    let span = e.span(Phase::Storm)?;
    let last = e
        .plan
        .flows
        .iter()
        .filter_map(|flow| e.received(flow.id, Phase::Storm))
        .map(|arrived| arrived.last)
        .max();
    Some((span.from, last.map_or(span.to, |last| last.max(span.to))))
}

/// Layer-1 rates of the storm phase in bit/s: offered (with what the DUT's XOFF withheld) and
/// received, where the last frames are taken to have come earlier than they did by `late`, and each
/// XOFF to have held for less by that in all: what comes at once after a delay of the tester fills
/// the DUT's buffers, and a simulated DUT that stalls sets nothing free.
fn rates(e: &PfcEvidence, late: Nanos) -> Option<(f64, f64)> {
    let span = e.span(Phase::Storm)?;
    let (_, last) = storm_time(e)?;
    let mut offered = 0.0;
    let mut received = 0.0;
    for flow in &e.plan.flows {
        let bits = LineRate::frame_bits(flow.length) as f64;
        offered += e.sent(flow.id, Phase::Storm).map_or(0, |sent| sent.frames) as f64 * bits;
        offered +=
            flow.rate as f64 * withheld(e, flow, Phase::Storm).saturating_sub(late) as f64 / 1e9;
        received += e
            .received(flow.id, Phase::Storm)
            .map_or(0, |arrived| arrived.frames) as f64
            * bits;
    }
    let sending = (span.to - span.from).max(1) as f64 / 1e9;
    let receiving = (last.saturating_sub(late).max(span.to) - span.from).max(1) as f64 / 1e9;
    (offered > 0.0).then_some((offered / sending, received / receiving))
}

/// Lateness in the storm phase for which the tester itself may be the reason: its stalls in that
/// time, and delays too short to be listed.
fn lateness_in_storm(e: &PfcEvidence) -> Nanos {
    let stalled = storm_time(e).map_or(0, |(from, to)| stalled_within(e, from, to));
    let unlisted = e
        .dut
        .as_ref()
        .map_or(0, |dut| dut.max_lateness.min(Stall::ABOVE));
    stalled + e.sender.max_burst + unlisted
}

/// `throughput`.
pub(in crate::cases::pfc) fn throughput(e: &PfcEvidence) -> Finding {
    let mut finding = Finding::new();
    let what = "received layer-1 rate as a share of the offered";
    let expected = format!(">= {}", e.limits.min_throughput);
    let late = lateness_in_storm(e);
    let (Some((offered, received)), Some((offered_at_best, at_best))) =
        (rates(e, 0), rates(e, late))
    else {
        finding.undecided(what, expected, "no traffic during the storm");
        return finding;
    };
    let (share, at_best) = (received / offered, at_best / offered_at_best);
    let actual = format!(
        "{share:.4} ({:.1} of {:.1} Mbit/s)",
        received / 1e6,
        offered / 1e6
    );
    if share < e.limits.min_throughput && at_best >= e.limits.min_throughput {
        finding.undecided(
            what,
            expected,
            format!(
                "{actual}, but the tester's own lateness of up to {} explains it",
                ms(late)
            ),
        );
    } else {
        finding.prove(
            what,
            expected,
            actual,
            share >= e.limits.min_throughput,
            lost_by_tester(e).0 == 0,
        );
    }
    finding
}

/// Name and value of a figure.
type Named = (String, String);

/// Informational figures of a repetition.
pub(super) fn figures(e: &PfcEvidence) -> Vec<Figure> {
    let mut named = traffic_figures(e);
    named.extend(storm_figures(e));
    named.push(("PAUSE/PFC from the DUT counted by".into(), mac::figure(e)));
    named.extend(pfc_figures(e));
    named.extend(accounting_figures(e));
    let figure = |(name, value)| Figure {
        repetition: e.plan.name.clone(),
        name,
        value,
    };
    named.into_iter().map(figure).collect()
}

/// Rates of the storm phase, and waits of the sender.
fn traffic_figures(e: &PfcEvidence) -> Vec<Named> {
    let mut named = Vec::new();
    let link = e.limits.line_rate.bits_per_second() as f64;
    let rate = |rate: f64| {
        let share = 100.0 * rate / link;
        format!("{:.1} Mbit/s, {share:.1} % of the link", rate / 1e6)
    };
    if let Some((offered, received)) = rates(e, 0) {
        named.push(("offered in the storm phase".into(), rate(offered)));
        named.push(("received in the storm phase".into(), rate(received)));
    }
    if let Some(worst) = worst_window(e) {
        named.push((
            "least received in 100 ms of the storm phase".into(),
            format!("{:.1} % of the link", 100.0 * worst),
        ));
    }
    if e.sender.waits > 0 {
        named.push((
            "waits for room in the port's queue".into(),
            format!("{}; the frames left later", e.sender.waits),
        ));
    }
    named
}

fn storm_figures(e: &PfcEvidence) -> Vec<Named> {
    let Some(storm) = &e.storm else {
        return Vec::new();
    };
    let refused = if storm.errors > 0 {
        format!(", refused {} times", storm.errors)
    } else {
        String::new()
    };
    vec![
        ("storm frames".into(), format!("{}{refused}", storm.frames)),
        ("storm sent by".into(), storm.method.clone()),
        ("gaps of the storm".into(), gaps(e, storm)),
    ]
}

/// XOFF and XON of the DUT, by priority, and its PAUSE frames.
fn pfc_figures(e: &PfcEvidence) -> impl Iterator<Item = Named> {
    let pause = &e.tx_port.pause;
    let pause = (pause.xoff + pause.xon > 0).then(|| {
        let counts = format!("{} with a time, {} with time 0", pause.xoff, pause.xon);
        ("PAUSE (802.3x) from the DUT".to_owned(), counts)
    });
    let by_priority = Priority::all().filter_map(|priority| {
        let class = &e.tx_port.pfc[priority.index()];
        (class.xoff + class.xon > 0).then(|| {
            (
                format!("PFC from the DUT, priority {priority}"),
                format!("{} XOFF, {} XON", class.xoff, class.xon),
            )
        })
    });
    by_priority.chain(pause)
}

/// Sampling of the programs, and the largest latency without a storm.
fn accounting_figures(e: &PfcEvidence) -> Vec<Named> {
    let mut named = Vec::new();
    if e.counting.clock == Clock::Batched || e.counting.verify_every > 1 {
        let clock = if e.counting.clock == Clock::Batched {
            format!("for up to {BATCH} frames")
        } else {
            "for each frame".into()
        };
        named.push((
            "accounting at this rate".into(),
            format!(
                "one reading of the clock {clock}, UDP checksum of one frame in {}",
                e.counting.verify_every
            ),
        ));
    }
    let worst = e
        .received
        .iter()
        .filter(|received| received.phase == Phase::Baseline)
        .map(|received| received.latency_max)
        .max();
    named.extend(worst.map(|worst| ("largest latency in the baseline".into(), ms(worst))));
    named
}

/// The gaps of the storm beside its pause time.
fn gaps(e: &PfcEvidence, storm: &StormReport) -> String {
    let pause = e.limits.pause_time(e.plan.storm.quanta);
    let below = |(name, q)| {
        let length = storm
            .histogram
            .quantile(q)
            .map(|length| length.min(storm.max_gap));
        length.map_or(String::new(), |length| {
            format!("{name} {}, ", brief(length))
        })
    };
    let quantiles: String = [("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999)]
        .map(below)
        .concat();
    let share = 100.0 * storm.max_gap as f64 / pause.max(1) as f64;
    let above = if storm.gaps_above() == 0 {
        "none".to_owned()
    } else {
        storm.gaps_above().to_string()
    };
    format!(
        "{quantiles}max {}, {share:.1} % of the pause time {}; {above} above the shortest pause",
        brief(storm.max_gap),
        brief(pause)
    )
}

/// A time to three digits and more.
fn brief(nanos: Nanos) -> String {
    if nanos < 1_000_000 {
        format!("{:.1} us", nanos as f64 / 1e3)
    } else {
        ms(nanos)
    }
}

/// The least share of the link that was received in any 100 ms of the storm phase.
fn worst_window(e: &PfcEvidence) -> Option<f64> {
    let windows = whole_windows(e, Phase::Storm)?;
    let many = windows_in_a_dip(e);
    let bits = LineRate::frame_bits(e.plan.flows.first()?.length) as f64;
    let all: Vec<Priority> = Priority::all().collect();
    windows
        .clone()
        .take_while(|start| start + many <= windows.end)
        .map(|start| sum(&e.windows.received, start..start + many, &all) as f64 * bits * 10.0)
        .min_by(f64::total_cmp)
        .map(|rate| rate / e.limits.line_rate.bits_per_second() as f64)
}
