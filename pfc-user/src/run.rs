//! The only loop: for each case plan its repetitions, run them, judge, and say what happens.

use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};

use crate::case::Event;
use crate::cases::pfc::live::{self, Live};
use crate::cases::pfc::planning::{Ask, Surroundings};
use crate::cases::{self, pfc};
use crate::config::{Config, PlannedCase, PlannedRepetition};
use crate::driver::clock;
use crate::driver::interrupt::Interrupt;
use crate::driver::journal::Journal;
use crate::driver::testbed::{Testbed, WINDOW};
use crate::driver::xdp::Sizes;
use crate::evidence::{CaseEvidence, Evidence, Host, Omitted, Repetition, SCHEMA};
use crate::plan::RepetitionPlan;

/// A case with its repetitions planned.
pub struct Planned {
    /// The case.
    pub case: &'static pfc::PfcCase,
    /// Those that can be done.
    pub repetitions: Vec<RepetitionPlan>,
    /// Those that cannot.
    pub omitted: Vec<Omitted>,
}

/// Plans all repetitions for a testbed whose ports have that speed. Sends nothing.
///
/// An error when what the plan asks cannot be had at that speed.
pub fn plan(config: &Config, surroundings: &Surroundings) -> Result<Vec<Planned>> {
    config.plan.cases.iter().map(|planned| plan_case(config, surroundings, planned)).collect()
}

fn plan_case(config: &Config, surroundings: &Surroundings, planned: &PlannedCase) -> Result<Planned> {
    let case = pfc::CASES.iter().find(|case| case.case.id == planned.id).with_context(|| format!("no case is called {}", planned.id))?;
    let interval = planned.storm.interval_at(surroundings.line_rate).with_context(|| planned.id.clone())?;
    let mut result = Planned { case, repetitions: Vec::new(), omitted: Vec::new() };
    for PlannedRepetition { lossless, storm } in &planned.repetitions {
        let ask = Ask {
            lossless,
            storm: storm.as_deref(),
            durations: planned.durations,
            frame: planned.frame,
            quanta: planned.storm.quanta,
            interval,
        };
        let name = pfc::planning::name(&ask);
        let external = matches!(config.testbed.dut, crate::config::Dut::External { .. });
        match (case.plan)(surroundings, &ask) {
            Err(reason) => result.omitted.push(Omitted { name, reason, not_applicable: true }),
            Ok(_) if external && config.testbed.hooks.configure.is_none() && *lossless != config.testbed.lossless => {
                let reason = format!(
                    "the DUT's lossless priorities are {}; others need the hook `configure`",
                    pfc::planning::join(&config.testbed.lossless)
                );
                result.omitted.push(Omitted { name, reason, not_applicable: false });
            }
            Ok(plan) => result.repetitions.push(plan),
        }
    }
    Ok(result)
}

/// What planning needs to know of a testbed.
pub fn surroundings(config: &Config, line_rate: pfc_ebpf::units::LineRate) -> Surroundings {
    let testbed = &config.testbed;
    Surroundings { line_rate, load: testbed.limits.load, trust: testbed.trust, dscp_map: testbed.dscp_map }
}

/// Everything that can be found wrong before anything is measured has been: the testbed is up, all repetitions are planned.
pub struct Prepared<'c> {
    config: &'c Config,
    testbed: Testbed,
    cases: Vec<Planned>,
}

/// Puts back what a killed run left changed, brings the testbed up and plans all repetitions. Sends no test traffic.
pub fn prepare<'c>(config: &'c Config, events: &mut dyn FnMut(Event)) -> Result<Prepared<'c>> {
    for undone in Journal::open().recover()? {
        events(Event::Note(undone));
    }
    let testbed = Testbed::bring_up(&config.testbed, sizes(config))?;
    let cases = plan(config, &surroundings(config, testbed.limits.line_rate))?;
    Ok(Prepared { config, testbed, cases })
}

/// Runs everything. What fails here is in the evidence.
pub fn run(prepared: Prepared, interrupt: &mut Interrupt, events: &mut dyn FnMut(Event)) -> Result<Evidence> {
    let Prepared { config, mut testbed, cases } = prepared;
    let began = clock::now();
    let started = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let mut evidence = Evidence {
        schema: SCHEMA,
        version: env!("CARGO_PKG_VERSION").into(),
        started,
        seconds: 0.0,
        host: host()?,
        testbed: config.testbed.record(),
        cases: Vec::new(),
        interrupted: false,
    };
    // The process number tells our frames from those of an earlier run that may still be under way.
    let mut run = std::process::id() as u16;
    for planned in cases {
        events(Event::CaseBegins { case: &planned.case.case, repetitions: planned.repetitions.len() });
        let mut case = CaseEvidence { case: planned.case.case.id.into(), repetitions: Vec::new(), omitted: planned.omitted, error: None };
        for plan in &planned.repetitions {
            run = run.wrapping_add(1);
            events(Event::RepetitionBegins { name: plan.name.clone(), seconds: shortest(plan) });
            let mut live = Live { config: &config.testbed, testbed: &mut testbed, interrupt, events, run };
            match live::run(&mut live, plan) {
                Ok(done) => case.repetitions.push(Repetition::Pfc(Box::new(done))),
                Err(error) => case.error = Some(format!("{}: {}", plan.name, in_words(&error))),
            }
            evidence.interrupted = interrupt.seen();
            events(Event::RepetitionEnds);
            if evidence.interrupted || case.error.is_some() {
                break;
            }
        }
        events(Event::CaseEnds { result: cases::judge_case(&case) });
        evidence.cases.push(case);
        if evidence.interrupted {
            break;
        }
    }
    evidence.seconds = (clock::now() - began) as f64 / 1e9;
    Ok(evidence)
}

/// An error with its causes, each said once: many a message has its cause in it already.
pub fn in_words(error: &anyhow::Error) -> String {
    error.chain().fold(String::new(), |said, cause| match cause.to_string() {
        cause if said.is_empty() => cause,
        cause if said.ends_with(&cause) => said,
        cause => format!("{said}: {cause}"),
    })
}

/// How long the phases of a repetition take at the least, in seconds.
pub fn shortest(plan: &RepetitionPlan) -> f64 {
    let d = &plan.durations;
    (d.baseline + d.lead + d.traffic + d.tail + d.resume) as f64 / 1e9
}

/// Sizes of the maps for the longest repetition with the most flows.
fn sizes(config: &Config) -> Sizes {
    let slowest = config.testbed.line_rate.map_or(0, |rate| pfc_ebpf::units::Quanta::MAX.nanos(rate));
    let longest = config.plan.cases.iter().map(|case| live::longest(&case.durations, slowest)).max().unwrap_or(0);
    Sizes { flows: pfc_ebpf::units::Dscp::COUNT as u32, windows: (longest / WINDOW) as u32 + 1 }
}

fn host() -> Result<Host> {
    let name = nix::sys::utsname::uname().context("uname")?;
    Ok(Host {
        kernel: name.release().to_string_lossy().into_owned(),
        machine: name.machine().to_string_lossy().into_owned(),
        cpus: std::thread::available_parallelism().map_or(1, usize::from),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_are_said_once() {
        let cause = std::io::Error::from_raw_os_error(libc::ENETDOWN);
        let error = anyhow::Error::from(crate::driver::link::LinkError::System { what: "cannot list".into(), source: cause });
        assert_eq!(in_words(&error.context("no port")), "no port: cannot list: Network is down (os error 100)");
    }
}
