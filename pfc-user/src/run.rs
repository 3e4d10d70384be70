//! The only loop: for each case plan its repetitions, run them, judge, and say what happens.

use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use pfc_ebpf::units::LineRate;

use crate::case::{Case, Event};
use crate::cases::pfc::planning::{Ask, Surroundings};
use crate::cases::{self, mad, pfc, rc};
use crate::check;
use crate::config::{
    Config, Dut, Parameters, PfcParameters, PfcTestbed, PlannedCase, PlannedRepetition,
};
use crate::driver::bpf::Sizes;
use crate::driver::bringup::journal::Journal;
use crate::driver::bringup::mad::{MachineJournal, MadPort};
use crate::driver::bringup::rc::RcPort;
use crate::driver::bringup::testbed::{self, Ports, Testbed, WINDOW};
use crate::driver::kernel::clock;
use crate::driver::kernel::interrupt::Interrupt;
use crate::error_text::in_words;
use crate::evidence::preflight::Preflight;
use crate::evidence::{self, CaseEvidence, Evidence, Host, Omitted, SCHEMA};
use crate::plan::Repetition;
use crate::report;

/// A case with its repetitions planned.
pub struct Planned {
    /// The case.
    pub case: &'static Case,
    /// Those that can be done.
    pub repetitions: Vec<Repetition>,
    /// Those that cannot.
    pub omitted: Vec<Omitted>,
}

impl Planned {
    /// Not applicable, because the testbed has nothing for it.
    fn without(case: &'static Case, table: &str) -> Self {
        let reason = format!("the testbed has no table [{table}], so nothing to try it on");
        Self {
            case,
            repetitions: Vec::new(),
            omitted: vec![Omitted {
                name: "all".into(),
                reason,
                not_applicable: true,
            }],
        }
    }
}

/// Plans all repetitions; `line_rate` is the speed of the testbed's ports, where it has some. Sends nothing.
///
/// An error when what the plan asks cannot be had at that speed.
pub fn plan(config: &Config, line_rate: Option<LineRate>) -> Result<Vec<Planned>> {
    config
        .plan
        .cases
        .iter()
        .map(|planned| plan_case(config, line_rate, planned))
        .collect()
}

fn plan_case(
    config: &Config,
    line_rate: Option<LineRate>,
    planned: &PlannedCase,
) -> Result<Planned> {
    let case =
        cases::find(&planned.id).with_context(|| format!("no case is called {}", planned.id))?;
    match &planned.parameters {
        Parameters::Pfc(parameters) => match (&config.testbed.pfc, line_rate) {
            (Some(testbed), Some(line_rate)) => plan_pfc(testbed, line_rate, case, parameters),
            _ => Ok(Planned::without(case, "dut")),
        },
        Parameters::Mad => Ok(match &config.testbed.mad {
            Some(testbed) => {
                let repetitions = mad::planning::plan(case.id, testbed)
                    .into_iter()
                    .map(Repetition::Mad)
                    .collect();
                Planned {
                    case,
                    repetitions,
                    omitted: Vec::new(),
                }
            }
            None => Planned::without(case, "mad"),
        }),
        Parameters::Rc(queue_pairs) => Ok(match &config.testbed.rc {
            Some(_) => {
                let repetitions = queue_pairs
                    .iter()
                    .map(rc::planning::plan)
                    .map(Repetition::Rc)
                    .collect();
                Planned {
                    case,
                    repetitions,
                    omitted: Vec::new(),
                }
            }
            None => Planned::without(case, "rc"),
        }),
    }
}

fn plan_pfc(
    testbed: &PfcTestbed,
    line_rate: LineRate,
    case: &'static Case,
    parameters: &PfcParameters,
) -> Result<Planned> {
    let surroundings = Surroundings {
        line_rate,
        load: testbed.limits.load,
        trust: testbed.trust,
        dscp_map: testbed.dscp_map,
    };
    let planner = pfc::CASES
        .iter()
        .find(|known| known.case.id == case.id)
        .context("a case of another family has PFC parameters")?;
    let interval = parameters
        .storm
        .interval_at(line_rate)
        .with_context(|| case.id)?;
    let mut result = Planned {
        case,
        repetitions: Vec::new(),
        omitted: Vec::new(),
    };
    for PlannedRepetition { lossless, storm } in &parameters.repetitions {
        let ask = Ask {
            lossless,
            storm: storm.as_deref(),
            durations: parameters.durations,
            frame: parameters.frame,
            quanta: parameters.storm.quanta,
            interval,
        };
        let name = pfc::planning::name(&ask);
        let external = matches!(testbed.dut, Dut::External { .. });
        match (planner.plan)(&surroundings, &ask) {
            Err(reason) => result.omitted.push(Omitted {
                name,
                reason,
                not_applicable: true,
            }),
            Ok(_)
                if external
                    && testbed.hooks.configure.is_none()
                    && *lossless != testbed.lossless =>
            {
                let reason = format!(
                    "the DUT's lossless priorities are {}; others need the hook `configure`",
                    pfc::planning::join(&testbed.lossless)
                );
                result.omitted.push(Omitted {
                    name,
                    reason,
                    not_applicable: false,
                });
            }
            Ok(plan) => result.repetitions.push(Repetition::Pfc(Box::new(plan))),
        }
    }
    Ok(result)
}

/// What the planned cases are run with; only what one of them needs is there.
struct Equipment<'c> {
    pfc: Option<Testbed>,
    /// With the journal of the DUT's key: one a run, so that what was found first is what is put back.
    mad: Option<(MadPort, MachineJournal<'c>)>,
    rc: Option<RcPort>,
}

/// Everything that can be found wrong before anything is measured has been: the testbed is up, all repetitions are planned.
pub struct Prepared<'c> {
    config: &'c Config,
    preflight: Preflight,
    equipment: Equipment<'c>,
    cases: Vec<Planned>,
}

/// Puts back what a killed run left changed, brings the testbed up and plans all repetitions. Sends no test traffic.
pub fn prepare<'c>(config: &'c Config, events: &mut dyn FnMut(Event)) -> Result<Prepared<'c>> {
    let journal = Journal::open();
    for said in journal.recover()?.into_iter().chain(journal.kept()) {
        events(Event::Note(said));
    }
    let wants = |family: fn(&Parameters) -> bool| {
        config
            .plan
            .cases
            .iter()
            .any(|case| family(&case.parameters))
    };
    let mut found = Preflight::default();
    let pfc = match &config.testbed.pfc {
        Some(testbed) if wants(|parameters| matches!(parameters, Parameters::Pfc(_))) => {
            let laid = Ports::lay(testbed)?.traced(config.trace.as_ref())?;
            found.ports = check::examine(&laid, testbed)?;
            let testbed = laid.open(testbed, sizes(config, testbed))?;
            check::note_tests(&mut found.ports, &testbed);
            Some(testbed)
        }
        _ => None,
    };
    let mad = match &config.testbed.mad {
        Some(testbed) if wants(|parameters| matches!(parameters, Parameters::Mad)) => {
            Some((MadPort::open(testbed)?, MachineJournal::new(testbed)))
        }
        _ => None,
    };
    let rc = match &config.testbed.rc {
        Some(testbed) if wants(|parameters| matches!(parameters, Parameters::Rc(_))) => {
            found.ports.extend(check::rc_port(testbed)?);
            Some(RcPort::open(testbed)?)
        }
        _ => None,
    };
    for line in report::preflight::shortfalls(&found) {
        events(Event::Note(format!("preflight: {line}")));
    }
    let cases = plan(config, pfc.as_ref().map(|testbed| testbed.limits.line_rate))?;
    Ok(Prepared {
        config,
        preflight: found,
        equipment: Equipment { pfc, mad, rc },
        cases,
    })
}

/// The line rate that a run would have, without bringing anything up; `None` where nothing of the plan and testbed needs one.
pub fn planned_line_rate(config: &Config) -> Result<Option<LineRate>> {
    let asked = config
        .plan
        .cases
        .iter()
        .any(|case| matches!(case.parameters, Parameters::Pfc(_)));
    config
        .testbed
        .pfc
        .as_ref()
        .filter(|_| asked)
        .map(testbed::planned_line_rate)
        .transpose()
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
        cases,
    } = prepared;
    let began = clock::now();
    let started = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs());
    let mut evidence = Evidence {
        schema: SCHEMA,
        version: env!("CARGO_PKG_VERSION").into(),
        started,
        seconds: 0.0,
        host: host()?,
        testbed: config.testbed.record(),
        preflight: Some(preflight).filter(|preflight| !preflight.ports.is_empty()),
        cases: Vec::new(),
        interrupted: false,
    };
    // The process number tells our frames from those of an earlier run that may still be under way.
    let mut run = std::process::id() as u16;
    for planned in cases {
        events(Event::CaseBegins {
            case: planned.case,
            repetitions: planned.repetitions.len(),
        });
        let mut case = CaseEvidence {
            case: planned.case.id.into(),
            repetitions: Vec::new(),
            omitted: planned.omitted,
            error: None,
        };
        for (index, plan) in planned.repetitions.iter().enumerate() {
            run = run.wrapping_add(1);
            events(Event::RepetitionBegins {
                name: plan.name().into(),
                seconds: plan.shortest(),
            });
            match repetition(config, &mut equipment, plan, run, interrupt, events) {
                Ok(done) => {
                    case.error = done
                        .error()
                        .map(|error| format!("{}: {error}", plan.name()));
                    case.repetitions.push(done);
                }
                Err(error) => {
                    case.omitted.push(left_out(plan, "ended by an error"));
                    case.error = Some(format!("{}: {}", plan.name(), in_words(&error)));
                }
            }
            evidence.interrupted = interrupt.seen();
            events(Event::RepetitionEnds);
            let end = match (evidence.interrupted, &case.error) {
                (true, _) => "not begun: the run was interrupted",
                (_, Some(_)) => "not begun: an earlier repetition ended by an error",
                _ => continue,
            };
            case.omitted.extend(
                planned.repetitions[index + 1..]
                    .iter()
                    .map(|plan| left_out(plan, end)),
            );
            break;
        }
        events(Event::CaseEnds {
            result: cases::judge_case(&case),
        });
        evidence.cases.push(case);
        if evidence.interrupted {
            break;
        }
    }
    evidence.seconds = (clock::now() - began) as f64 / 1e9;
    Ok(evidence)
}

/// A planned repetition of which nothing is known, so that what was done does not stand for the whole.
fn left_out(plan: &Repetition, reason: &str) -> Omitted {
    Omitted {
        name: plan.name().into(),
        reason: reason.into(),
        not_applicable: false,
    }
}

fn repetition(
    config: &Config,
    equipment: &mut Equipment<'_>,
    plan: &Repetition,
    run: u16,
    interrupt: &mut Interrupt,
    events: &mut dyn FnMut(Event),
) -> Result<evidence::Repetition> {
    const UP: &str = "planned, so there is a testbed for it";
    match plan {
        Repetition::Pfc(plan) => {
            let config = config.testbed.pfc.as_ref().expect(UP);
            let testbed = equipment.pfc.as_mut().expect(UP);
            let mut live = pfc::live::Live {
                config,
                testbed,
                interrupt,
                events,
                run,
            };
            Ok(evidence::Repetition::Pfc(Box::new(pfc::live::run(
                &mut live, plan,
            )?)))
        }
        Repetition::Mad(plan) => {
            let config = config.testbed.mad.as_ref().expect(UP);
            let (
                MadPort {
                    requester,
                    transport,
                    ..
                },
                journal,
            ) = equipment.mad.as_mut().expect(UP);
            requester.transport().set_wake(Some(interrupt.wake()?));
            let mut live = mad::live::Live {
                config,
                requester,
                transport: transport.clone(),
                interrupted: &mut || interrupt.seen(),
                events,
                journal: Some(journal),
            };
            Ok(evidence::Repetition::Mad(Box::new(mad::live::run(
                &mut live, plan,
            )?)))
        }
        Repetition::Rc(plan) => {
            let port = equipment.rc.as_mut().expect(UP);
            let mut counters = port.loss_counters()?;
            let own_drops = port.own_drops();
            let RcPort {
                agent,
                responder,
                socket,
                address,
                name,
                ..
            } = port;
            let mut live = rc::live::Live {
                apm: config.testbed.rc.as_ref().expect(UP).apm,
                address: *address,
                agent,
                responder,
                socket,
                own_drops,
                counters: &mut counters,
                port: name.clone(),
                interrupted: &mut || interrupt.seen(),
                events,
            };
            Ok(evidence::Repetition::Rc(Box::new(rc::live::run(
                &mut live, plan,
            )?)))
        }
    }
}

/// Sizes of the maps for the longest repetition with the most flows.
fn sizes(config: &Config, testbed: &PfcTestbed) -> Sizes {
    let slowest = testbed
        .line_rate
        .map_or(0, |rate| pfc_ebpf::units::Quanta::MAX.nanos(rate));
    let durations = config
        .plan
        .cases
        .iter()
        .filter_map(|case| match &case.parameters {
            Parameters::Pfc(parameters) => Some(&parameters.durations),
            Parameters::Mad | Parameters::Rc(_) => None,
        });
    let longest = durations
        .map(|durations| pfc::live::longest(durations, slowest))
        .max()
        .unwrap_or(0);
    Sizes {
        flows: pfc_ebpf::units::Dscp::COUNT as u32,
        windows: (longest / WINDOW) as u32 + 1,
    }
}

fn host() -> Result<Host> {
    let name = nix::sys::utsname::uname().context("uname")?;
    Ok(Host {
        kernel: name.release().to_string_lossy().into_owned(),
        machine: name.machine().to_string_lossy().into_owned(),
        cpus: std::thread::available_parallelism().map_or(1, usize::from),
    })
}
