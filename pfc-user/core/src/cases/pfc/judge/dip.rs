//! The check `no-dip`: what arrived in each 100 ms, beside what was offered in them.

use std::collections::BTreeSet;
use std::iter;
use std::ops::Range;

use pfc_ebpf::abi::account::{BATCH, Clock};
use pfc_ebpf::stamp::Phase;
use pfc_ebpf::units::{LineRate, Priority};

use super::preconditions::lost_by_tester;
use super::stalls::{left_out, of_storm_and_dut, overlaps, stalls, union, unlisted_lateness};
use super::throughput::{at_least, share_beside};
use crate::cases::finding::Finding;
use crate::cases::value::{Value, count, number, time};
use crate::evidence::pfc::{PfcEvidence, PhaseSpan, Stall};
use crate::plan::{FlowPlan, Nanos, PortName};
use crate::verdict::Bound;

/// Width of the windows.
const DIP_WINDOW: Nanos = 100_000_000;
/// Share of what was offered that has to arrive in each.
const DIP_SHARE: f64 = 0.99;
/// Share of each phase that has to lie in windows without a long stall.
const WATCHED: f64 = 0.8;
/// A stall up to it leaves no window out: what it delays is added to what may be under way. It is
/// the largest burst that a flow may send. Ordinary virtual machines have several such stalls a
/// second.
const SHORT_STALL: Nanos = DIP_WINDOW / 25;
/// A window is left out where short stalls may have delayed more than that: it would show a dip of
/// a tenth, and hardly a smaller one.
const MOST_DELAYED: Nanos = DIP_WINDOW / 20;

/// The whole windows of `phase` that were counted in, as indices; `None` where not all were.
pub(super) fn whole_windows(e: &PfcEvidence, phase: Phase) -> Option<Range<usize>> {
    let span = e.span(phase)?;
    let width = e.windows.width.max(1);
    let first = (span.from - e.windows.epoch).div_ceil(width);
    let last = (span.to - e.windows.epoch) / width;
    let counted = e.windows.offered.len().min(e.windows.received.len());
    (last <= counted as u64).then_some(first as usize..last as usize)
}

/// Number of windows in a [`DIP_WINDOW`].
pub(super) fn windows_in_a_dip(e: &PfcEvidence) -> usize {
    (DIP_WINDOW / e.windows.width.max(1)).clamp(1, DIP_WINDOW) as usize
}

/// The first ones of each `many` of these windows.
pub(super) fn starts(windows: &Range<usize>, many: usize) -> Range<usize> {
    windows.start..(windows.end + 1).saturating_sub(many)
}

/// Frames of the priorities in `group` in these windows.
pub(super) fn sum(windows: &[[u32; 8]], range: Range<usize>, group: &[Priority]) -> u64 {
    let of_group = |window: &[u32; 8]| -> u64 {
        let frames = group.iter().map(|p| u64::from(window[p.index()]));
        frames.sum()
    };
    windows.get(range).unwrap_or(&[]).iter().map(of_group).sum()
}

/// Upper bound of the latency of the path itself: the least that any frame was seen to have. A
/// queue in the DUT, which makes most frames later, is its own doing. `None`: not known.
///
/// Where the clock is read for each frame, the bound is the least of all phases, rounded up to a
/// power of two: at full load even the first frame of a phase may wait in a queue, and the probe
/// leaves half of the line free. With [`Clock::Batched`] that would be no upper bound: an arrival
/// recorded too early may show next to no latency on any path. Logged arrivals are exact all the
/// same, and those of the probe include both frames that were held back and frames that were not.
fn path_latency(e: &PfcEvidence) -> Option<Nanos> {
    match e.counting.clock {
        Clock::Exact => {
            let received = e.received.iter();
            let least = received
                .filter_map(|received| received.latency.iter().position(|frames| *frames > 0));
            Some(least.min().map_or(0, |bits| 1 << bits))
        }
        Clock::Batched => {
            let records = e.arrivals.records.iter();
            let probed = records.filter(|arrival| arrival.phase == Phase::Probe);
            probed.map(|arrival| Nanos::from(arrival.latency)).min()
        }
    }
}

/// Priorities that are judged together, and their flows.
struct Group<'e> {
    name: String,
    /// Every priority with traffic.
    all: bool,
    priorities: Vec<Priority>,
    flows: Vec<&'e FlowPlan>,
}

/// Each priority with traffic that nothing may hold in `phase`; and all of them together, of which
/// a smaller share shows.
fn groups(e: &PfcEvidence, phase: Phase) -> Vec<Group<'_>> {
    let held = |priority: &Priority| phase == Phase::Storm && e.plan.is_held(*priority);
    let free: Vec<_> = Priority::all().filter(|p| !held(p)).collect();
    let group = |name: String, all: bool, priorities: Vec<Priority>| {
        let flows = e.plan.flows.iter();
        let flows = flows.filter(|flow| priorities.contains(&flow.priority));
        Group {
            flows: flows.collect(),
            name,
            all,
            priorities,
        }
    };
    let each = free
        .iter()
        .map(|p| group(format!("frames of priority {p}"), false, vec![*p]));
    let all = if free.len() == Priority::COUNT {
        "all frames"
    } else {
        "all frames that no PFC may hold"
    };
    each.chain([group(all.into(), true, free.clone())])
        .filter(|group| !group.flows.is_empty())
        .collect()
}

impl Group<'_> {
    /// Frames that may be under way at the end of 100 ms: of each flow the frame that is due; what
    /// the line carries in `waiting`, as the DUT's scheduler may let any priority wait; and what is
    /// sent in `late`.
    fn under_way(&self, e: &PfcEvidence, waiting: Nanos, late: Nanos) -> f64 {
        let bits = |flow: &FlowPlan| LineRate::frame_bits(flow.length).max(1) as f64;
        let sent = |flow: &&FlowPlan| 1.0 + flow.rate as f64 * late as f64 / 1e9 / bits(flow);
        let lengths = self.flows.iter().map(|flow| bits(flow));
        let shortest = lengths.min_by(f64::total_cmp);
        let line = e.limits.line_rate.bits_per_second() as f64;
        let waiting = line * waiting as f64 / 1e9 / shortest.unwrap_or(1.0);
        waiting + self.flows.iter().map(sent).sum::<f64>()
    }

    /// The largest burst of which a part may wait in the DUT at the end of `times`, in a phase that
    /// began at `begin`. All frames together wait for a burst in that time. One priority may wait
    /// for an earlier one too: a full line never works it off, and whose frames wait is up to the
    /// DUT.
    fn burst(&self, e: &PfcEvidence, begin: Nanos, times: Range<Nanos>) -> Nanos {
        let since = if self.all { times.start } else { begin };
        let sender = &e.sender;
        // A sender that waits for room is late without having stalled.
        if sender.waits > 0 || sender.stalls_left_out.may_overlap(since, times.end) {
            return sender.max_burst;
        }
        // The sender sends at once what was due in the stall and since its last round before it.
        // That round was at most `Stall::ABOVE` earlier: otherwise the sender would have been late.
        let longest = longest_stall(e, since..times.end).max(Stall::ABOVE);
        sender.max_burst.min(longest + Stall::ABOVE)
    }

    /// Ports at that end of its flows.
    fn ports(&self, end: fn(&FlowPlan) -> &PortName) -> Nanos {
        let ports: BTreeSet<_> = self.flows.iter().map(|flow| end(flow)).collect();
        ports.len() as Nanos
    }
}

/// Time for which the simulated DUT, or a storm's sender beside it, stalled: what came meanwhile
/// waits, as a full line never works it off.
fn storm_or_dut_stalled(e: &PfcEvidence, times: &Range<Nanos>) -> Nanos {
    let within = of_storm_and_dut(e).filter(|stall| overlaps(stall, times.start, times.end));
    union(within.map(|stall| (stall.from, stall.to)))
}

/// The longest stall of the sender in `times`, but for the part in which the simulated DUT stalled
/// too. In a stall of the sender alone the DUT works off what an earlier one left.
fn longest_stall(e: &PfcEvidence, times: Range<Nanos>) -> Nanos {
    let stalls = e.sender.stalls.iter();
    let within = stalls.filter(|stall| overlaps(stall, times.start, times.end));
    let alone = within.map(|stall| {
        let common =
            of_storm_and_dut(e).map(|other| (other.from.max(stall.from), other.to.min(stall.to)));
        stall.length() - union(common.filter(|(from, to)| from < to))
    });
    alone.max().unwrap_or(0)
}

/// The windows of a phase: the first of each 100 ms without a long stall.
struct Watched<'e> {
    e: &'e PfcEvidence,
    span: PhaseSpan,
    /// All of them.
    windows: Range<usize>,
    starts: Vec<usize>,
    /// Share of the phase that lies in those 100 ms.
    share: f64,
}

fn watched(e: &PfcEvidence, phase: Phase) -> Option<Watched<'_>> {
    let (span, windows) = (e.span(phase)?, whole_windows(e, phase)?);
    let (width, many) = (e.windows.width.max(1), windows_in_a_dip(e));
    // Every 100 ms, and not every tenth: a dip may straddle two of those.
    let starts: Vec<usize> = starts(&windows, many)
        .filter(|start| {
            // Frames held up a window earlier arrive in this one.
            let from = (e.windows.epoch + *start as Nanos * width).saturating_sub(width);
            let to = from + DIP_WINDOW + 2 * width;
            let is_long = |stall: &Stall| stall.length() > SHORT_STALL && overlaps(stall, from, to);
            let times = from..to - width;
            let delayed = storm_or_dut_stalled(e, &times) + longest_stall(e, times);
            delayed <= MOST_DELAYED
                && !stalls(e).any(is_long)
                && !left_out(e).any(|spans| spans.may_overlap(from, to))
        })
        .collect();
    let mut seen = windows.start;
    let mut covered = 0;
    for start in &starts {
        covered += start + many - seen.max(*start);
        seen = start + many;
    }
    let length = (span.to - span.from).max(1);
    Some(Watched {
        e,
        span,
        windows,
        starts,
        share: (covered as f64 * width as f64 / length as f64).min(1.0),
    })
}

/// Share of `phase` that [`no_dip`] watches; `None` where the phase was not measured.
pub(super) fn watched_share(e: &PfcEvidence, phase: Phase) -> Option<f64> {
    watched(e, phase).map(|watched| watched.share)
}

/// `no-dip`.
pub(in crate::cases::pfc) fn no_dip(e: &PfcEvidence) -> Finding {
    let mut finding = Finding::new();
    let phases = [Phase::Baseline, Phase::Storm].into_iter();
    for phase in phases.filter(|phase| e.span(*phase).is_some()) {
        let Some(watched) = watched(e, phase) else {
            let what = format!("windows of phase {phase:?}");
            finding.undecided(what, "all", "some were not counted in");
            continue;
        };
        for group in groups(e, phase) {
            watched.least_share(&mut finding, &group);
        }
        watched.expect_watched(&mut finding);
    }
    if finding.assertions.is_empty() {
        let expected = ("at least " + Value::from(1)).is(Bound::AtLeast);
        finding.undecided("windows of 100 ms with traffic", expected, 0);
    }
    finding
}

/// A span of windows, for a group.
struct Seen {
    windows: Range<usize>,
    offered: u64,
    received: u64,
    /// Frames that may be under way at its edges.
    edges: f64,
}

impl Seen {
    /// Share that arrived of what should have; `None` where all may have been under way.
    fn share(&self) -> Option<f64> {
        let due = self.offered as f64 - self.edges;
        (due > 0.0).then(|| self.received as f64 / due)
    }

    /// The smallest dip, as a share of what is offered, that is one for certain: 1 where all that
    /// was offered may have been under way.
    fn resolution(&self) -> Option<f64> {
        let share = (self.edges / self.offered as f64).min(1.0);
        (self.offered > 0).then_some(1.0 - DIP_SHARE * (1.0 - share))
    }
}

impl Watched<'_> {
    /// Expects that most of the phase was watched: the rest may hide a dip.
    fn expect_watched(&self, finding: &mut Finding) {
        let (e, PhaseSpan { phase, from, to }) = (self.e, self.span);
        let what = format!("share of phase {phase:?} in windows of 100 ms without a long stall");
        let expected = at_least(WATCHED);
        if self.share >= WATCHED {
            finding.expect(what, expected, number(self.share, 2, ""), true);
            return;
        }
        let within = stalls(e).filter(|stall| overlaps(stall, from, to));
        let lengths = within.map(Stall::length);
        let long = lengths.filter(|length| *length > SHORT_STALL);
        let others = left_out(e).filter(|spans| spans.may_overlap(from, to));
        let others = others.map(|spans| (spans.count, spans.total));
        let (stalls, total) = long
            .map(|length| (1, length))
            .chain(others)
            .fold((0, 0), |sum, (count, total)| (sum.0 + count, sum.1 + total));
        if stalls == 0 {
            finding.undecidable(what, expected, "the phase is too short for 100 ms");
            return;
        }
        let actual = share_beside(self.share, WATCHED)
            + ": the tester or the simulated DUT stalled "
            + count(stalls, "times")
            + ", for "
            + time(total)
            + " in all";
        finding.undecided(what, expected, actual);
    }

    /// The watched windows, as `group` has them.
    fn seen(&self, group: &Group) -> impl Iterator<Item = Seen> {
        let many = windows_in_a_dip(self.e);
        let width = self.e.windows.width.max(1);
        self.starts.iter().map(move |&start| {
            // Frames held up a window earlier arrive in this one.
            let from = (self.e.windows.epoch + start as Nanos * width).saturating_sub(width);
            self.span_of(group, start..start + many, from)
        })
    }

    /// Spans of two, four, ... times 100 ms, and the whole phase, as `group` has them. What may be
    /// under way is hardly more at the edges of a long span than of a short one: a dip that lasts
    /// shows where it is too small for 100 ms. A span with too small a share has 100 ms with one.
    fn lasting(&self, group: &Group) -> impl Iterator<Item = Seen> {
        let all = &self.windows;
        let twice = |length: &usize| Some(length * 2);
        let lengths = iter::successors(Some(2 * windows_in_a_dip(self.e)), twice);
        let shorter = lengths
            .take_while(move |length| *length < all.len())
            .flat_map(move |length| {
                let starts = (all.start..=all.end - length).step_by(length / 2);
                starts.map(move |start| start..start + length)
            });
        let spans = shorter.chain([all.clone()]);
        spans
            .filter(|span| !span.is_empty())
            .filter(move |span| {
                let end = self.e.windows.epoch + span.end as Nanos * self.e.windows.width;
                !left_out(self.e).any(|spans| spans.may_overlap(self.span.from, end))
            })
            .map(move |span| self.span_of(group, span, self.span.from))
    }

    /// Takes these windows for `group`; frames held up since `from` may arrive in them.
    fn span_of(&self, group: &Group, windows: Range<usize>, from: Nanos) -> Seen {
        let e = self.e;
        let times = from..e.windows.epoch + windows.end as Nanos * e.windows.width;
        // Each port that receives carries a line, and each that sends has bursts of its own.
        let stalled = storm_or_dut_stalled(e, &times);
        let stalled = stalled.saturating_mul(group.ports(|flow| &flow.to));
        let burst = group.burst(e, self.span.from, times);
        let burst = burst.saturating_mul(group.ports(|flow| &flow.from));
        let waiting = stalled.saturating_add(burst);
        Seen {
            offered: sum(&e.windows.offered, windows.clone(), &group.priorities),
            received: sum(&e.windows.received, windows.clone(), &group.priorities),
            edges: edges(e) * group.under_way(e, waiting, lateness(e)),
            windows,
        }
    }

    /// Compares the least share of `group` in any 100 ms that are watched.
    fn least_share(&self, finding: &mut Finding, group: &Group) {
        let (e, phase) = (self.e, self.span.phase);
        let windows: Vec<Seen> = self.seen(group).collect();
        let most_offered = windows.iter().map(|seen| seen.offered).max().unwrap_or(0);
        let share = |seen: Seen| Some((seen.share()?, seen));
        let least = |spans: &mut dyn Iterator<Item = Seen>| {
            let shares = spans.filter_map(share);
            shares.min_by(|(one, _), (other, _)| one.total_cmp(other))
        };
        let what = format!(
            "least share received of {} in 100 ms of phase {phase:?}",
            group.name
        );
        let most = windows.iter().map(|seen| seen.edges).fold(0.0, f64::max);
        let in_a_window = least(&mut windows.into_iter());
        let lasting = least(&mut self.lasting(group)).filter(|(share, _)| *share < DIP_SHARE);
        // 100 ms that show a dip tell best when it was.
        let shows = |(share, _): &(f64, Seen)| *share < DIP_SHARE;
        let Some((share, seen)) = (match lasting {
            Some(lasting) if !in_a_window.as_ref().is_some_and(shows) => Some(lasting),
            _ => in_a_window,
        }) else {
            let what = format!("{} offered in 100 ms of phase {phase:?}", group.name);
            let expected =
                "more than the " + number(most, 1, "") + " that may be under way at its edges";
            let expected = expected.is(Bound::Above);
            let by_rate = edges(e) * group.under_way(e, 0, lateness(e)) >= most_offered as f64;
            if most_offered > 0 && by_rate {
                finding.undecidable(what, expected, most_offered);
            } else if !self.starts.is_empty() {
                finding.undecided(what, expected, most_offered);
            }
            return;
        };
        let expected = at_least(DIP_SHARE);
        let time = |windows: usize| time(windows as Nanos * e.windows.width.max(1));
        let place = time(seen.windows.start - self.windows.start);
        let length = seen.windows.len();
        let over = if length > windows_in_a_dip(e) {
            "over " + time(length) + ", "
        } else {
            Value::default()
        };
        let found = share_beside(share, DIP_SHARE)
            + " ("
            + over
            + place
            + " after its first window; "
            + number(seen.edges, 1, "frames")
            + " may be under way at the edges)";
        if share < DIP_SHARE && path_latency(e).is_none() {
            let unknown = found
                + ", but the latency of the path is not known: a reading of the clock served up to "
                + count(BATCH, "frames")
                + ", and no probe was logged";
            finding.undecided(what, expected, unknown);
        } else {
            let certain = lost_by_tester(e).0 == 0;
            finding.prove(what, expected, found, share >= DIP_SHARE, certain);
        }
    }
}

/// Number of edges at which frames may be missed. A frame under way as a window begins arrives in
/// it; but with [`Clock::Batched`] it may be recorded as having come before.
fn edges(e: &PfcEvidence) -> f64 {
    match e.counting.clock {
        Clock::Exact => 1.0,
        Clock::Batched => 2.0,
    }
}

/// The time by which a frame may be late on its way: on the path, and by what is too short for a
/// stall of the simulated DUT.
fn lateness(e: &PfcEvidence) -> Nanos {
    path_latency(e).unwrap_or(0) + unlisted_lateness(e)
}

/// The smallest dips of all frames, and of one priority's.
pub(in crate::cases::pfc) struct Resolution {
    /// Smallest dips in any watched 100 ms.
    pub in_a_window: [f64; 2],
    /// Smallest dips in the whole of a phase; `None` where stalls are not all listed.
    pub lasting: Option<[f64; 2]>,
}

/// The smallest dips that are found. `None` where no window tells.
pub(in crate::cases::pfc) fn resolution(e: &PfcEvidence) -> Option<Resolution> {
    let phases = [Phase::Baseline, Phase::Storm].into_iter();
    let watched: Vec<_> = phases.filter_map(|phase| watched(e, phase)).collect();
    let groups = groups(e, Phase::Storm);
    let worst = |all: bool, of: fn(&Watched, &Group) -> Option<f64>| {
        let of_kind = groups.iter().filter(|group| group.all == all);
        let found = of_kind.flat_map(|group| watched.iter().filter_map(|w| of(w, group)));
        found.max_by(f64::total_cmp)
    };
    let both =
        |of: fn(&Watched, &Group) -> Option<f64>| Some([worst(true, of)?, worst(false, of)?]);
    Some(Resolution {
        in_a_window: both(|watched, group| {
            let windows = watched.seen(group).filter_map(|seen| seen.resolution());
            windows.max_by(f64::total_cmp)
        })?,
        lasting: both(|watched, group| watched.lasting(group).last()?.resolution()),
    })
}
