//! Priorities that no frame of a probe names, and that its XOFF holds for a short time all the same.
//!
//! One delay may be the tester's, of one of its queues or cores. One that begins with the XOFF while
//! other priorities go on, and that comes again with the same XOFF sent again, is the DUT's.

use pfc_ebpf::stamp::Phase;
use pfc_ebpf::units::{Nanos, Priority};

use super::super::stalls::stalled_within;
use super::measured::{Measured, Wait, within};
use crate::cases::finding::Finding;
use crate::cases::pfc::probing::{FULL, interval, two_frames};
use crate::evidence::pfc::{Arrival, PfcEvidence, ProbeReport};
use crate::quantity::ms;

/// Frames that show that a priority goes on.
const LEAST: usize = 4;

impl Measured<'_> {
    /// Priorities that waited for longer than is allowed from the XOFF of `probe` on, which names
    /// none of them, while all others that it does not name went on; none where there is no other.
    pub(in crate::cases::pfc) fn held_beside(&self, probe: &ProbeReport) -> Vec<(Priority, Wait)> {
        let paused = self.plan.probe.iter().flat_map(|probe| &probe.priorities);
        let pauses = paused.filter_map(|priority| self.pause(probe, *priority));
        let Some((xoff, end)) = pauses
            .map(|pause| (pause.xoff, pause.earliest))
            .min_by_key(|(_, end)| *end)
        else {
            return Vec::new();
        };
        if !self.logs_all() || probe.burst.load >= FULL {
            return Vec::new();
        }
        let from = xoff.before.saturating_sub(self.vicinity());
        let response = self.limits.max_response;
        let place = |time| self.records.partition_point(|arrival| arrival.time < time);
        let near = place(from)..place(end + self.vicinity());
        let near = self.records.get(near).unwrap_or_default();
        let of = |arrival: &Arrival, priority| {
            let flow = self.flow(arrival.flow);
            arrival.phase == Phase::Probe && flow.is_some_and(|flow| flow.priority == priority)
        };
        let begins = xoff.before.saturating_sub(response)..=xoff.after + response;
        let (mut held, mut others) = (Vec::new(), Vec::new());
        for priority in Priority::all().filter(|priority| !probe.pauses(*priority)) {
            let mut flows = self.plan.flows.iter();
            if !flows.any(|flow| flow.priority == priority) {
                continue;
            }
            let arrivals: Vec<&Arrival> = near
                .iter()
                .filter(|arrival| of(arrival, priority))
                .collect();
            match self.longest_wait(priority, &arrivals, from) {
                Some(wait) if wait.counted > self.allowed() && begins.contains(&wait.since) => {
                    held.push((priority, wait));
                }
                _ => others.push(arrivals),
            }
        }
        let until = held.iter().map(|(_, wait)| wait.until).max().unwrap_or(0);
        let goes_on = |arrivals: &Vec<&Arrival>| {
            let seen = within(arrivals, from, until.min(end));
            let slow = |arrival: &&Arrival| Nanos::from(arrival.latency) >= response / 2;
            seen.len() >= LEAST && !seen.iter().any(slow)
        };
        if others.is_empty() || !others.iter().all(goes_on) {
            held.clear();
        }
        held
    }

    /// The shortest such hold that shows for certain: the next frame may come that late, and a part
    /// of its wait may look filled by others. `None` where no probe shows any: each names all
    /// priorities but one.
    pub(in crate::cases::pfc) fn least_beside(&self) -> Option<Nanos> {
        let flows = || self.plan.flows.iter().map(|flow| flow.priority);
        let shows = |probe: &ProbeReport| {
            let mut unnamed = flows().filter(|priority| !probe.pauses(*priority));
            let first = unnamed.next();
            probe.burst.load < FULL && unnamed.any(|priority| Some(priority) != first)
        };
        let next = self.plan.flows.iter().map(interval).max()?;
        let filled = self.limits.max_response / 4 + two_frames(self.plan, self.limits);
        let all = self.logs_all() && self.probes.iter().any(shows);
        all.then(|| self.allowed() + next + filled)
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
        held.map(move |(priority, wait)| (&probe.burst, priority, wait))
    });
    let held: Vec<_> = held.filter(|(.., wait)| !excused(wait)).collect();
    for (index, (burst, priority, first)) in held.iter().enumerate() {
        let mut later = held[index + 1..].iter();
        let again = later.find(|(other, of, _)| other == burst && of == priority);
        if let Some((.., second)) = again {
            finding.prove(
                format!(
                    "waits of priority {priority} that begin with an XOFF which does not name it, \
                     while others go on"
                ),
                format!("within {}", ms(measured.allowed())),
                format!(
                    "{}, and {} when it was sent again",
                    first.text(),
                    second.text()
                ),
                false,
                true,
            );
        }
    }
}
