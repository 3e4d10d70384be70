//! The steps of a repetition in time. Does no I/O of its own, so that a virtual bench can run it
//! too.

use pfc_ebpf::stamp::Phase;
use pfc_ebpf::units::{Priority, Quanta};

use super::judge::probe::{Measured, enough};
use super::probing::{self, Timing};
use crate::evidence::pfc::{Arrival, Departure, PhaseSpan, ProbeReport, StormReport};
use crate::pacing::Burst;
use crate::plan::{Limits, Nanos, ProbePlan, RepetitionPlan};

/// From the decision to send to the first frame.
const PREPARE: Nanos = 2_000_000;

/// Why a repetition ended before its time.
#[derive(Debug)]
pub enum Stop {
    /// The user's wish.
    Interrupted,
    /// The tester or its surroundings failed.
    Failed(anyhow::Error),
}

impl From<anyhow::Error> for Stop {
    fn from(error: anyhow::Error) -> Self {
        Self::Failed(error)
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
    fn start_storm(&mut self) -> Result<(), Stop>;
    /// Stops it.
    fn stop_storm(&mut self) -> Result<StormReport, Stop>;
    /// Sends one PFC frame: these priorities, this time.
    fn pause(&mut self, priorities: &[Priority], quanta: Quanta) -> Result<Departure, Stop>;
    /// Latest time at which a pause that the DUT has asked of the tx port may end.
    fn held_until(&mut self) -> Nanos;
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
        plan.phases()
            .into_iter()
            .filter(|phase| !begun(phase))
            .collect()
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
        in_force: 0,
    };
    steps.burst("baseline", Phase::Baseline, plan.durations.baseline)?;
    if plan.probe_first {
        steps.probe()?;
    }
    steps.storm()?;
    if plan.durations.resume > 0 {
        steps.burst("resume", Phase::Resume, plan.durations.resume)?;
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
        let quanta = plan.storm.quanta;
        limits.pause_time(quanta) + limits.pause_tolerance(quanta) + limits.max_response
    } else {
        0
    };
    burst(d.baseline)
        + runs_out
        + d.lead
        + d.traffic
        + d.tail
        + burst(d.resume)
        + probing::least(plan, limits, PREPARE)
}

struct Steps<'s, B> {
    bench: &'s mut B,
    plan: &'s RepetitionPlan,
    limits: &'s Limits,
    done: &'s mut Stimulus,
    /// Latest end of the pauses that the tester has asked for.
    in_force: Nanos,
}

impl<B: Bench> Steps<'_, B> {
    /// Waits until nothing that was asked for before pauses anything any more: neither a pause of
    /// the tester, which a DUT that has drained in a gap of the storm still keeps, nor one of the
    /// DUT, which need not send XON (IEEE 802.1Q, clause 36).
    fn pauses_run_out(&mut self) -> Result<(), Stop> {
        self.bench.wait_until(self.in_force)?;
        let held = self.bench.held_until();
        self.bench.wait_until(held)
    }

    /// The tester has sent a pause frame.
    fn asked(&mut self, frame: Departure, quanta: Quanta) {
        let time = self.limits.pause_time(quanta) + self.limits.pause_tolerance(quanta);
        let end = frame.after + time + self.limits.max_response;
        self.in_force = self.in_force.max(end);
    }

    /// Traffic for `duration`, then waits for all of it to arrive.
    fn burst(&mut self, name: &'static str, phase: Phase, duration: Nanos) -> Result<(), Stop> {
        self.bench.announce(name);
        self.pauses_run_out()?;
        let from = self.bench.now() + PREPARE;
        let to = from + duration;
        self.done.phases.push(PhaseSpan { phase, from, to });
        self.bench.start_traffic(Burst {
            phase,
            from,
            to,
            load: 100,
        })?;
        self.bench.wait_until(to)?;
        self.bench.finish_traffic()?;
        self.bench.settle(phase, to + self.plan.durations.drain_max)
    }

    /// Steps 1 to 5 of the test plan: the storm, traffic in it, its end, and the drain.
    fn storm(&mut self) -> Result<(), Stop> {
        let durations = &self.plan.durations;
        self.bench.announce("storm");
        self.pauses_run_out()?;
        self.bench.start_storm()?;
        let from = self.bench.now() + durations.lead;
        let to = from + durations.traffic;
        let outcome = self.traffic_in_storm(from, to);
        // Also after an early end: the gaps that it had belong to what was measured.
        let storm = self.bench.stop_storm();
        outcome?;
        let storm = storm?;
        self.asked(storm.last, self.plan.storm.quanta);
        self.done.storm = Some(storm);
        self.bench.announce("drain");
        let stopped = self.bench.now();
        let outcome = self.bench.settle(
            Phase::Storm,
            stopped + self.limits.pause_time(self.plan.storm.quanta) + durations.drain_max,
        );
        self.done.phases.push(PhaseSpan {
            phase: Phase::Drain,
            from: stopped,
            to: self.bench.now(),
        });
        outcome
    }

    fn traffic_in_storm(&mut self, from: Nanos, to: Nanos) -> Result<(), Stop> {
        self.done.phases.push(PhaseSpan {
            phase: Phase::Storm,
            from,
            to,
        });
        self.bench.start_traffic(Burst {
            phase: Phase::Storm,
            from,
            to,
            load: 100,
        })?;
        self.bench.wait_until(to)?;
        self.bench.finish_traffic()?;
        self.bench.wait_until(to + self.plan.durations.tail)
    }

    /// Probes until enough of them were measured well, where the case judges them.
    fn probe(&mut self) -> Result<(), Stop> {
        let Some(probe) = &self.plan.probe else {
            return Ok(());
        };
        self.bench.announce("probe");
        let timing = Timing::of(self.plan, probe, self.limits);
        for number in 1..=probing::MOST {
            self.one_probe(probe, &timing)?;
            if number < probing::ENOUGH {
                continue;
            }
            let measured = Measured {
                plan: self.plan,
                limits: self.limits,
                probes: &self.done.probes,
                records: self.bench.arrivals()?,
            };
            if !probe.xon || enough(&measured) {
                break;
            }
        }
        let end = self.bench.now() + self.plan.durations.drain_max;
        self.bench.settle(Phase::Probe, end)
    }

    /// An XOFF that runs out; and, where asked for, an XOFF that an XON ends.
    fn one_probe(&mut self, probe: &ProbePlan, timing: &Timing) -> Result<(), Stop> {
        let (_, xoff) = self.xoff(probe, timing, timing.pause)?;
        self.end_of_burst(timing)?;
        self.done.probes.push(ProbeReport {
            quanta: timing.quanta,
            priorities: probe.priorities.clone(),
            xoff,
            xon: None,
        });
        if !probe.xon {
            return Ok(());
        }
        let (start, xoff) = self.xoff(probe, timing, timing.hold)?;
        self.bench.wait_until(start + timing.hold)?;
        let xon = self.bench.pause(&probe.priorities, Quanta::ZERO)?;
        self.in_force = 0;
        self.end_of_burst(timing)?;
        if let Some(report) = self.done.probes.last_mut() {
            report.xon = Some((xoff, xon));
        }
        Ok(())
    }

    /// Starts traffic that goes on after a pause of that length, and sends the XOFF: the time at
    /// which it was to leave, and did.
    fn xoff(
        &mut self,
        probe: &ProbePlan,
        timing: &Timing,
        lasts: Nanos,
    ) -> Result<(Nanos, Departure), Stop> {
        self.pauses_run_out()?;
        let from = self.bench.now() + PREPARE;
        let start = from + timing.quiet;
        let to = start + lasts + timing.after;
        match self.done.phases.last_mut() {
            Some(span) if span.phase == Phase::Probe => span.to = to,
            _ => self.done.phases.push(PhaseSpan {
                phase: Phase::Probe,
                from,
                to,
            }),
        }
        self.bench.start_traffic(Burst {
            phase: Phase::Probe,
            from,
            to,
            load: probing::LOAD,
        })?;
        self.bench.wait_until(start)?;
        let xoff = self.bench.pause(&probe.priorities, timing.quanta)?;
        self.asked(xoff, timing.quanta);
        Ok((start, xoff))
    }

    /// Waits for the end of the traffic, and until the frames that a pause held back have come: the
    /// next XOFF is to find no queue but its own.
    fn end_of_burst(&mut self, timing: &Timing) -> Result<(), Stop> {
        let to = self.done.phases.last().map_or(0, |span| span.to);
        self.bench.wait_until(to)?;
        self.bench.finish_traffic()?;
        self.bench.settle(Phase::Probe, to + timing.drain)
    }
}
