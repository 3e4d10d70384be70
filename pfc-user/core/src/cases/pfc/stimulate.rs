//! The steps of a repetition in time. Does no I/O of its own, so that a virtual bench can run it
//! too.

use pfc_ebpf::stamp::Phase;
use pfc_ebpf::units::{Priority, Quanta};

use crate::evidence::pfc::{Departure, PhaseSpan, ProbeReport, StormReport};
use crate::pacing::Burst;
use crate::plan::{Nanos, RepetitionPlan};

/// From the decision to send to the first frame.
const PREPARE: Nanos = 2_000_000;
/// Attempts of the probe; those during which the tester was too slow do not count.
const PROBE_ATTEMPTS: usize = 3;
/// Undisturbed traffic before, between and after the pause frames of a probe.
const PROBE_QUIET: Nanos = 20_000_000;
/// Load of the probe in percent of the flows' rates: at full load a queue that once built up stays
/// and hides the response.
const PROBE_LOAD: u8 = 50;

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
    pause_time: Nanos,
    max_response: Nanos,
    done: &mut Stimulus,
) -> Result<(), Stop> {
    let mut steps = Steps {
        bench,
        plan,
        pause_time,
        max_response,
        done,
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

struct Steps<'s, B> {
    bench: &'s mut B,
    plan: &'s RepetitionPlan,
    pause_time: Nanos,
    max_response: Nanos,
    done: &'s mut Stimulus,
}

impl<B: Bench> Steps<'_, B> {
    /// Traffic for `duration`, then waits for all of it to arrive.
    fn burst(&mut self, name: &'static str, phase: Phase, duration: Nanos) -> Result<(), Stop> {
        self.bench.announce(name);
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
        self.bench.start_storm()?;
        let from = self.bench.now() + durations.lead;
        let to = from + durations.traffic;
        let outcome = self.traffic_in_storm(from, to);
        // Also after an early end: the gaps that it had belong to what was measured.
        let storm = self.bench.stop_storm();
        outcome?;
        self.done.storm = Some(storm?);
        self.bench.announce("drain");
        let stopped = self.bench.now();
        let outcome = self.bench.settle(
            Phase::Storm,
            stopped + self.pause_time + durations.drain_max,
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

    /// Running traffic; XOFF, silence, expiry; and XOFF, XON.
    fn probe(&mut self) -> Result<(), Stop> {
        let Some(probe) = &self.plan.probe else {
            return Ok(());
        };
        self.bench.announce("probe");
        let recover = self.pause_time + self.max_response + PROBE_QUIET;
        let hold = self.pause_time / 3;
        let attempt = recover
            + if probe.xon {
                hold + self.max_response + PROBE_QUIET
            } else {
                0
            };
        let from = self.bench.now() + PREPARE;
        let to = from + PROBE_QUIET + attempt * PROBE_ATTEMPTS as Nanos;
        self.done.phases.push(PhaseSpan {
            phase: Phase::Probe,
            from,
            to,
        });
        self.bench.start_traffic(Burst {
            phase: Phase::Probe,
            from,
            to,
            load: PROBE_LOAD,
        })?;
        for number in 0..PROBE_ATTEMPTS {
            let start = from + PROBE_QUIET + attempt * number as Nanos;
            self.bench.wait_until(start)?;
            let xoff = self.bench.pause(&probe.priorities, probe.quanta)?;
            self.bench.wait_until(start + recover)?;
            let xon = if probe.xon {
                let xoff = self.bench.pause(&probe.priorities, probe.quanta)?;
                self.bench.wait_until(start + recover + hold)?;
                Some((xoff, self.bench.pause(&probe.priorities, Quanta::ZERO)?))
            } else {
                None
            };
            self.done.probes.push(ProbeReport {
                quanta: probe.quanta,
                priorities: probe.priorities.clone(),
                xoff,
                xon,
            });
        }
        self.bench.wait_until(to)?;
        self.bench.finish_traffic()?;
        self.bench
            .settle(Phase::Probe, to + self.plan.durations.drain_max)
    }
}
