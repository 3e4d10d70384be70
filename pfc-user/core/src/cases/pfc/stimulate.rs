//! The steps of a repetition in time. Does no I/O of its own, so that a virtual bench can run it
//! too.

use pfc_ebpf::stamp::Phase;
use pfc_ebpf::units::{Priority, Quanta};

use super::judge::probe::{Measured, open};
use super::probing::{self, Timing};
use crate::evidence::pfc::{Arrival, Departure, PhaseSpan, ProbeReport, StormReport};
use crate::pacing::Burst;
use crate::plan::{Limits, Nanos, PfcFrame, ProbeBurst, ProbeFrame, RepetitionPlan, StormPlan};

/// Time from the decision to send to the first frame.
const PREPARE: Nanos = 2_000_000;

/// Why a repetition ended before its time.
#[derive(Debug)]
pub enum Stop {
    /// The user's wish.
    Interrupted,
    /// The tester or its surroundings failed.
    Failed(anyhow::Error),
}

impl<E: Into<anyhow::Error>> From<E> for Stop {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

/// The surroundings of the steps: time, traffic, pause frames.
pub trait Bench {
    /// Now.
    fn now(&self) -> Nanos;
    /// Lets time pass.
    fn wait_until(&mut self, deadline: Nanos) -> Result<(), Stop>;
    /// Starts traffic; the call returns at once.
    fn start_traffic(&mut self, burst: Burst) -> Result<(), Stop>;
    /// Waits until the last frame of the running burst has left.
    fn finish_traffic(&mut self) -> Result<(), Stop>;
    /// Waits until all frames sent in `phase` have arrived, or `deadline`.
    fn settle(&mut self, phase: Phase, deadline: Nanos) -> Result<(), Stop>;
    /// Starts the storm; the first frame leaves at once.
    fn start_storm(&mut self, storm: &StormPlan) -> Result<(), Stop>;
    /// Stops it.
    fn stop_storm(&mut self) -> Result<StormReport, Stop>;
    /// Sends one PFC frame.
    fn pause(&mut self, frame: &PfcFrame) -> Result<Departure, Stop>;
    /// Ends of the pauses that the DUT has asked of the tx port; `None` where its frames are not
    /// seen.
    fn pauses(&mut self) -> Option<Vec<Nanos>>;
    /// The arrivals logged so far.
    fn arrivals(&mut self) -> Result<&[Arrival], Stop>;
    /// A phase begins: says so, and takes the readings between phases.
    fn announce(&mut self, phase: &'static str);
}

/// The stimulus as it was.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stimulus {
    /// Time span of each phase.
    pub phases: Vec<PhaseSpan>,
    /// The storm.
    pub storm: Option<StormReport>,
    /// The probes.
    pub probes: Vec<ProbeReport>,
}

impl Stimulus {
    /// Phases of `plan` that did not begin.
    pub fn not_begun(&self, plan: &RepetitionPlan) -> Vec<Phase> {
        let begun = |phase: &Phase| self.phases.iter().any(|span| span.phase == *phase);
        let mut phases = plan.phases();
        phases.retain(|phase| !begun(phase));
        phases
    }
}

/// Runs the steps of `plan`; what was done until an early end is in `done`.
pub fn run(
    bench: &mut impl Bench,
    plan: &RepetitionPlan,
    limits: &Limits,
    done: &mut Stimulus,
) -> Result<(), Stop> {
    let mut steps = Steps {
        bench,
        plan,
        limits,
        done,
        in_force: [0; Priority::COUNT],
    };
    let (baseline, load) = (plan.durations.baseline, plan.baseline_load);
    steps.burst("baseline", Phase::Baseline, baseline, load)?;
    if plan.probe_first {
        steps.probe()?;
    }
    if let Some(storm) = &plan.storm {
        steps.storm(storm)?;
    } else if plan.durations.traffic > 0 {
        steps.congestion()?;
    }
    if plan.durations.resume > 0 {
        steps.burst("resume", Phase::Resume, plan.durations.resume, load)?;
    }
    if !plan.probe_first {
        steps.probe()?;
    }
    Ok(())
}

/// The least duration of [`run`]: of a DUT that holds nothing back.
pub fn least(plan: &RepetitionPlan, limits: &Limits) -> Nanos {
    let d = &plan.durations;
    let burst = |duration| if duration > 0 { PREPARE + duration } else { 0 };
    // A storm without traffic after it need not run out.
    let runs_out = if d.resume > 0 {
        let quanta = plan.storm_quanta();
        limits.pause_time(quanta) + limits.pause_tolerance(quanta) + limits.max_response
    } else {
        0
    };
    let stormed = match plan.storm {
        Some(_) => d.lead + d.traffic + d.tail,
        None => burst(d.traffic),
    };
    burst(d.baseline) + runs_out + stormed + burst(d.resume) + probing::least(plan, limits, PREPARE)
}

/// Latest time at which one of the DUT's pauses may end.
fn held_until(pauses: Option<Vec<Nanos>>, now: Nanos, limits: &Limits) -> Nanos {
    match pauses {
        Some(ends) => ends.into_iter().max().unwrap_or(0),
        // No report tells when the port's MAC goes on: after the longest pause at the latest.
        None => now + limits.pause_time(Quanta::MAX),
    }
}

struct Steps<'s, B> {
    bench: &'s mut B,
    plan: &'s RepetitionPlan,
    limits: &'s Limits,
    done: &'s mut Stimulus,
    /// Latest end of the pause of each priority that the tester has asked for.
    in_force: [Nanos; Priority::COUNT],
}

impl<B: Bench> Steps<'_, B> {
    /// Waits until nothing that was asked for before pauses anything any more: neither a pause of
    /// the tester, which a DUT that has drained in a gap of the storm still keeps, nor one of the
    /// DUT, which need not send XON (IEEE 802.1Q, clause 36).
    fn pauses_run_out(&mut self) -> Result<(), Stop> {
        let in_force = self.in_force.into_iter().max();
        self.bench.wait_until(in_force.unwrap_or(0))?;
        let pauses = self.bench.pauses();
        let held = held_until(pauses, self.bench.now(), self.limits);
        self.bench.wait_until(held)
    }

    /// The tester has sent a pause frame.
    fn asked(&mut self, left: Departure, priority: Priority, quanta: Quanta) {
        let time = self.limits.pause_time(quanta) + self.limits.pause_tolerance(quanta);
        self.in_force[priority.index()] = left.after + time + self.limits.max_response;
    }

    /// Traffic at `load` percent for `duration`, then waits for all of it to arrive.
    fn burst(
        &mut self,
        name: &'static str,
        phase: Phase,
        duration: Nanos,
        load: u8,
    ) -> Result<(), Stop> {
        self.bench.announce(name);
        self.pauses_run_out()?;
        let from = self.bench.now() + PREPARE;
        let to = from + duration;
        self.traffic(phase, from, to, load)?;
        self.bench.settle(phase, to + self.plan.durations.drain_max)
    }

    /// Traffic of `phase` between these times, at `load` percent of the rates.
    fn traffic(&mut self, phase: Phase, from: Nanos, to: Nanos, load: u8) -> Result<(), Stop> {
        self.start_traffic(Burst {
            phase,
            from,
            to,
            load,
        })?;
        self.bench.wait_until(to)?;
        self.bench.finish_traffic()
    }

    /// Starts traffic of a new phase, or further traffic of the phase before.
    fn start_traffic(&mut self, burst: Burst) -> Result<(), Stop> {
        let Burst {
            phase, from, to, ..
        } = burst;
        match self.done.phases.last_mut() {
            Some(span) if span.phase == phase => span.to = to,
            _ => self.done.phases.push(PhaseSpan { phase, from, to }),
        }
        self.bench.start_traffic(burst)
    }

    /// Steps 1 to 5 of the test plan: the storm, traffic in it, its end, and the drain.
    fn storm(&mut self, plan: &StormPlan) -> Result<(), Stop> {
        let durations = &self.plan.durations;
        self.bench.announce("storm");
        self.pauses_run_out()?;
        self.bench.start_storm(plan)?;
        let from = self.bench.now() + durations.lead;
        let to = from + durations.traffic;
        let outcome = self.traffic(Phase::Storm, from, to, 100);
        let outcome = outcome.and_then(|()| self.bench.wait_until(to + durations.tail));
        // Also after an early end: the gaps that it had belong to what was measured.
        let storm = self.bench.stop_storm();
        outcome?;
        let storm = storm?;
        for priority in Priority::all() {
            self.asked(storm.last, priority, plan.quanta);
        }
        self.done.storm = Some(storm);
        self.drain(plan.quanta)
    }

    /// Traffic without a storm, of which more comes in than the rx port takes.
    fn congestion(&mut self) -> Result<(), Stop> {
        self.bench.announce("traffic");
        self.pauses_run_out()?;
        let from = self.bench.now() + PREPARE;
        let to = from + self.plan.durations.traffic;
        self.traffic(Phase::Storm, from, to, 100)?;
        self.drain(Quanta::ZERO)
    }

    /// Waits for what the DUT still holds, after a pause of so many quanta.
    fn drain(&mut self, quanta: Quanta) -> Result<(), Stop> {
        self.bench.announce("drain");
        let stopped = self.bench.now();
        let pause = self.limits.pause_time(quanta);
        let deadline = stopped + pause + self.plan.durations.drain_max;
        let outcome = self.bench.settle(Phase::Storm, deadline);
        self.done.phases.push(PhaseSpan {
            phase: Phase::Drain,
            from: stopped,
            to: self.bench.now(),
        });
        outcome
    }

    /// The bursts of the probe; where the case judges them, each until it was measured well.
    fn probe(&mut self) -> Result<(), Stop> {
        let Some(probe) = &self.plan.probe else {
            return Ok(());
        };
        self.bench.announce("probe");
        let mut last = None;
        for number in 0..probing::most(probe) {
            let open = if number < probe.bursts.len() {
                vec![number]
            } else if probe.judged {
                open(probe, &self.measured()?)
            } else {
                Vec::new()
            };
            let after = open.iter().find(|burst| Some(**burst) > last);
            let Some(next) = after.or(open.first()).copied() else {
                break;
            };
            last = Some(next);
            self.as_quiet_as_before(&probe.bursts[next])?;
            self.burst_of_probe(&probe.bursts[next])?;
        }
        let end = self.bench.now() + self.plan.durations.drain_max;
        self.bench.settle(Phase::Probe, end)
    }

    /// The probes so far.
    fn measured(&mut self) -> Result<Measured<'_>, Stop> {
        Ok(Measured {
            plan: self.plan,
            limits: self.limits,
            probes: &self.done.probes,
            records: self.bench.arrivals()?,
            whole: true,
        })
    }

    /// Waits, before a burst that is to confirm what it showed, until there was no pause frame for
    /// as long as before it showed that.
    fn as_quiet_as_before(&mut self, burst: &ProbeBurst) -> Result<(), Stop> {
        let measured = self.measured()?;
        let mut probes = measured.probes.iter();
        let before = probes.rfind(|probe| probe.burst == *burst);
        let Some(shown) = before.filter(|probe| !measured.held_beside(probe).is_empty()) else {
            return Ok(());
        };
        let then = shown.begin();
        let storm = self.done.storm.iter().map(|storm| storm.last.before);
        let probes = self.done.probes.iter().flat_map(|probe| &probe.left);
        let frames = || storm.clone().chain(probes.clone().map(|left| left.before));
        let begun = self.done.phases.first().map_or(0, |span| span.from);
        let earlier = frames().filter(|frame| *frame < then).max();
        let quiet = then - earlier.unwrap_or(begun);
        let lead = PREPARE + Timing::of(self.plan, burst, self.limits).quiet;
        let last = frames().max().unwrap_or(begun);
        self.bench.wait_until((last + quiet).saturating_sub(lead))
    }

    /// Traffic that goes on after the last pause of `burst`, and its pause frames in it.
    fn burst_of_probe(&mut self, burst: &ProbeBurst) -> Result<(), Stop> {
        self.pauses_run_out()?;
        let timing = Timing::of(self.plan, burst, self.limits);
        let from = self.bench.now() + PREPARE;
        let start = from + timing.quiet;
        let to = start + timing.lasts + timing.after;
        self.start_traffic(Burst {
            phase: Phase::Probe,
            from,
            to,
            load: burst.load,
        })?;
        let mut left = Vec::new();
        for ProbeFrame { after, frame } in &burst.frames {
            self.bench.wait_until(start + after)?;
            let departure = self.bench.pause(frame)?;
            left.push(departure);
            for class in &frame.classes {
                self.asked(departure, *class, frame.times[class.index()]);
            }
        }
        self.bench.wait_until(to)?;
        self.bench.finish_traffic()?;
        // Also until the frames that a pause held back have come: the next XOFF is to find no queue
        // but its own.
        self.bench.settle(Phase::Probe, to + timing.drain)?;
        let burst = burst.clone();
        self.done.probes.push(ProbeReport { burst, left });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use pfc_ebpf::units::LineRate;

    use super::*;

    #[test]
    fn the_last_pause_ends_as_reported_or_with_the_longest_that_may_have_come() {
        let limits = Limits {
            line_rate: LineRate::from_bits_per_second(1_000_000_000).unwrap(),
            max_response: 1_000_000,
            headroom: 1 << 20,
            xoff: None,
            max_residence: 1_000_000_000,
            min_throughput: 0.99,
            max_burst: 4_000_000,
        };
        let now = 5_000_000_000;
        let held_until = |ends: Option<&[Nanos]>| held_until(ends.map(<[_]>::to_vec), now, &limits);
        assert_eq!(held_until(Some(&[0, now + 7, now - 3, 0])), now + 7);
        assert_eq!(held_until(Some(&[0, now - 3])), now - 3);
        // 65535 times 512 bits.
        assert_eq!(held_until(None), now + 33_553_920);
    }
}
