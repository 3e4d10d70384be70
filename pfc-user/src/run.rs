//! The only loop: for each case plan its repetitions, run them, judge, and say what happens.

pub mod dry_run;
mod planning;

use std::hash::{BuildHasher, RandomState};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use validator_core::cases::{self, PfcTask, PlannedCase, Task};
use validator_core::evidence::preflight::{Preflight, Way};
use validator_core::evidence::{
    CaseEvidence, CaseTime, Evidence, Host, Invocation, Omitted, Planned as InPlan, Repetition,
    SCHEMA,
};
use validator_core::verdict::Event;

use crate::config::{Config, PfcParameters, PfcTestbed};
use crate::driver::bpf::Sizes;
use crate::driver::bringup::journal::Journal;
use crate::driver::bringup::rc::RcPort;
use crate::driver::bringup::testbed::{Ports, Testbed, WINDOW};
use crate::driver::kernel::clock;
use crate::driver::kernel::interrupt::Interrupt;
use crate::error_text::in_words;
use crate::live;
use crate::live::pfc::hooks::{Hooks, NotConfigured};
use crate::port_check;
use crate::report;

pub use self::planning::{Planned, hooks_around, hooks_around_run, plan, planned_line_rate, unfit};
use self::planning::{UP, beyond_mtu, declared_watchdog, refuse, refuse_watchdog};

/// The reason why a repetition was not done after the user had ended the run.
const NOT_BEGUN: &str = "not begun: the run was interrupted";

/// The ports that the planned cases run on; only those that one of them needs.
#[derive(Default)]
struct Equipment<'c> {
    pfc: Option<Testbed>,
    mad: Option<live::mad::Live<'c>>,
    rc: Option<RcPort>,
}

/// Everything that can be found wrong before anything is measured has been: the testbed is up, all
/// repetitions are planned.
pub struct Prepared<'c> {
    config: &'c Config,
    preflight: Preflight,
    equipment: Equipment<'c>,
    hooks: Option<Hooks<'c>>,
    cases: Vec<Planned>,
}

/// Puts back what a killed run left changed, brings the testbed up and plans all repetitions. Sends
/// no test traffic.
pub fn prepare<'c>(config: &'c Config, events: &mut dyn FnMut(Event)) -> Result<Prepared<'c>> {
    refuse_watchdog(config, declared_watchdog(config))?;
    let journal = Journal::open();
    for line in journal.recover()?.into_iter().chain(journal.kept()) {
        events(Event::Note(line));
    }
    let mut found = Preflight {
        kernel: Some(port_check::kernel_release()?),
        ..Preflight::default()
    };
    let mut equipment = Equipment::default();
    if let Some(testbed) = config.pfc() {
        let laid = Ports::lay(testbed)?.traced(config.trace.as_ref())?;
        found.ports = port_check::examine(&laid, testbed)?;
        let testbed = laid.open(testbed, sizes(config, testbed))?;
        port_check::note_tests(&mut found.ports, &testbed);
        equipment.pfc = Some(testbed);
    }
    if let Some(testbed) = config.mad() {
        found.ports.extend(port_check::mad_port(testbed));
        equipment.mad = Some(live::mad::Live::open(testbed)?);
    }
    if let Some(testbed) = config.rc() {
        found.ports.extend(port_check::rc_port(testbed)?);
        equipment.rc = Some(RcPort::open(testbed)?);
    }
    for line in report::preflight::shortfalls(&found) {
        events(Event::Note(format!("preflight: {line}")));
    }
    let pfc = equipment.pfc.as_ref();
    let cases = plan(config, pfc.map(|testbed| testbed.limits.line_rate))?;
    refuse(beyond_mtu(config, &cases, &found.ports))?;
    let hooks = config
        .pfc()
        .map(|testbed| Hooks::begin(testbed, config.out.as_deref(), &journal))
        .transpose()?;
    if let Some(hooks) = &hooks {
        refuse_watchdog(config, hooks.watchdog.as_deref())?;
    }
    Ok(Prepared {
        config,
        preflight: found,
        equipment,
        hooks,
        cases,
    })
}

/// The ways to the DUTs of the plan's cases: the programs of the hooks, which are not run, and
/// those of the MAD and RC cases, each taken for a moment as a run takes it first. Nothing is sent
/// to a DUT; `attach` allows a program on the port of the RC cases.
pub fn ways(config: &Config, attach: bool) -> Vec<Way> {
    let way = |table: &str, place: String, opened: Result<()>| Way {
        what: "way to the DUT",
        table: table.into(),
        place,
        usable: "can be opened",
        error: opened.err().map(|error| in_words(&error)),
    };
    let mut ways = Vec::new();
    if let Some(pfc) = config.pfc() {
        ways.extend(live::pfc::hooks::programs(pfc));
    }
    if let Some(mad) = config.mad() {
        let opened = live::mad::Live::open(mad).map(drop);
        ways.push(way("mad", live::mad::way(mad), opened));
    }
    if let Some(rc) = config.rc() {
        let opened = match attach {
            true => RcPort::open(rc).map(drop),
            false => RcPort::reach(rc),
        };
        ways.push(way("rc", live::rc::way(rc), opened));
    }
    ways
}

/// Runs everything. What fails here is in the evidence.
pub fn run(
    prepared: Prepared,
    interrupt: &mut Interrupt,
    events: &mut dyn FnMut(Event),
) -> Result<Evidence> {
    let Prepared {
        config,
        preflight,
        mut equipment,
        mut hooks,
        cases,
    } = prepared;
    let began = clock::now();
    let mut evidence = Evidence {
        schema: SCHEMA,
        version: env!("CARGO_PKG_VERSION").into(),
        started: seconds_since_1970(),
        seconds: 0.0,
        host: host()?,
        testbed: config.testbed.record(),
        invocation: Invocation {
            plan: config.plan.name.clone(),
            toml: config.plan.toml.clone(),
            command: std::env::args().collect(),
            cases: Vec::new(),
        },
        preflight: Some(preflight).filter(|preflight| !preflight.ports.is_empty()),
        planned: cases.iter().map(|planned| planned.case.id.into()).collect(),
        hooks: Vec::new(),
        cases: Vec::new(),
        interrupted: false,
    };
    let mut runner = Runner {
        config,
        equipment: &mut equipment,
        hooks: hooks.as_ref(),
        interrupt,
        events,
        run: any_number(),
    };
    for planned in cases {
        let (began, started) = (clock::now(), seconds_since_1970());
        let case = if evidence.interrupted {
            runner.left_out(planned)
        } else {
            runner.case(planned)
        };
        evidence.invocation.cases.push(CaseTime {
            case: case.case.clone(),
            started,
            seconds: (clock::now() - began) as f64 / 1e9,
        });
        evidence.cases.push(case);
        evidence.interrupted = runner.interrupt.seen();
    }
    if let Some(mad) = &mut equipment.mad {
        mad.finish(interrupt, events)?;
    }
    if let Some(hooks) = &mut hooks {
        let (outputs, note) = hooks.finish(interrupt.count() >= 2);
        evidence.hooks = outputs;
        if let Some(note) = note {
            events(Event::Note(note));
        }
    }
    if let Some(testbed) = &equipment.pfc {
        live::pfc::carry_over(testbed, &mut evidence.cases);
    }
    evidence.seconds = (clock::now() - began) as f64 / 1e9;
    Ok(evidence)
}

/// A number that tells the frames of this run from those of any earlier one, which may still be
/// under way or replayed. Process numbers repeat, in PID namespaces above all.
fn any_number() -> u16 {
    // Keyed by the operating system's randomness.
    RandomState::new().hash_one(()) as u16
}

/// Runs case after case.
struct Runner<'r, 'c> {
    config: &'r Config,
    equipment: &'r mut Equipment<'c>,
    hooks: Option<&'r Hooks<'c>>,
    interrupt: &'r mut Interrupt,
    events: &'r mut dyn FnMut(Event),
    /// Number of the attempt, in the stamps of its frames.
    run: u16,
}

impl Runner<'_, '_> {
    /// Runs the repetitions of a case until one ends early, and shows its verdict.
    fn case(&mut self, planned: Planned) -> CaseEvidence {
        (self.events)(Event::CaseBegins {
            case: planned.case,
            repetitions: planned.repetitions.len(),
        });
        let mut case = Self::begun(&planned);
        for (index, task) in planned.repetitions.iter().enumerate() {
            self.repetition(task, &mut case);
            let end = match (self.interrupt.seen(), &case.error) {
                (true, _) => NOT_BEGUN,
                (_, Some(_)) => "not begun: an earlier repetition ended by an error",
                _ => continue,
            };
            let rest = planned.repetitions[index + 1..].iter();
            case.omitted.extend(rest.map(|task| left_out(task, end)));
            break;
        }
        (self.events)(Event::CaseEnds {
            result: cases::judge_case(&case),
        });
        case
    }

    /// A case of which nothing was done yet, with its plan.
    fn begun(planned: &Planned) -> CaseEvidence {
        let tasks = planned.repetitions.iter().map(Task::planned);
        let left_out = planned.omitted.iter().cloned();
        let left_out = left_out.map(|omitted| InPlan::Omitted { omitted });
        CaseEvidence {
            case: planned.case.id.into(),
            planned: tasks.chain(left_out).collect(),
            repetitions: Vec::new(),
            attempts: 0,
            omitted: planned.omitted.clone(),
            fixed_set: planned.fixed.clone(),
            error: None,
        }
    }

    /// A case that did not begin, for the user had ended the run.
    fn left_out(&self, planned: Planned) -> CaseEvidence {
        let mut case = Self::begun(&planned);
        let tasks = planned.repetitions.iter();
        case.omitted
            .extend(tasks.map(|task| left_out(task, NOT_BEGUN)));
        case
    }

    /// Runs one repetition, and adds each attempt at it to the case's evidence.
    fn repetition(&mut self, task: &Task, case: &mut CaseEvidence) {
        (self.events)(Event::RepetitionBegins {
            name: task.name().into(),
            seconds: task.shortest() as f64 / 1e9,
        });
        let attempts = match (&self.config.testbed.pfc, task) {
            (Some(testbed), Task::Pfc(..)) => testbed.limits.attempts,
            _ => 1,
        };
        for attempt in 1..=attempts {
            let measured = self.attempt(task, attempt, case);
            if !measured || attempt == attempts || self.interrupt.seen() {
                break;
            }
            let Some(reason) = cases::again(case) else {
                break;
            };
            let next = attempt + 1;
            (self.events)(Event::Note(format!(
                "  {} is measured again, attempt {next} of at most {attempts}: {reason}",
                task.name()
            )));
        }
        (self.events)(Event::RepetitionEnds);
    }

    /// Measures a repetition once; `false` if it could not be, or is not to be again.
    fn attempt(&mut self, task: &Task, attempt: u32, case: &mut CaseEvidence) -> bool {
        self.run = self.run.wrapping_add(1);
        match self.measure(task, attempt) {
            Ok(done) => {
                case.error = done
                    .error()
                    .map(|error| format!("{}: {error}", task.name()));
                case.repetitions.push(done);
                case.attempts += 1;
                case.error.is_none()
            }
            Err(error) => {
                let refused = error.downcast_ref::<NotConfigured>();
                // Findings of an earlier attempt are known.
                if attempt == 1 {
                    let reason = refused.map_or("ended by an error", |refused| &refused.0);
                    case.omitted.push(left_out(task, reason));
                }
                match refused {
                    Some(refused) => (self.events)(Event::Note(format!(
                        "  {} is not done: {refused}",
                        task.name()
                    ))),
                    None => case.error = Some(format!("{}: {}", task.name(), in_words(&error))),
                }
                false
            }
        }
    }

    /// Measures a repetition on the equipment of its family.
    fn measure(&mut self, task: &Task, attempt: u32) -> Result<Repetition> {
        let (testbed, equipment) = (&self.config.testbed, &mut *self.equipment);
        let (interrupt, events) = (&mut *self.interrupt, &mut *self.events);
        Ok(match task {
            Task::Pfc(case, PfcTask { plan, .. }) => {
                let mut live = live::pfc::Live {
                    config: testbed.pfc.as_ref().expect(UP),
                    case: case.case.id,
                    hooks: self.hooks.expect(UP),
                    testbed: equipment.pfc.as_mut().expect(UP),
                    interrupt,
                    events,
                    run: self.run,
                    attempt,
                };
                Repetition::Pfc(Box::new(live::pfc::run(&mut live, plan)?))
            }
            Task::Mad(case, plan) => {
                let live = equipment.mad.as_mut().expect(UP);
                Repetition::Mad(Box::new(live.run(case, plan, interrupt, events)?))
            }
            Task::Rc(case, plan) => {
                let apm = testbed.rc.as_ref().expect(UP).apm;
                let port = equipment.rc.as_mut().expect(UP);
                let evidence = live::rc::run(port, apm, case, plan, interrupt, events)?;
                Repetition::Rc(Box::new(evidence))
            }
        })
    }
}

/// A planned repetition of which nothing is known, so that what was done does not stand for the
/// whole.
fn left_out(plan: &Task, reason: &str) -> Omitted {
    Omitted {
        name: plan.name().into(),
        reason: reason.into(),
        not_applicable: false,
    }
}

/// Sizes of the maps for the longest repetition with the most flows.
fn sizes(config: &Config, testbed: &PfcTestbed) -> Sizes {
    let slowest = testbed
        .ports
        .line_rate
        .map_or(0, |rate| pfc_ebpf::units::Quanta::MAX.nanos(rate));
    let durations = config.plan.cases.iter().filter_map(|case| match case {
        PlannedCase::Pfc(_, PfcParameters { durations, .. }) => Some(durations),
        PlannedCase::Mad(..) | PlannedCase::Rc(..) => None,
    });
    let longest = durations
        .map(|durations| live::pfc::longest(durations, slowest))
        .max()
        .unwrap_or(0);
    Sizes {
        flows: planning::most_flows(config),
        windows: (longest / WINDOW) as u32 + 1,
    }
}

fn seconds_since_1970() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

fn host() -> Result<Host> {
    let name = nix::sys::utsname::uname().context("uname")?;
    Ok(Host {
        name: name.nodename().to_string_lossy().into_owned(),
        kernel: name.release().to_string_lossy().into_owned(),
        machine: name.machine().to_string_lossy().into_owned(),
        cpus: std::thread::available_parallelism().map_or(1, usize::from),
        clock: SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |now| now.as_nanos() as u64)
            .saturating_sub(clock::now()),
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::thread;

    use super::any_number;

    #[test]
    fn numbers_of_runs_differ_though_the_process_is_the_same() {
        // A thread draws keys of its own, as a process does.
        let drawn = (0..8).map(|_| thread::spawn(any_number).join().unwrap());
        let drawn: BTreeSet<u16> = drawn.collect();
        assert!(drawn.len() > 1, "{drawn:?}");
    }
}
