//! The check `no-delay`: how late frames are that no PFC may hold, in the storm and in the pauses
//! of a probe, beside the baseline.
//!
//! The check finds a DUT that goes on and yet makes frames wait: for too short a time for `no-dip`,
//! or evenly. Frames on their way at the end of a window, divided by their rate, are the latency
//! there (Little's law); so no frame needs a record of its own.

use std::collections::BTreeSet;
use std::ops::Range;

use pfc_ebpf::stamp::Phase;
use pfc_ebpf::units::{LineRate, Priority};

use super::dip::sum;
use super::preconditions::lost_by_tester;
use super::stalls::{delay, left_out, stalls};
use crate::cases::finding::Finding;
use crate::cases::value::{Value, time};
use crate::evidence::pfc::{PfcEvidence, ProbeReport, Windows};
use crate::plan::{FlowPlan, Nanos};
use crate::verdict::Bound;

/// Time over which one latency is taken.
const WIDTH: Nanos = 10_000_000;
/// Fewest latencies that have a median.
const LEAST: usize = 3;
/// Load from which a burst stays in the DUT's queue.
const FULL: f64 = 0.98;

/// Frames of a priority that nothing holds.
struct Subject<'e> {
    e: &'e PfcEvidence,
    priority: Priority,
    flows: Vec<&'e FlowPlan>,
    /// Frames that never arrived: they are on their way for ever, and no delay.
    lost: u64,
    /// The greatest latency without a storm.
    usual: Nanos,
}

impl<'e> Subject<'e> {
    fn new(e: &'e PfcEvidence, priority: Priority) -> Option<Self> {
        let flows = e.plan.flows.iter();
        let flows: Vec<_> = flows.filter(|flow| flow.priority == priority).collect();
        let of_it = |flow: u16| flows.iter().any(|other| other.id == flow);
        let sent = e.sender.flows.iter().filter(|sent| of_it(sent.flow));
        let received = || e.received.iter().filter(|received| of_it(received.flow));
        let baseline = received().filter(|received| received.phase == Phase::Baseline);
        let usual = baseline.map(|received| received.latency_max).max()?;
        let sent: u64 = sent.map(|sent| sent.frames).sum();
        let lost = sent.saturating_sub(received().map(|received| received.frames).sum());
        Some(Self {
            e,
            priority,
            flows,
            lost,
            usual,
        })
    }

    /// Latency that is no finding: the baseline's greatest and `max_response`; the next frame of
    /// each flow; and at full load the largest burst, which no idle time works off.
    fn allowed(&self) -> Nanos {
        let bits = |flow: &FlowPlan| LineRate::frame_bits(flow.length) as f64;
        let rate: f64 = self.flows.iter().map(|flow| flow.rate as f64).sum();
        let due: f64 = self.flows.iter().map(|flow| bits(flow)).sum();
        let offered: u64 = self.e.plan.flows.iter().map(|flow| flow.rate).sum();
        let line = self.e.limits.line_rate.bits_per_second();
        let burst = if offered as f64 >= FULL * line as f64 {
            self.e.sender.max_burst
        } else {
            0
        };
        self.usual + self.e.limits.max_response + (due / rate.max(1.0) * 1e9) as Nanos + burst
    }

    /// The latency at the end of each `WIDTH` that ends in the span, but for those with a stall;
    /// less what earlier stalls explain.
    fn latencies(&self, span: &Span) -> Vec<Nanos> {
        let e = self.e;
        let windows = &e.windows;
        let (width, epoch) = (windows.width.max(1), windows.epoch);
        let many = many(windows);
        span.ends(windows)
            .filter_map(|end| {
                let (from, to) = (epoch + (end - many) * width, epoch + end * width);
                let stalled = stalls(e).any(|stall| stall.from < to && stall.to + width > from)
                    || left_out(e).any(|spans| spans.may_overlap(from, to));
                let sent = self.frames(&windows.offered, end - many..end);
                if stalled || sent == 0 {
                    return None;
                }
                let left = self.frames(&windows.offered, 0..end);
                let arrived = self.frames(&windows.received, 0..end) + self.lost;
                let under_way = left.saturating_sub(arrived);
                let latency = u128::from(under_way) * u128::from(to - from) / u128::from(sent);
                Some((latency as Nanos).saturating_sub(delay(e, span.since, to)))
            })
            .collect()
    }

    /// True if enough frames leave in the span for it to be looked at, but for stalls.
    fn is_long_enough(&self, span: &Span) -> bool {
        let windows = &self.e.windows;
        let many = many(windows);
        let sent = |end: &u64| self.frames(&windows.offered, end - many..*end) > 0;
        span.ends(windows).filter(sent).count() >= LEAST
    }

    fn frames(&self, windows: &[[u32; 8]], range: Range<u64>) -> u64 {
        let range = range.start as usize..range.end as usize;
        sum(windows, range, &[self.priority])
    }
}

/// Priorities with traffic that no PFC of the storm may hold.
fn subjects(e: &PfcEvidence) -> impl Iterator<Item = Subject<'_>> {
    Priority::all()
        .filter(move |priority| !e.plan.is_held(*priority))
        .filter_map(|priority| Subject::new(e, priority))
}

/// A span in which nothing but the DUT's own doing makes frames of a priority late.
struct Span {
    what: &'static str,
    /// Its traffic began then or earlier.
    since: Nanos,
    times: Range<Nanos>,
    /// The median of `times`; else the greatest of three in a row, for `times` are as short as the
    /// stop that is looked for.
    lasting: bool,
}

impl Span {
    /// The windows with which each `WIDTH` ends that ends in the span.
    fn ends(&self, windows: &Windows) -> impl Iterator<Item = u64> + use<> {
        let (width, many) = (windows.width.max(1), many(windows));
        let counted = windows.offered.len().min(windows.received.len()) as u64;
        let since = |time: Nanos| time.saturating_sub(windows.epoch);
        let first =
            (since(self.since).div_ceil(width) + many).max(since(self.times.start).div_ceil(width));
        // The last window also counts what came after it.
        let last = (since(self.times.end) / width).min(counted.saturating_sub(1));
        (first..=last).step_by(many as usize)
    }
}

/// Windows over which one latency is taken.
fn many(windows: &Windows) -> u64 {
    (WIDTH / windows.width.max(1)).max(1)
}

/// The storm's data, and the pauses of a probe that may not hold the priority.
fn spans(e: &PfcEvidence, priority: Priority) -> impl Iterator<Item = Span> {
    let storm = e.span(Phase::Storm).map(|span| Span {
        what: "the storm",
        since: span.from,
        times: span.from..span.to,
        lasting: true,
    });
    let lossless = e.plan.is_lossless(priority);
    let may_hold = move |probe: &&ProbeReport| lossless && probe.pauses(priority);
    let probes = e.probes.iter().filter(move |probe| !may_hold(probe));
    let pauses = probes.flat_map(|probe| {
        let frames = probe.burst.frames.iter().zip(&probe.left).enumerate();
        frames.map(|(index, (one, left))| {
            let classes = one.frame.classes.iter();
            let paused = classes.filter(|class| e.plan.is_lossless(**class));
            let times = paused.filter_map(|class| one.frame.time(*class));
            let times = times.map(|time| e.limits.pause_time(time));
            let end = left.before + times.max().unwrap_or(0);
            let next = probe.left.get(index + 1).map_or(end, |next| next.before);
            left.after..end.min(next)
        })
    });
    let pauses = pauses.map(|times| Span {
        what: "a pause of a probe",
        since: times.start.saturating_sub(WIDTH),
        times,
        lasting: false,
    });
    storm.into_iter().chain(pauses)
}

/// The median; the lower one of two, for it has to be certain. `None` of too few.
fn median(latencies: &[Nanos]) -> Option<Nanos> {
    let mut sorted = latencies.to_vec();
    sorted.sort_unstable();
    (sorted.len() >= LEAST).then(|| sorted[(sorted.len() - 1) / 2])
}

/// `no-delay`.
pub(in crate::cases::pfc) fn no_delay(e: &PfcEvidence) -> Finding {
    let mut finding = Finding::new();
    // The pauses of probes that are long enough, by their begin; those that stalls did not hide.
    let (mut pauses, mut looked_at) = (BTreeSet::new(), BTreeSet::new());
    for subject in subjects(e) {
        let allowed = subject.allowed();
        for span in spans(e, subject.priority) {
            let latencies = subject.latencies(&span);
            let found = if span.lasting {
                median(&latencies)
            } else {
                latencies.windows(LEAST).filter_map(median).max()
            };
            let begin = (!span.lasting).then_some(span.times.start);
            pauses.extend(begin.filter(|_| subject.is_long_enough(&span)));
            let Some(median) = found else { continue };
            looked_at.extend(begin);
            let holds = median <= allowed;
            // The pauses of probes are many, so only violations in them are reported.
            if holds && !span.lasting {
                continue;
            }
            let (priority, what) = (subject.priority, span.what);
            let what = format!("median latency of priority {priority} in {what}");
            let allowed = ("<= " + time(allowed)).is(Bound::AtMost);
            let certain = lost_by_tester(e).0 == 0;
            finding.prove(what, allowed, time(median), holds, certain);
        }
    }
    if finding.assertions.is_empty() {
        let expected = "at least " + Value::from(LEAST) + " for some priority";
        let what = "spans of 10 ms without a stall";
        finding.undecided(what, expected.is(Bound::AtLeast), "fewer");
    }
    if !pauses.is_empty() {
        let what = format!("pauses of probes, of {LEAST} such spans or more, that were looked at");
        let expected = ("at least " + Value::from(1)).is(Bound::AtLeast);
        let actual = Value::from(looked_at.len()) + " of " + pauses.len();
        if looked_at.is_empty() {
            finding.undecided(what, expected, actual);
        } else {
            finding.expect(what, expected, actual, true);
        }
    }
    finding
}

/// The smallest delay that is found in the storm; `None` where no priority is judged.
pub(in crate::cases::pfc) fn resolution(e: &PfcEvidence) -> Option<Nanos> {
    let allowed = subjects(e).map(|subject| subject.allowed());
    allowed.max().map(|allowed| allowed + 1)
}
