//! How a port acts on PFC that it receives: a timer for each priority.

use pfc_ebpf::units::{LineRate, Priority, Quanta};

use super::config::{Priorities, SwitchConfig};
use super::control::Control;
use crate::fault::switch::{Fault, OneIn, Percent, PercentLonger};
use crate::plan::Nanos;

/// Time without PFC after which a PFC frame is a first one for `lossy_stop`.
const A_WHILE: Nanos = 80_000_000;
/// A pause of this length or more is a storm's, and no probe's.
const LONG_PAUSE: Nanos = 100_000_000;
/// Time without PFC after which a PFC frame is a first one for `misses_first`.
const SILENCE: Nanos = 20_000_000;
/// Time by which some PFC takes effect later, where it does.
const SLOW: Nanos = 5_000_000;
/// Time for which an XON has an effect on lossy frames, where it has one.
const AFTER_XON: Nanos = 20_000_000;

/// The priorities that a frame pauses, and for how long. A switch without faults acts on PFC for
/// lossless priorities only.
#[derive(Clone, Debug)]
pub struct Reaction {
    line_rate: LineRate,
    lossless: Priorities,
    faults: Vec<Fault>,
    /// Time from a frame's arrival until it takes effect.
    delay: Nanos,
    /// Further time until then while the link is full.
    when_full: Nanos,
    /// Frames of which one takes effect later by `SLOW`.
    slow_one_in: Option<OneIn>,
    shorter: Option<Percent>,
    longer: Option<PercentLonger>,
    /// A fault in the reading of frames.
    misreads: Option<Fault>,
    /// Frames that leave after an XON which ends no pause.
    pub xon_lets_go: u64,
    /// Time for which lossy priorities stop at the first PFC after `A_WHILE` without any.
    lossy_stop: Option<Nanos>,
}

/// Pause of a priority: from `since` until just before `until`.
#[derive(Clone, Copy, Debug, Default)]
struct Timer {
    since: Nanos,
    until: Nanos,
    /// True where a time of 0 began the pause.
    by_zero: bool,
}

/// The timers of one port.
#[derive(Clone, Debug, Default)]
pub struct Pauses {
    timers: [Timer; Priority::COUNT],
    /// Time at which the longest pause of any PFC received, obeyed or not, is over.
    storm_until: Nanos,
    /// Time at which the last PFC frame was received.
    last: Option<Nanos>,
    /// Time at which the last XON for a lossless priority was received.
    last_xon: Option<Nanos>,
    /// The time before which no frame of a priority may start.
    slow: [Nanos; Priority::COUNT],
}

impl Reaction {
    /// Returns the reaction of a switch with that configuration and those faults.
    pub fn new(config: &SwitchConfig, faults: &[Fault]) -> Self {
        let mut reaction = Self {
            line_rate: config.line_rate,
            lossless: config.lossless,
            faults: faults.to_vec(),
            delay: 0,
            when_full: 0,
            slow_one_in: None,
            shorter: None,
            longer: None,
            misreads: None,
            xon_lets_go: 0,
            lossy_stop: None,
        };
        for fault in faults {
            match *fault {
                Fault::SlowResponse(delay) => reaction.delay = delay.as_nanos() as Nanos,
                Fault::SlowWhenFull(delay) => reaction.when_full = delay.as_nanos() as Nanos,
                Fault::SlowAtTimes(n) => reaction.slow_one_in = Some(n),
                Fault::ResumesEarly(percent) => reaction.shorter = Some(percent),
                Fault::PausesLonger(longer) => reaction.longer = Some(longer),
                Fault::CapsQuanta(_)
                | Fault::SwapsQuanta
                | Fault::ReadsFirstTime
                | Fault::ReadsNextTime
                | Fault::IgnoresVector
                | Fault::ZeroVectorNamesAll
                | Fault::ReadsHighVector
                | Fault::ReversesVector => reaction.misreads = Some(*fault),
                Fault::XonLetsGo(frames) => reaction.xon_lets_go = frames.get(),
                Fault::LossyObeysFirst(stop) => {
                    reaction.lossy_stop = Some(stop.as_nanos() as Nanos);
                }
                _ => {}
            }
        }
        reaction
    }

    /// Time from the arrival of the frame of that number until it takes effect, on a full link or
    /// another.
    pub fn delay(&self, full: bool, number: u64) -> Nanos {
        let when_full = if full { self.when_full } else { 0 };
        let is_slow = self
            .slow_one_in
            .is_some_and(|n| number.is_multiple_of(n.get()));
        self.delay + when_full + if is_slow { SLOW } else { 0 }
    }

    fn has(&self, fault: Fault) -> bool {
        self.faults.contains(&fault)
    }

    /// Priorities that PFC for `class` pauses.
    fn paused_by(&self, class: Priority) -> Priorities {
        if self.has(Fault::IgnoresPfc) {
            return Priorities::default();
        }
        if self.has(Fault::PfcPausesAll) {
            return Priorities::ALL;
        }
        if self.has(Fault::PausesOtherLossless) && self.lossless.contains(class) {
            return self.lossless;
        }
        let off_by_one = u8::from(self.has(Fault::OffByOneClass));
        let acted_on = Priorities::only(Priority::from_low_bits(class.get() + off_by_one));
        if self.has(Fault::LossyObeysPfc) {
            acted_on
        } else {
            acted_on.and(self.lossless)
        }
    }

    /// Acts on a frame that takes effect at `now`: a new time replaces the old one at once, be it
    /// longer or shorter.
    pub fn act(&self, control: &Control, now: Nanos, pauses: &mut Pauses) {
        let Control::Pfc { enabled, times } = self.read(control) else {
            if let Control::Pause(quanta) = control
                && self.has(Fault::ObeysPause)
            {
                self.set(Priorities::ALL, *quanta, now, pauses);
            }
            return;
        };
        self.stop_lossy(now, pauses);
        let silent = pauses.last.is_none_or(|last| last + SILENCE <= now);
        pauses.last = Some(now);
        if self.has(Fault::MissesFirst) && silent {
            return;
        }
        let names_lossless = !enabled.and(self.lossless).is_empty();
        let beside = self.has(Fault::LossyObeysBeside) && names_lossless;
        for class in enabled.iter() {
            let quanta = times[class.index()];
            if quanta == Quanta::ZERO && self.lossless.contains(class) {
                pauses.last_xon = Some(now);
            }
            pauses.storm_until = pauses.storm_until.max(now + quanta.nanos(self.line_rate));
            let priorities = if beside && !self.lossless.contains(class) {
                Priorities::only(class)
            } else if self.has(Fault::XonEndsAll) && quanta == Quanta::ZERO {
                self.lossless
            } else {
                self.paused_by(class)
            };
            self.set(priorities, quanta, now, pauses);
        }
    }

    /// The content of a frame as the switch understands it: as it stands there, in one without
    /// faults.
    fn read(&self, control: &Control) -> Control {
        let (Control::Pfc { enabled, times }, Some(fault)) = (control, self.misreads) else {
            return *control;
        };
        let (mut enabled, mut times) = (*enabled, *times);
        let with_time = |class: &Priority| times[class.index()] > Quanta::ZERO;
        match fault {
            Fault::CapsQuanta(most) => times = times.map(|time| time.min(Quanta(most.get()))),
            Fault::SwapsQuanta => times = times.map(|time| Quanta(time.0.swap_bytes())),
            Fault::ReadsFirstTime => times = [times[0]; Priority::COUNT],
            Fault::ReadsNextTime => times.rotate_left(1),
            Fault::IgnoresVector => {
                let all = Priority::all().filter(with_time);
                enabled = all.chain(enabled.iter()).collect();
            }
            Fault::ZeroVectorNamesAll if enabled.is_empty() => enabled = Priorities::ALL,
            Fault::ReadsHighVector => enabled = Priorities::default(),
            Fault::ReversesVector => enabled = Priorities(enabled.0.reverse_bits()),
            _ => {}
        }
        Control::Pfc { enabled, times }
    }

    /// The priorities of which frames leave though an XON that names them ends no pause.
    pub fn lets_go(&self, control: &Control) -> Priorities {
        let Control::Pfc { enabled, times } = control else {
            return Priorities::default();
        };
        let xon = |class: &Priority| times[class.index()] == Quanta::ZERO;
        enabled.and(self.lossless).iter().filter(xon).collect()
    }

    /// Stops lossy priorities, where this is the first PFC in a while.
    fn stop_lossy(&self, now: Nanos, pauses: &mut Pauses) {
        let last = pauses.last;
        let Some(stop) = self.lossy_stop else { return };
        if last.is_none_or(|last| last + A_WHILE <= now) {
            for priority in self.lossless.others().iter() {
                pauses.timers[priority.index()] = Timer {
                    since: now,
                    until: now + stop,
                    ..Timer::default()
                };
            }
        }
    }

    /// The priorities for which an XOFF goes out at the other port because of `control`, and for
    /// how long: none in a switch without faults.
    pub fn spread(&self, control: &Control) -> (Priorities, Nanos) {
        let Control::Pfc { enabled, times } = control else {
            return Default::default();
        };
        let time = |class: Priority| times[class.index()].nanos(self.line_rate);
        let paused: Priorities = enabled.iter().filter(|class| time(*class) > 0).collect();
        let longest = paused.iter().map(time).max().unwrap_or(0);
        let names_lossless = !paused.and(self.lossless).is_empty();
        let names_lossy = !paused.and(self.lossless.others()).is_empty();
        let spread = if self.has(Fault::XoffLosslessInLossyStorm) && names_lossy {
            self.lossless
        } else if self.has(Fault::XoffOtherLossless) && names_lossless {
            self.lossless.and(paused.others())
        } else {
            Priorities::default()
        };
        (spread, longest)
    }

    fn set(&self, priorities: Priorities, quanta: Quanta, now: Nanos, pauses: &mut Pauses) {
        for priority in priorities.iter() {
            let paused = pauses.is_paused(priority, now);
            let idle = !paused || pauses.timers[priority.index()].by_zero;
            let by_zero = self.has(Fault::ZeroPausesIdle) && quanta == Quanta::ZERO && idle;
            let quanta = if by_zero { Quanta::MAX } else { quanta };
            let xon = quanta == Quanta::ZERO;
            let ignored = if xon {
                self.has(Fault::IgnoresXon) || self.xon_lets_go > 0
            } else {
                paused && self.has(Fault::IgnoresRefresh)
            };
            if ignored {
                continue;
            }
            let timer = &mut pauses.timers[priority.index()];
            timer.by_zero = by_zero;
            if !paused && !xon {
                timer.since = now;
            }
            let time = quanta.nanos(self.line_rate);
            let time = self.longer.map_or(time, |longer| longer.prolong(time));
            let left = |percent: Percent| time - time * Nanos::from(percent.get()) / 100;
            let time = self.shorter.map_or(time, left);
            timer.until = match time {
                // A priority that was not paused keeps the end of its last pause.
                0 if xon => timer.until.min(now),
                _ if self.has(Fault::NeverResumes) => Nanos::MAX,
                time if self.has(Fault::KeepsLonger) => timer.until.max(now + time),
                time if self.has(Fault::AddsUpPauses) => timer.until.max(now) + time,
                time => now + time,
            };
            if self.has(Fault::SharesTimer) {
                let until = timer.until;
                let held = pauses.timers.iter_mut().filter(|timer| timer.until > now);
                held.for_each(|timer| timer.until = until);
            }
        }
    }
}

impl Pauses {
    /// The first time, `now` or later, at which a frame of `priority` may start.
    pub fn resumes(&self, priority: Priority, now: Nanos) -> Nanos {
        let from = self.slow[priority.index()];
        self.timers[priority.index()].until.max(from).max(now)
    }

    /// Keeps these priorities from sending before `from`.
    pub fn slow_down(&mut self, priorities: Priorities, from: Nanos) {
        for priority in priorities.iter() {
            self.slow[priority.index()] = from;
        }
    }

    /// True if a pause of `priority` ended within `time` before `now`.
    pub fn ended_within(&self, priority: Priority, time: Nanos, now: Nanos) -> bool {
        let until = self.timers[priority.index()].until;
        until > 0 && (until..until.saturating_add(time)).contains(&now)
    }

    /// True if no frame of `priority` may start at `now`.
    pub fn is_paused(&self, priority: Priority, now: Nanos) -> bool {
        self.timers[priority.index()].until > now
    }

    /// True if the last pause of `priority` is over and was a storm's.
    pub fn had_storm(&self, priority: Priority, now: Nanos) -> bool {
        let timer = self.timers[priority.index()];
        timer.until <= now && timer.until >= timer.since + LONG_PAUSE
    }

    /// True for a while after an XON for a lossless priority.
    pub fn after_xon(&self, now: Nanos) -> bool {
        self.last_xon.is_some_and(|last| now < last + AFTER_XON)
    }

    /// True while any PFC received, obeyed or not, is in force.
    pub fn in_storm(&self, now: Nanos) -> bool {
        self.storm_until > now
    }
}
