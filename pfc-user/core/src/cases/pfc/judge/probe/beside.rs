//! Priorities that no frame of a probe pauses, and that its XOFF, or the end of its pause, holds
//! for a short time all the same.
//!
//! One delay may be the tester's, of one of its queues or cores. One that begins with the XOFF or
//! that end while other priorities go on, and that comes again with the same XOFF sent again, is
//! the DUT's.

use std::ops::RangeInclusive;

use pfc_ebpf::stamp::Phase;
use pfc_ebpf::units::{Nanos, Priority};

use super::super::preconditions::lost_by_tester;
use super::super::stalls::stalled_within;
use super::measured::{Measured, Pause, Wait, within};
use crate::cases::finding::Finding;
use crate::cases::pfc::probing::{FULL, interval, two_frames};
use crate::cases::value;
use crate::evidence::pfc::{Arrival, PfcEvidence, ProbeReport};
use crate::verdict::Subject;

/// Frames that show that a priority goes on.
const LEAST: usize = 4;

/// With what a hold begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cases::pfc) enum Begin {
    Xoff,
    /// The end of a pause, by an XON or as it runs out.
    End,
}

impl Begin {
    fn words(self) -> &'static str {
        match self {
            Self::Xoff => "an XOFF which does not name it",
            Self::End => "the end of a pause of others",
        }
    }
}

/// A priority that waited though no frame of the probe pauses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cases::pfc) struct Held {
    pub(super) priority: Priority,
    pub(super) begin: Begin,
    pub(super) wait: Wait,
}

impl Measured<'_> {
    /// Priorities that waited for longer than is allowed from an XOFF of `probe` or the end of its
    /// pause on, which pauses none of them, while others went on; none where there is no other.
    pub(in crate::cases::pfc) fn held_beside(&self, probe: &ProbeReport) -> Vec<Held> {
        if !self.whole || !self.logs_all(&probe.burst) || probe.burst.load >= FULL {
            return Vec::new();
        }
        let paused = self.plan.probed().iter();
        let pauses: Vec<_> = paused
            .filter_map(|priority| self.pause(probe, *priority))
            .collect();
        let Some(end) = pauses.iter().map(|pause| pause.earliest).min() else {
            return Vec::new();
        };
        let from = probe.begin().saturating_sub(self.vicinity());
        let unnamed = Priority::all().filter(|priority| !probe.pauses(*priority));
        let of_each: Vec<(Priority, Vec<&Arrival>)> = unnamed
            .map(|priority| (priority, self.near(priority, from, self.until(probe))))
            .filter(|(_, arrivals)| !arrivals.is_empty())
            .collect();
        let events = self.events(probe, &pauses);
        let held = |begin| -> Vec<Held> {
            let all = of_each.iter();
            all.filter_map(|(priority, arrivals)| {
                // Of two events at a time the first counts.
                let begins = |since: Nanos| {
                    let event = events.iter().find(|(_, times)| times.contains(&since));
                    event.is_some_and(|(of, _)| *of == begin)
                };
                let least = Some(self.allowed());
                let wait = self.longest_above(least, *priority, arrivals, from, begins)?;
                Some(Held {
                    priority: *priority,
                    begin,
                    wait,
                })
            })
            .collect()
        };
        let mut at_xoff = held(Begin::Xoff);
        // All others go on, quickly, until the pause ends.
        let until = at_xoff
            .iter()
            .map(|held| held.wait.until)
            .max()
            .unwrap_or(0);
        let goes_on = |arrivals: &Vec<&Arrival>| {
            let seen = within(arrivals, from, until.min(end));
            let slow =
                |arrival: &&Arrival| Nanos::from(arrival.latency) >= self.limits.max_response / 2;
            seen.len() >= LEAST && !seen.iter().any(slow)
        };
        let is_held = |priority| at_xoff.iter().any(|held| held.priority == priority);
        let others = of_each.iter().filter(|(priority, _)| !is_held(*priority));
        let others: Vec<_> = others.map(|(_, arrivals)| arrivals).collect();
        if others.is_empty() || !others.into_iter().all(goes_on) {
            at_xoff.clear();
        }
        // Then what was held leaves, and others may have to wait for it: some go on.
        let mut at_end = held(Begin::End);
        let waits = |held: &Held| (held.wait.since, held.wait.until);
        at_end.retain(|held| {
            let (since, until) = waits(held);
            Priority::all()
                .filter(|priority| *priority != held.priority)
                .any(|priority| self.near(priority, since, until).len() >= LEAST)
        });
        at_xoff.extend(at_end);
        at_xoff
    }

    /// Arrivals of `priority` in the probe phase after `from` and before `to`.
    fn near(&self, priority: Priority, from: Nanos, to: Nanos) -> Vec<&Arrival> {
        let near = self.recorded(from + 1, to).iter();
        near.filter(|arrival| self.is_of(arrival, Phase::Probe, priority))
            .collect()
    }

    /// The times at which a hold may begin.
    fn events(&self, probe: &ProbeReport, pauses: &[Pause]) -> Vec<(Begin, RangeInclusive<Nanos>)> {
        let response = self.limits.max_response;
        let round = |from: Nanos, to: Nanos| from.saturating_sub(response)..=to + response;
        let frames = probe.burst.frames.iter().zip(&probe.left);
        let xoffs = frames.filter(|(one, _)| one.frame.asks());
        let xoffs = xoffs.map(|(_, left)| (Begin::Xoff, round(left.before, left.after)));
        let ends = pauses.iter();
        let ends = ends.map(|pause| (Begin::End, round(pause.earliest, pause.latest)));
        xoffs.chain(ends).collect()
    }

    /// The shortest such hold that shows for certain: the next frame may come that late, and a part
    /// of its wait may look filled by others. `None` where no probe shows any: each names all
    /// priorities but one.
    pub(in crate::cases::pfc) fn least_beside(&self) -> Option<Nanos> {
        let flows = || self.plan.flows.iter().map(|flow| flow.priority);
        let shows = |probe: &ProbeReport| {
            let mut unnamed = flows().filter(|priority| !probe.pauses(*priority));
            let first = unnamed.next();
            let judged = probe.burst.load < FULL && self.logs_all(&probe.burst);
            judged && unnamed.any(|priority| Some(priority) != first)
        };
        let filled = self.limits.max_response / 4 + two_frames(self.plan, self.limits);
        let any = self.probes.iter().any(shows);
        any.then(|| self.allowed() + interval(self.plan) + filled)
    }

    /// True if `probe` held such a priority and was not sent again.
    pub(super) fn is_to_be_confirmed(&self, probe: &ProbeReport) -> bool {
        let same = self
            .probes
            .iter()
            .filter(|other| other.burst == probe.burst);
        same.count() == 1 && !self.held_beside(probe).is_empty()
    }
}

/// Expects that no XOFF that was sent twice held a priority beside those that it names both times.
pub(super) fn expect_none_held(finding: &mut Finding, e: &PfcEvidence) {
    let measured = Measured::of(e);
    let excused = |wait: &Wait| {
        let from = wait.since.saturating_sub(e.limits.max_response);
        wait.counted - measured.allowed() <= stalled_within(e, from, wait.until)
    };
    let held = e.probes.iter().flat_map(|probe| {
        let held = measured.held_beside(probe).into_iter();
        held.map(move |held| (&probe.burst, held))
    });
    let held: Vec<_> = held.filter(|(_, held)| !excused(&held.wait)).collect();
    for (index, (burst, first)) in held.iter().enumerate() {
        let mut later = held[index + 1..].iter();
        let same = |other: &Held| (other.priority, other.begin) == (first.priority, first.begin);
        let again = later.find(|(other, held)| other == burst && same(held));
        if let Some((_, second)) = again {
            let frame = |held: &Held| Subject::Frame(held.priority, held.wait.until);
            finding.about([frame(first), frame(second)], |finding| {
                finding.prove(
                    format!(
                        "waits of priority {} that begin with {}, while others go on",
                        first.priority,
                        first.begin.words()
                    ),
                    value::within(measured.allowed()),
                    first.wait.text() + ", and " + second.wait.text() + " when it was sent again",
                    false,
                    lost_by_tester(e).0 == 0,
                )
            });
        }
    }
}
