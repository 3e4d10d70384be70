//! How a port acts on PFC that it receives: a timer for each priority.

use pfc_ebpf::units::{LineRate, Priority, Quanta};

use super::config::{Priorities, SwitchConfig};
use super::control::Control;
use crate::fault::switch::{Fault, PercentLonger};
use crate::plan::Nanos;

/// A pause of this length or more is a storm's, and no probe's.
const LONG_PAUSE: Nanos = 100_000_000;

/// Which priorities a frame pauses, and for how long. A switch without faults acts on PFC for
/// lossless priorities only.
#[derive(Clone, Debug)]
pub struct Reaction {
    line_rate: LineRate,
    /// Priorities that PFC for a class pauses, by class.
    by_class: [Priorities; Priority::COUNT],
    /// Priorities that 802.3x PAUSE pauses.
    by_pause: Priorities,
    /// How much later than it is received a frame takes effect.
    pub delay: Nanos,
    lossless: Priorities,
    halves: bool,
    longer: Option<PercentLonger>,
    adds_up: bool,
    ignores_xon: bool,
    ignores_refresh: bool,
    never_resumes: bool,
    /// XOFF goes out for all lossless priorities while PFC names a lossy one.
    spreads_lossy: bool,
    /// XOFF goes out for the lossless priorities that PFC does not name while it names one.
    spreads_lossless: bool,
}

/// When a priority is paused: from `since` until just before `until`.
#[derive(Clone, Copy, Debug, Default)]
struct Timer {
    since: Nanos,
    until: Nanos,
}

/// The timers of one port.
#[derive(Clone, Debug, Default)]
pub struct Pauses {
    timers: [Timer; Priority::COUNT],
    /// When the longest time of any PFC received, obeyed or not, is over.
    storm_until: Nanos,
}

impl Reaction {
    /// Of a switch with that configuration and those faults.
    pub fn new(config: &SwitchConfig, faults: &[Fault]) -> Self {
        let mut reaction = Self {
            line_rate: config.line_rate,
            by_class: [Priorities::default(); Priority::COUNT],
            by_pause: Priorities::default(),
            delay: 0,
            lossless: config.lossless,
            halves: false,
            longer: None,
            adds_up: false,
            ignores_xon: false,
            ignores_refresh: false,
            never_resumes: false,
            spreads_lossy: false,
            spreads_lossless: false,
        };
        let has = |fault| faults.contains(&fault);
        for class in Priority::all() {
            let off_by_one = has(Fault::OffByOneClass) as u8;
            let acted_on = Priorities::only(Priority::from_low_bits(class.get() + off_by_one));
            let obeyed = if has(Fault::LossyObeysPfc) {
                Priorities::ALL
            } else {
                config.lossless
            };
            reaction.by_class[class.index()] = if has(Fault::IgnoresPfc) {
                Priorities::default()
            } else if has(Fault::PfcPausesAll) {
                Priorities::ALL
            } else if has(Fault::PausesOtherLossless) && config.lossless.contains(class) {
                config.lossless
            } else {
                acted_on.and(obeyed)
            };
        }
        for fault in faults {
            match *fault {
                Fault::ObeysPause => reaction.by_pause = Priorities::ALL,
                Fault::SlowResponse(delay) => reaction.delay = delay.as_nanos() as Nanos,
                Fault::ResumesEarly => reaction.halves = true,
                Fault::PausesLonger(longer) => reaction.longer = Some(longer),
                Fault::AddsUpPauses => reaction.adds_up = true,
                Fault::XoffLosslessInLossyStorm => reaction.spreads_lossy = true,
                Fault::XoffOtherLossless => reaction.spreads_lossless = true,
                Fault::IgnoresXon => reaction.ignores_xon = true,
                Fault::IgnoresRefresh => reaction.ignores_refresh = true,
                Fault::NeverResumes => reaction.never_resumes = true,
                _ => {}
            }
        }
        reaction
    }

    /// Acts on a frame that takes effect at `now`: a new time replaces the old one at once, be it
    /// longer or shorter.
    pub fn act(&self, control: &Control, now: Nanos, pauses: &mut Pauses) {
        match control {
            Control::Pause(quanta) => self.set(self.by_pause, *quanta, now, pauses),
            Control::Pfc { enabled, times } => {
                for class in enabled.iter() {
                    let quanta = times[class.index()];
                    pauses.storm_until = pauses.storm_until.max(now + quanta.nanos(self.line_rate));
                    self.set(self.by_class[class.index()], quanta, now, pauses);
                }
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
        let names_lossy = paused.iter().any(|class| !self.lossless.contains(class));
        let others = self
            .lossless
            .iter()
            .filter(|class| !paused.contains(*class));
        let mut spread = Priorities::default();
        if self.spreads_lossy && names_lossy {
            spread = self.lossless;
        } else if self.spreads_lossless && names_lossless {
            spread = others.collect();
        }
        (spread, longest)
    }

    fn set(&self, priorities: Priorities, quanta: Quanta, now: Nanos, pauses: &mut Pauses) {
        let xon = quanta == Quanta::ZERO;
        for priority in priorities.iter() {
            let paused = pauses.is_paused(priority, now);
            if xon && self.ignores_xon || !xon && paused && self.ignores_refresh {
                continue;
            }
            let timer = &mut pauses.timers[priority.index()];
            if !paused && !xon {
                timer.since = now;
            }
            let time = quanta.nanos(self.line_rate);
            let time = self.longer.map_or(time, |longer| longer.prolong(time));
            timer.until = match time {
                // What was not paused keeps its last pause.
                0 if xon => timer.until.min(now),
                _ if self.never_resumes => Nanos::MAX,
                time if self.halves => now + time / 2,
                time if self.adds_up => timer.until.max(now) + time,
                time => now + time,
            };
        }
    }
}

impl Pauses {
    /// The first time, `now` or later, at which a frame of `priority` may start.
    pub fn resumes(&self, priority: Priority, now: Nanos) -> Nanos {
        self.timers[priority.index()].until.max(now)
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

    /// True while any PFC received, obeyed or not, is in force.
    pub fn in_storm(&self, now: Nanos) -> bool {
        self.storm_until > now
    }
}
