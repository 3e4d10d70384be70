//! The probes: single pause frames on running traffic, and the waits before, between and after
//! them.
//!
//! No two pauses are alike, so that a device that mistakes one field of a frame for another, or
//! keeps one rule of several, has nowhere to hide: no time is the same with its octets swapped, the
//! fields of classes that are not named say something else, and one pause each is ended by XON,
//! shortened, sent to lossless and lossy classes together, and sent while the link is full.

use pfc_ebpf::units::{LineRate, Priority, Quanta};

use super::port::PortContext;
use crate::plan::form::Form;
use crate::plan::{
    FlowPlan, Limits, Nanos, PfcFrame, ProbeBurst, ProbeFrame, ProbePlan, RepetitionPlan,
    exact_load,
};

/// Load of a probe in percent of the flows' rates: at full load a queue that once built up stays
/// and hides the response.
const LOAD: u8 = 50;
/// The load at which a device has most to do.
pub(super) const FULL: u8 = 100;
/// Probes at most, where the plan has no more than half as many.
const MOST: usize = 30;
/// The times of `pfc.pause-time`, in quanta.
pub(super) const PAUSE_TIMES: [Quanta; 16] = [
    Quanta(1),
    Quanta(2),
    Quanta(5),
    Quanta(10),
    Quanta(20),
    Quanta(50),
    Quanta(100),
    Quanta(200),
    Quanta(500),
    Quanta(1000),
    Quanta(2000),
    Quanta(5000),
    Quanta(0x1fff),
    Quanta(0x3fff),
    Quanta(0x7fff),
    Quanta::MAX,
];
/// Pauses of each of them.
const TIMES_EACH: u32 = 5;
/// Pauses of `pfc.response-time`, and the time by which each comes later in its traffic than that
/// before it: no multiple of the time of a frame.
const POINTS: u32 = 100;
const POINT: Nanos = 7919;
/// An XON, or a frame that changes a pause, leaves after this part of the pause.
const PART: Nanos = 3;
/// Shortest span of undisturbed traffic before a pause frame.
const LEAST_QUIET: Nanos = 20_000_000;
/// Shortest such span on a full link.
const QUIET_WHEN_FULL: Nanos = 5_000_000;
/// Multiple of an odd frame's time after which the next one leaves: a DUT that pauses by it has
/// drained by then.
const AGAIN: Nanos = 3;
/// Multiple of `max_response` that a pause is to last, so that it differs from none.
const RESPONSES: Nanos = 10;

/// Load of the probes of these flows, but for the one at full load: low enough to log each arrival.
pub(super) fn load(flows: &[FlowPlan]) -> u8 {
    LOAD.min(exact_load(flows))
}

/// Probes at most in all: each burst of `plan`, and some of them again.
pub(super) fn most(plan: &ProbePlan) -> usize {
    MOST.max(2 * plan.bursts.len())
}

/// The pause times that a speed and the DUT's limits allow.
#[derive(Clone, Copy, Debug)]
struct Times<'p> {
    port: &'p PortContext,
    /// Quanta of the longest pause, and of the shortest.
    most: u16,
    least: u16,
}

impl<'p> Times<'p> {
    /// The longest keeps no frame for more than half of what the DUT has to hold it for.
    fn at(port: &'p PortContext) -> Self {
        let quanta = |time: Nanos| {
            let rate = u128::from(port.line_rate.bits_per_second());
            let quanta = u128::from(time) * rate / (512 * 1_000_000_000);
            u16::try_from(quanta).unwrap_or(u16::MAX).max(1)
        };
        let most = quanta(port.max_residence / 2);
        let wanted = quanta(RESPONSES * port.max_response);
        // At high speeds the longest pause is not that long; times that differ show more.
        let least = wanted.min((u32::from(most) * 6 / 10) as u16);
        Self { port, most, least }
    }

    /// About `percent` percent of the longest pause.
    fn part(&self, percent: u32) -> Quanta {
        let wanted = (u32::from(self.most) * percent / 100) as u16;
        Quanta(lopsided(wanted.max(1), self.most))
    }

    /// About `percent` percent of the longest pause, or the shortest pause if that is longer.
    fn percent(&self, percent: u32) -> Quanta {
        let wanted = (u32::from(self.most) * percent / 100) as u16;
        Quanta(lopsided(wanted.max(self.least), self.most))
    }

    fn nanos(&self, quanta: Quanta) -> Nanos {
        quanta.nanos(self.port.line_rate)
    }

    /// A pause of `paused` at `load`, of about `percent` percent of the longest, that runs out.
    fn runs_out(&self, load: u8, percent: u32, paused: &[Priority]) -> ProbeBurst {
        let time = self.percent(percent);
        burst(load, [(0, PfcFrame::uniform(paused, time))])
    }

    /// Such a pause that the frame which `xon` makes ends; `xon` is given the time of the pause.
    fn ended(
        &self,
        load: u8,
        percent: u32,
        paused: &[Priority],
        xon: impl Fn(Quanta) -> PfcFrame,
    ) -> ProbeBurst {
        let time = self.percent(percent);
        let xoff = PfcFrame::uniform(paused, time);
        burst(load, [(0, xoff), (self.nanos(time) / PART, xon(time))])
    }
}

/// A number near `wanted`, at most `most`, that is quite another one with its octets swapped.
fn lopsided(wanted: u16, most: u16) -> u16 {
    let beside = |high: u8| {
        let low = if high < 0x80 {
            high + 0x60
        } else {
            high - 0x60
        };
        u16::from_be_bytes([high, low])
    };
    let [high, _] = wanted.to_be_bytes();
    match high {
        0 => wanted,
        high if beside(high) <= most => beside(high),
        1 => wanted,
        high => beside(high - 1),
    }
}

/// Pairs each class with the same time.
fn each(classes: &[Priority], time: Quanta) -> Vec<(Priority, Quanta)> {
    classes.iter().map(|class| (*class, time)).collect()
}

/// Returns the first half of the classes, rounded up.
fn first_half(classes: &[Priority]) -> &[Priority] {
    &classes[..classes.len().div_ceil(2)]
}

/// Probes at `load` that show that pause frames arrive at all: a pause of `paused` that runs out,
/// three times.
pub(super) fn arrival(port: &PortContext, load: u8, paused: &[Priority]) -> Vec<ProbeBurst> {
    let times = Times::at(port);
    [100, 75, 50]
        .map(|percent| times.runs_out(load, percent, paused))
        .into()
}

fn burst(load: u8, frames: impl IntoIterator<Item = (Nanos, PfcFrame)>) -> ProbeBurst {
    let frames = frames.into_iter();
    ProbeBurst {
        load,
        frames: frames
            .map(|(after, frame)| ProbeFrame { after, frame })
            .collect(),
    }
}

/// Probes at `load` that show how pauses of `paused` begin and end, and one at full load; the
/// classes `beside` are named beside them in one.
pub(super) fn judged(
    port: &PortContext,
    load: u8,
    paused: &[Priority],
    beside: &[Priority],
) -> Vec<ProbeBurst> {
    let times = Times::at(port);
    // An XON for some ends the pause of these alone.
    let ended = |percent, ends: &[Priority]| {
        let xon = |time| PfcFrame::new(&each(ends, Quanta::ZERO), time);
        times.ended(load, percent, paused, xon)
    };
    let shortened = {
        let (long, short) = (times.percent(100), times.percent(35));
        let [first, second] = [long, short].map(|time| PfcFrame::uniform(paused, time));
        burst(load, [(0, first), (times.nanos(long) / 4, second)])
    };
    let mut bursts = vec![
        times.runs_out(load, 60, paused),
        ended(100, paused),
        shortened,
        ended(80, first_half(paused)),
        mixed(&times, load, paused, beside),
        ended(90, paused),
        times.runs_out(FULL, 30, paused),
    ];
    bursts.dedup();
    bursts
}

/// The lossy classes that a repetition names beside lossless ones: all but one, whose frames show
/// the latency of the path. In each turn it is the next one, so that each class is named in some.
/// The only one is named in every other turn.
pub(super) fn lossy_named(lossy: &[Priority], turn: usize) -> Vec<Priority> {
    let out = turn % lossy.len().max(2);
    let mut named = lossy.to_vec();
    if out < named.len() {
        named.remove(out);
    }
    named
}

/// Probes at `load` that show what a frame with the bits of all classes and times of 0 does to
/// pauses of `paused`, and where there is no pause.
pub(super) fn zeroed(port: &PortContext, load: u8, paused: &[Priority]) -> Vec<ProbeBurst> {
    let times = Times::at(port);
    let zero = PfcFrame {
        form: Form::Standard,
        classes: Priority::all().collect(),
        times: [Quanta::ZERO; Priority::COUNT],
    };
    let ended = |percent, paused| times.ended(load, percent, paused, |_| zero.clone());
    vec![
        ended(100, paused),
        ended(80, first_half(paused)),
        burst(load, [(0, zero.clone())]),
    ]
}

/// Probes at `load` in which one frame gives each class of `paused` another time: once the higher
/// classes wait longer, once the lower ones; a frame that names the lossy classes `beside`, too;
/// and one while the link is full. The shortest is about half as long as the longest, or less.
pub(super) fn independent(
    port: &PortContext,
    load: u8,
    paused: &[Priority],
    beside: &[Priority],
) -> Vec<ProbeBurst> {
    let times = Times::at(port);
    let least = times.least.min(times.part(45).0);
    let range = u32::from(times.most - least);
    let steps = paused.len().max(2) as u32 - 1;
    let time = |step: usize| {
        let time = least + (range * step as u32 / steps) as u16;
        // Neighbours stay apart.
        let apart = range / steps >= 0x200;
        Quanta(if apart {
            lopsided(time, times.most)
        } else {
            time
        })
    };
    let rising: Vec<_> = (0..)
        .map(time)
        .zip(paused)
        .map(|(time, class)| (*class, time))
        .collect();
    let turned = paused.iter().rev().zip(&rising);
    let falling: Vec<_> = turned.map(|(class, (_, time))| (*class, *time)).collect();
    let all = [each(beside, times.percent(100)), rising.clone()].concat();
    let longest = Quanta(times.most);
    let one = |load, named: &[_]| burst(load, [(0, PfcFrame::new(named, longest))]);
    vec![
        one(load, &rising),
        one(load, &falling),
        one(load, &all),
        one(FULL, &falling),
    ]
}

/// Probes at `load` in which a later frame replaces the time of the first: a pause is shortened,
/// shortened for half of the classes alone, and prolonged; and one is shortened while the link is
/// full. Old and new end are two fifths of the longest pause apart, or more.
pub(super) fn reloaded(port: &PortContext, load: u8, paused: &[Priority]) -> Vec<ProbeBurst> {
    let times = Times::at(port);
    // Time passes before the later frame, so that it need not ask for the shortest pause itself.
    let (long, short) = (times.percent(100), times.part(10));
    let reload = |load, first: Quanta, then: &[Priority], second: Quanta| {
        let second = PfcFrame::new(&each(then, second), first);
        let first_frame = PfcFrame::uniform(paused, first);
        burst(
            load,
            [(0, first_frame), (times.nanos(first) / PART, second)],
        )
    };
    let mut bursts = vec![
        reload(load, long, paused, short),
        reload(load, long, first_half(paused), short),
        reload(load, times.percent(50), paused, times.percent(80)),
        reload(FULL, long, paused, short),
    ];
    bursts.dedup();
    bursts
}

/// Probes at `load` that show what PFC of each of these forms does to `paused`. Behind a frame that
/// the DUT need not heed comes one of the standard's form, when whatever that frame held has left.
pub(super) fn odd(
    port: &PortContext,
    load: u8,
    paused: &[Priority],
    forms: &[Form],
) -> Vec<ProbeBurst> {
    let times = Times::at(port);
    let of_form = |(index, form): (u32, &Form)| {
        let time = times.percent(100 - index);
        let odd = PfcFrame::uniform(paused, time).of(*form);
        if odd.is_heeded() {
            return burst(load, [(0, odd)]);
        }
        let xoff = PfcFrame::uniform(paused, times.percent(55 + 2 * index));
        burst(load, [(0, odd), (AGAIN * times.nanos(time), xoff)])
    };
    (0..).zip(forms).map(of_form).collect()
}

/// Probes at `load` with single pauses of `paused`: several of each time, which differ a little. No
/// time is too short to be told from none, or longer than the DUT has to hold a frame.
pub(super) fn of_each_time(port: &PortContext, load: u8, paused: &[Priority]) -> Vec<ProbeBurst> {
    let times = Times::at(port);
    let shows = |time: &Quanta| times.nanos(*time) >= port.max_response * 3 / 2;
    let listed = PAUSE_TIMES.into_iter().filter(shows);
    let mut found: Vec<Quanta> = listed.filter(|time| time.0 <= times.most).collect();
    if found.is_empty() {
        found.push(Quanta(times.most));
    }
    let several = |time: Quanta| {
        let less = move |part| Quanta(time.0 - (u32::from(time.0) * part / 100) as u16);
        (0..TIMES_EACH).map(less)
    };
    let found = found.into_iter().flat_map(several);
    found
        .map(|time| burst(load, [(0, PfcFrame::uniform(paused, time))]))
        .collect()
}

/// Probes with a single pause of `paused` each on a full link, all at other points of the traffic.
pub(super) fn at_points(port: &PortContext, paused: &[Priority]) -> Vec<ProbeBurst> {
    let times = Times::at(port);
    let at_point = |number: u32| {
        let time = times.percent(20 + number % 20);
        let xoff = PfcFrame::uniform(paused, time);
        burst(FULL, [(Nanos::from(number) * POINT, xoff)])
    };
    (0..POINTS).map(at_point).collect()
}

/// Probes at `load` with PFC of each of these forms during a pause of `paused`, which it does not
/// change; then comes a frame of the standard's form, which makes the pause longer.
pub(super) fn odd_meanwhile(
    port: &PortContext,
    load: u8,
    paused: &[Priority],
    forms: &[Form],
) -> Vec<ProbeBurst> {
    let times = Times::at(port);
    let of_form = |(index, form): (u32, &Form)| {
        let (first, second) = (times.percent(90 - index), times.percent(60 + index));
        let quarter = times.nanos(first) / 4;
        let odd = PfcFrame::uniform(paused, times.part(10 + index)).of(*form);
        let frames = [
            PfcFrame::uniform(paused, first),
            odd,
            PfcFrame::uniform(paused, second),
        ];
        burst(load, (0..).map(|place| place * quarter).zip(frames))
    };
    (0..).zip(forms).map(of_form).collect()
}

/// Lossless and lossy classes are named in one frame, each half of the former with another time;
/// then come two frames that change nothing: an XON for a lossy class alone, and a frame with a
/// vector of 0 and the longest times.
fn mixed(times: &Times, load: u8, paused: &[Priority], lossy: &[Priority]) -> ProbeBurst {
    let (time, shorter, of_lossy) = (times.percent(70), times.percent(35), times.percent(45));
    let half = first_half(paused);
    let mut named = each(half, time);
    named.extend(each(&paused[half.len()..], shorter));
    named.extend(each(lossy, of_lossy));
    let mut frames = vec![(0, PfcFrame::new(&named, time))];
    if let Some(class) = lossy.first() {
        let xon = PfcFrame::new(&[(*class, Quanta::ZERO)], time);
        frames.push((times.nanos(shorter) / PART, xon));
    }
    let nobody = PfcFrame {
        form: Form::Standard,
        classes: Vec::new(),
        times: [times.percent(100); Priority::COUNT],
    };
    frames.push((times.nanos(shorter) * 2 / PART, nobody));
    burst(load, frames)
}

/// The times of a burst of the probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Timing {
    /// Undisturbed traffic before its start. Its first frame leaves then or later.
    pub(super) quiet: Nanos,
    /// Time from its start to the end of its last pause.
    pub(super) lasts: Nanos,
    /// Traffic after that.
    pub(super) after: Nanos,
    /// Wait for the frames that its pauses held back, after the end of the traffic; a DUT that
    /// pauses for three times as long has let them go by then.
    pub(super) drain: Nanos,
}

impl Timing {
    /// Returns the times of `burst` in the probe of `plan`.
    pub(super) fn of(plan: &RepetitionPlan, burst: &ProbeBurst, limits: &Limits) -> Self {
        let vicinity = vicinity(plan, limits);
        let slack = LEAST_QUIET.max(2 * vicinity);
        // Every frame is logged, and at full load the queues show soon what they hold.
        let quiet = if burst.load >= FULL {
            QUIET_WHEN_FULL.max(4 * vicinity)
        } else {
            slack
        };
        let paused = plan.probed();
        let ends = paused
            .iter()
            .filter_map(|priority| burst.end(*priority, limits));
        let lasts = ends.max().unwrap_or(0);
        let longest = burst.longest(paused);
        let again =
            limits.pause_tolerance(longest) + limits.max_response + two_frames(plan, limits);
        let pause = limits.pause_time(longest);
        // Traffic at full load after a pause waits behind what the pause held, and a DUT whose
        // queues are short may drop it. It lasts no longer than shows when the pause ended.
        let after = if burst.load >= FULL {
            again
        } else {
            again + vicinity
        };
        Self {
            quiet,
            lasts,
            after,
            drain: 2 * pause + backlog(plan, burst.load, paused, limits, pause) + slack,
        }
    }
}

/// The least duration of all probes, each of which `prepare` comes before.
pub(super) fn least(plan: &RepetitionPlan, limits: &Limits, prepare: Nanos) -> Nanos {
    let of_burst = |burst: &ProbeBurst| {
        let timing = Timing::of(plan, burst, limits);
        prepare + timing.quiet + timing.lasts + timing.after + held_when_full(plan, burst, limits)
    };
    plan.bursts().map(of_burst).sum()
}

/// Least time in which the link sends what the pauses of `burst` hold, once traffic that fills it
/// has ended; 0 where the traffic leaves room for it before.
fn held_when_full(plan: &RepetitionPlan, burst: &ProbeBurst, limits: &Limits) -> Nanos {
    if burst.load < FULL {
        return 0;
    }
    let first = burst.frames.first().map_or(0, |first| first.after);
    let ends = plan.probed().iter();
    let ends = ends.filter_map(|priority| burst.end(*priority, limits));
    // The link is free while all of them are paused.
    let pause = ends.min().unwrap_or(0).saturating_sub(first);
    backlog(plan, burst.load, plan.probed(), limits, pause)
}

/// Time in which a full link sends what `pause` holds back of those priorities, beside the traffic
/// that goes on: share x load x pause / (1 - load); where all of it is full, once it has ended.
fn backlog(
    plan: &RepetitionPlan,
    percent: u8,
    paused: &[Priority],
    limits: &Limits,
    pause: Nanos,
) -> Nanos {
    let load = |is_meant: &dyn Fn(&&FlowPlan) -> bool| {
        let rates = plan.flows.iter().filter(is_meant).map(|flow| flow.rate);
        rates.map(u128::from).sum::<u128>() * u128::from(percent) / 100
    };
    let held = load(&|flow| paused.contains(&flow.priority));
    let all = load(&|_| true);
    let line = u128::from(limits.line_rate.bits_per_second());
    let free = if percent < FULL {
        line.saturating_sub(all)
    } else {
        line
    };
    (u128::from(pause) * held / free.max(1)) as Nanos
}

/// Time around a pause frame, and around the end of a pause, in which traffic is judged: at least
/// four frames of each flow come in it.
pub(super) fn vicinity(plan: &RepetitionPlan, limits: &Limits) -> Nanos {
    (5 * limits.max_response).max(4 * interval(plan))
}

/// The longest time from one frame of a flow to its next, in the burst of the least load.
pub(super) fn interval(plan: &RepetitionPlan) -> Nanos {
    intervals(plan, |_| true).max().unwrap_or(0)
}

/// The same of the flow of `priority` that has most frames.
pub(super) fn interval_of(plan: &RepetitionPlan, priority: Priority) -> Nanos {
    let own = intervals(plan, move |flow| flow.priority == priority);
    own.min().unwrap_or(0)
}

fn intervals(
    plan: &RepetitionPlan,
    is_meant: impl Fn(&FlowPlan) -> bool,
) -> impl Iterator<Item = Nanos> {
    let load = plan.bursts().map(|burst| burst.load).min().unwrap_or(LOAD);
    let flows = plan.flows.iter().filter(move |flow| is_meant(flow));
    flows.map(move |flow| {
        let rate = u128::from(flow.rate) * u128::from(load) / 100;
        let bits = u128::from(LineRate::frame_bits(flow.length)) * 1_000_000_000;
        (bits / rate.max(1)) as Nanos
    })
}

/// Time of a frame on the wire.
pub(super) fn wire_time(length: usize, limits: &Limits) -> Nanos {
    let bits = u128::from(LineRate::frame_bits(length)) * 1_000_000_000;
    bits.div_ceil(u128::from(limits.line_rate.bits_per_second())) as Nanos
}

/// Time of two of the longest frames: the one that is on the wire when a pause ends, and the first
/// that had to wait.
pub(super) fn two_frames(plan: &RepetitionPlan, limits: &Limits) -> Nanos {
    let longest = plan.flows.iter().map(|flow| flow.length).max();
    2 * wire_time(longest.unwrap_or(0), limits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_lossy_class_is_named_beside_lossless_ones_in_all_turns_but_one() {
        for count in 0..=8 {
            let lossy: Vec<Priority> = Priority::all().take(count).collect();
            let turns = count.max(2);
            for class in &lossy {
                let named = |turn: &usize| lossy_named(&lossy, *turn).contains(class);
                let named = (0..turns).filter(named).count();
                assert_eq!(named, turns - 1, "{class} of {lossy:?}");
            }
        }
    }

    #[test]
    fn no_time_is_near_to_itself_with_its_octets_swapped() {
        for most in [2000, 9765, 19_531, u16::MAX] {
            for wanted in (most / 3..=most).step_by(7) {
                let time = lopsided(wanted, most);
                let swapped = f64::from(time.swap_bytes()) / f64::from(time);
                assert!(
                    time <= most && time >= wanted / 2,
                    "{time:#x} for {wanted:#x}"
                );
                assert!(!(0.7..1.4).contains(&swapped), "{time:#x} for {wanted:#x}");
            }
        }
    }
}
