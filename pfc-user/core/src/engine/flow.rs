//! A flow in time: when its frames are due, and when it ends. No clock is asked.

#[cfg(test)]
mod tests;

use pfc_ebpf::units::{LineRate, Nanos, SECOND};

use super::plan::{End, Flow, Length, Rate, Schedule, Span};
use super::snapshot::Transmit;

/// A time in units of 2^-32 ns: frames of any rate are due without drift.
pub type Fine = u128;
const FRACTION: u32 = 32;
/// Longest time over which the first frames of flows that start together are spread.
pub const SPREAD: Nanos = 100_000_000;
/// Preamble and start delimiter, in octets.
const PREAMBLE: u64 = 8;
/// Time later than any other, at which flows without a rate are due.
pub const NEVER: Fine = fine(Nanos::MAX);

/// A fine time.
pub const fn fine(time: Nanos) -> Fine {
    (time as u128) << FRACTION
}

/// The first whole nanosecond at or after a fine time.
pub const fn whole(time: Fine) -> Nanos {
    time.div_ceil(1 << FRACTION) as Nanos
}

/// Time that `octets` take at `rate`.
pub fn octets_at(rate: LineRate, octets: u64) -> Fine {
    octets_by(rate.bits_per_second(), octets)
}

fn octets_by(bits_per_second: u64, octets: u64) -> Fine {
    u128::from(octets * 8) * fine(SECOND) / u128::from(bits_per_second)
}

/// The pace of a flow, and what it has sent.
#[derive(Clone, Debug)]
pub struct Pace {
    rate: Rate,
    length: Length,
    schedule: Schedule,
    line_rate: LineRate,
    progress: Progress,
}

/// Progress of a flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// State.
    pub state: Transmit,
    /// Frames taken since its start; the number of the next.
    pub number: u64,
    /// Time at which the next is due.
    pub due: Fine,
    /// Time at which the first frame was due, or would have been with a rate.
    begin: Fine,
    /// End of the time that it may take; the greatest time where it has none.
    pub end: Nanos,
    /// Frames taken of the present burst, and bursts before it.
    burst: u64,
    bursts: u64,
    /// Time at which an order paused it.
    paused: Nanos,
}

/// State by which another sender goes on with a flow whose frames have one length and come at one
/// interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Steady {
    /// Number of the next frame.
    pub number: u64,
    /// Time at which it is due.
    pub due: Fine,
    /// Time from one frame to the next.
    pub interval: Fine,
    /// Octets of each, with FCS.
    pub length: u32,
    /// Frames that are still to be sent; `None`: without end.
    pub left: Option<u64>,
    /// End of the time that it may take; the greatest time where it has none.
    pub end: Nanos,
}

/// A frame that leaves now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    /// Number in its flow.
    pub number: u64,
    /// Octets with FCS.
    pub length: u32,
}

impl Flow {
    /// Makes the flow's schedule on a line of `line_rate`.
    pub fn pace(&self, line_rate: LineRate) -> Pace {
        let (length, schedule) = (self.length.clone(), self.schedule.clone());
        Pace::new(self.rate, length, schedule, line_rate)
    }
}

impl Pace {
    /// Makes the pace of a flow that has not been started.
    pub fn new(rate: Rate, length: Length, schedule: Schedule, line_rate: LineRate) -> Self {
        Self {
            rate,
            length,
            schedule,
            line_rate,
            progress: Progress::default(),
        }
    }

    /// Its progress.
    pub const fn progress(&self) -> Progress {
        self.progress
    }

    /// Returns to `progress`: frames taken since did not leave.
    pub const fn return_to(&mut self, progress: Progress) {
        self.progress = progress;
    }

    /// Returns how the flow goes on; `None` for lengths that vary, for bursts, and without a rate.
    pub fn steady(&self) -> Option<Steady> {
        let Length::Fixed(length) = self.length else {
            return None;
        };
        if self.rate.is_zero() {
            return None;
        }
        let left = match self.schedule.end {
            End::Bursts { .. } => return None,
            End::Frames(frames) => Some(frames.saturating_sub(self.progress.number)),
            End::Never | End::Time(_) => None,
        };
        Some(Steady {
            number: self.progress.number,
            due: self.progress.due,
            interval: self.interval(length),
            length,
            left,
            end: self.progress.end,
        })
    }

    /// Frames a second while nothing holds it, with the length of the next one.
    pub fn rate(&self) -> (u64, u32) {
        let length = self.length.nth(self.progress.number);
        if self.rate.is_zero() {
            return (0, length);
        }
        let rate = fine(SECOND) / self.interval(length).max(1);
        (rate as u64, length)
    }

    /// Accounts `left` frames that another sender sent; the next one is due at `due`.
    pub fn went_on(&mut self, left: u64, due: Fine) {
        self.progress.number += left;
        self.progress.due = due;
        if matches!(self.schedule.end, End::Frames(frames) if self.progress.number >= frames) {
            self.stop();
        }
    }

    /// True if frames leave, or will.
    pub fn is_started(&self) -> bool {
        self.progress.state == Transmit::Started
    }

    /// Starts from the first frame on.
    pub fn start(&mut self, now: Nanos) {
        let begin = fine(now) + self.span(self.schedule.delay);
        let end = match self.schedule.end {
            End::Time(time) => whole(begin).saturating_add(time),
            _ => Nanos::MAX,
        };
        let due = if self.rate.is_zero() { NEVER } else { begin };
        self.progress = Progress {
            state: Transmit::Started,
            due,
            begin,
            end,
            ..Progress::default()
        };
        if matches!(
            self.schedule.end,
            End::Frames(0)
                | End::Bursts { frames: 0, .. }
                | End::Bursts {
                    bursts: Some(0),
                    ..
                }
        ) {
            self.stop();
        }
    }

    /// Delays the first frame of a flow that has just started, by its `place` among `flows`: their
    /// first frames are spread over an interval of each, [`SPREAD`] at most, and leave one by one.
    pub fn stand_back(&mut self, place: u64, flows: u64) {
        let interval = self.interval(self.length.nth(0)).min(fine(SPREAD));
        let apart = interval * Fine::from(place) / Fine::from(flows.max(1));
        if self.progress.due < NEVER {
            self.progress.due += apart;
        }
    }

    /// Ends it.
    pub fn stop(&mut self) {
        self.progress.state = Transmit::Stopped;
    }

    /// Holds it by an order.
    pub fn pause(&mut self, now: Nanos) {
        if self.is_started() {
            self.progress.state = Transmit::Paused;
            self.progress.paused = now;
        }
    }

    /// Goes on where it was paused: what was left of its time is left still.
    pub fn resume(&mut self, now: Nanos) {
        if self.progress.state != Transmit::Paused {
            return;
        }
        let passed = now.saturating_sub(self.progress.paused);
        self.progress.state = Transmit::Started;
        self.progress.due = (self.progress.due + fine(passed)).min(NEVER);
        self.progress.begin += fine(passed);
        self.progress.end = self.progress.end.saturating_add(passed);
    }

    /// Sets another rate; the next frame is due no later than by it, unless it waits for the flow's
    /// delay or for the gap between bursts.
    pub fn set_rate(&mut self, rate: Rate, now: Nanos) {
        let had_none = std::mem::replace(&mut self.rate, rate).is_zero();
        if rate.is_zero() {
            self.progress.due = NEVER;
            return;
        }
        if had_none {
            self.progress.due = self.progress.begin.max(fine(now));
            return;
        }
        let between_bursts =
            matches!(self.schedule.end, End::Bursts { .. }) && self.progress.burst == 0;
        if self.progress.number == 0 || between_bursts {
            return;
        }
        let next = fine(now) + self.interval(self.length.nth(self.progress.number));
        self.progress.due = self.progress.due.min(next);
    }

    /// Sets other lengths.
    pub fn set_length(&mut self, length: Length) {
        self.length = length;
    }

    /// Accounts `held`, for which the flow was held until `now`: frames that became due meanwhile
    /// are not owed.
    pub fn was_held(&mut self, held: Nanos, now: Nanos) {
        let due = &mut self.progress.due;
        if *due < fine(now) {
            *due = (*due + fine(held)).min(fine(now));
        }
    }

    /// Takes the frame that is due; `None` where its time is over, which ends it.
    pub fn take(&mut self) -> Option<Taken> {
        if self.progress.due >= fine(self.progress.end) {
            self.stop();
            return None;
        }
        let due = self.progress.due;
        let number = self.progress.number;
        let length = self.length.nth(number);
        self.progress.number += 1;
        self.progress.due = due + self.interval(length);
        match self.schedule.end {
            End::Frames(frames) if self.progress.number >= frames => self.stop(),
            End::Bursts {
                bursts,
                frames,
                gap,
            } => self.count_in_burst(bursts, frames, gap, due, length),
            _ => {}
        }
        Some(Taken { number, length })
    }

    /// Ends a burst with its last frame, which was due at `due` and has `length` octets.
    fn count_in_burst(
        &mut self,
        bursts: Option<u64>,
        frames: u64,
        gap: Span,
        due: Fine,
        length: u32,
    ) {
        self.progress.burst += 1;
        if self.progress.burst < frames {
            return;
        }
        self.progress.burst = 0;
        self.progress.bursts += 1;
        if bursts.is_some_and(|bursts| self.progress.bursts >= bursts) {
            return self.stop();
        }
        let silence = self.span(gap);
        self.progress.due = due + self.wire(u64::from(length) + PREAMBLE) + silence;
    }

    /// Returns true if the line does not carry the flow's rate with some of its lengths.
    pub fn is_beyond_line(&self) -> bool {
        let (shortest, longest) = self.length.bounds();
        let beyond = |length| self.by_rate(length) < self.by_line(length);
        !self.rate.is_zero() && (beyond(shortest.into()) || beyond(longest.into()))
    }

    /// Time from a frame of `length` octets to the next.
    fn interval(&self, length: u32) -> Fine {
        let length = u64::from(length);
        self.by_rate(length).max(self.by_line(length))
    }

    /// The interval that the rate asks for.
    fn by_rate(&self, length: u64) -> Fine {
        match self.rate {
            Rate::FramesPerSecond(rate) => fine(SECOND) / u128::from(rate.max(1)),
            Rate::BitsPerSecond(rate) => octets_by(rate.max(1), length),
            Rate::Percent(percent) => {
                // Millionths: finer than what 32 bits of floating point tell apart.
                let share = (percent * 1e6).round().max(1.0) as u128;
                self.wire(length + LineRate::OVERHEAD) * 100_000_000 / share
            }
        }
    }

    /// The shortest interval on the line.
    fn by_line(&self, length: u64) -> Fine {
        self.wire(length + PREAMBLE + u64::from(self.schedule.gap))
    }

    fn wire(&self, octets: u64) -> Fine {
        octets_at(self.line_rate, octets)
    }

    fn span(&self, span: Span) -> Fine {
        match span {
            Span::Time(time) => fine(time),
            Span::Octets(octets) => self.wire(octets),
        }
    }
}

impl Rate {
    /// Returns true for the rate of a flow that sends nothing until it has another.
    pub fn is_zero(&self) -> bool {
        match self {
            Self::FramesPerSecond(rate) | Self::BitsPerSecond(rate) => *rate == 0,
            Self::Percent(percent) => *percent == 0.0,
        }
    }

    /// The defect of a rate that is no number of 0 or more.
    pub fn check(&self) -> Option<String> {
        match self {
            Self::Percent(percent) if !percent.is_finite() || *percent < 0.0 => Some(format!(
                "expected a rate of 0 percent or more, found {percent}"
            )),
            _ => None,
        }
    }
}
