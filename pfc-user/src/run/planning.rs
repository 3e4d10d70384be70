//! The repetitions of a run, planned before anything is sent, and what of the plan cannot be.

use anyhow::{Result, bail};
use pfc_ebpf::units::{Dscp, LineRate};
use validator_core::cases::mad::planning as mad;
use validator_core::cases::pfc::feasibility::frames_too_long;
use validator_core::cases::pfc::port::PortContext;
use validator_core::cases::pfc::unfolding::Repetitions;
use validator_core::cases::{PfcTask, PlannedCase, Task};
use validator_core::evidence::preflight::{Facts, Port, Role, UnfitCase};
use validator_core::evidence::{FixedSet, Omitted};
use validator_core::plan::{FlowPlan, PortRole};
use validator_core::preflight;
use validator_core::verdict::Case;

use crate::config::{Config, PfcTestbed};
use crate::driver::bringup::testbed;
use crate::live::pfc::hooks;

pub(super) const UP: &str = "planned, so there is a testbed for it";

/// A case with its repetitions planned.
pub struct Planned {
    /// The case.
    pub case: &'static Case,
    /// Repetitions that can run.
    pub repetitions: Vec<Task>,
    /// Repetitions that cannot run.
    pub omitted: Vec<Omitted>,
    /// Reason why one of these can never run at this speed.
    impossible: Option<String>,
    /// The DUT's lossless set, where the repetitions follow it.
    pub fixed: Option<FixedSet>,
}

impl Planned {
    fn new(case: &'static Case, repetitions: Vec<Task>) -> Self {
        Self {
            case,
            repetitions,
            omitted: Vec::new(),
            impossible: None,
            fixed: None,
        }
    }

    /// Returns the case as not applicable, because the testbed has nothing for it.
    fn without(case: &'static Case, table: &str) -> Self {
        let reason = format!("the testbed has no table [{table}], so nothing to try it on");
        Self {
            omitted: vec![Omitted {
                name: "all".into(),
                reason,
                not_applicable: true,
            }],
            ..Self::new(case, Vec::new())
        }
    }
}

/// Plans all repetitions; `line_rate` is the speed of the testbed's ports, where it has some. Sends
/// nothing.
///
/// An error when nothing of what the plan asks can be had at that speed.
pub fn plan(config: &Config, line_rate: Option<LineRate>) -> Result<Vec<Planned>> {
    refuse_watchdog(config, declared_watchdog(config))?;
    let planned = plan_all(config, line_rate);
    let can_run = planned.iter().any(|case| !case.repetitions.is_empty());
    match planned.iter().find_map(|case| case.impossible.as_ref()) {
        Some(reason) if !can_run => bail!("no repetition can run: {reason}"),
        _ => Ok(planned),
    }
}

fn plan_all(config: &Config, line_rate: Option<LineRate>) -> Vec<Planned> {
    let cases = config.plan.cases.iter();
    cases
        .map(|planned| plan_case(config, line_rate, planned))
        .collect()
}

fn plan_case(config: &Config, line_rate: Option<LineRate>, planned: &PlannedCase) -> Planned {
    let (case, testbed) = (planned.case(), &config.testbed);
    match planned {
        PlannedCase::Pfc(pfc, parameters) => match (&testbed.pfc, line_rate) {
            (Some(testbed), Some(line_rate)) => {
                let port = port_context(testbed, line_rate);
                let Repetitions {
                    plans,
                    omitted,
                    impossible,
                    fixed,
                } = pfc.repetitions(&port, parameters);
                let limits = testbed.limits.at(line_rate);
                let task = |plan| PfcTask {
                    plan: Box::new(plan),
                    limits: limits.clone(),
                };
                let tasks = plans.into_iter().map(|plan| Task::Pfc(pfc, task(plan)));
                Planned {
                    omitted,
                    impossible,
                    fixed,
                    ..Planned::new(case, tasks.collect())
                }
            }
            _ => Planned::without(case, "dut"),
        },
        PlannedCase::Mad(known, all_key_bits) => match &testbed.mad {
            Some(testbed) => {
                let mut context = mad::PortContext::from(testbed);
                if *all_key_bits {
                    context.key_bits = mad::KeyBits::All;
                }
                let plans = (known.plan)(&context).into_iter();
                Planned::new(case, plans.map(|plan| Task::Mad(known, plan)).collect())
            }
            None => Planned::without(case, "mad"),
        },
        PlannedCase::Rc(rc, queue_pairs) => match &testbed.rc {
            Some(_) => {
                let plans = queue_pairs.iter().map(rc.plan);
                Planned::new(case, plans.map(|plan| Task::Rc(rc, plan)).collect())
            }
            None => Planned::without(case, "rc"),
        },
    }
}

fn port_context(testbed: &PfcTestbed, line_rate: LineRate) -> PortContext {
    PortContext {
        line_rate,
        max_response: testbed.limits.at(line_rate).max_response,
        max_residence: testbed.limits.at(line_rate).max_residence,
        load: testbed.limits.load,
        trust: testbed.qos.trust,
        dscp_map: testbed.qos.dscp_map,
        vlan: testbed.qos.vlan,
        senders: testbed.ports.further(PortRole::Tx).cloned().collect(),
        receivers: testbed.ports.further(PortRole::Rx).cloned().collect(),
        shortest: testbed.shortest_frame().0,
        zero_source: testbed.facts.zero_source,
        fixed_lossless: testbed.is_fixed().then(|| testbed.qos.lossless.clone()),
    }
}

/// The hooks that are called for the whole run.
pub fn hooks_around_run(config: &Config) -> Vec<hooks::Planned> {
    config.pfc().map_or_else(Vec::new, |testbed| {
        hooks::around_run(testbed, config.out.as_deref())
    })
}

/// The hooks that are called for this repetition.
pub fn hooks_around(config: &Config, task: &Task) -> Vec<hooks::Planned> {
    match (task, &config.testbed.pfc) {
        (Task::Pfc(case, PfcTask { plan, .. }), Some(testbed)) => {
            hooks::around(testbed, config.out.as_deref(), case.case.id, plan)
        }
        _ => Vec::new(),
    }
}

/// The cases of the plan that a run refuses on these ports, or that can never be judged at their
/// speed, with the reason for one repetition of each. Other defects of the ports are not reported
/// here.
pub fn unfit(config: &Config, ports: &[Port]) -> Vec<UnfitCase> {
    let watched = watched(config, declared_watchdog(config));
    let Ok(line_rate) = planned_line_rate(config) else {
        return watched.collect();
    };
    let planned = plan_all(config, line_rate);
    let too_fast = planned.iter().filter_map(|planned| {
        let impossible = planned.impossible.clone();
        let impossible = impossible.map(|reason| (reason, String::new()));
        let too_long = planned.repetitions.iter().find_map(|task| match task {
            Task::Pfc(_, PfcTask { plan, limits }) => frames_too_long(limits, plan),
            _ => None,
        });
        let too_long = too_long.map(|unfit| (unfit.reason, unfit.remedy));
        let (reason, remedy) = impossible.or(too_long)?;
        Some(UnfitCase {
            case: planned.case.id.into(),
            reason,
            remedy,
        })
    });
    watched
        .chain(too_fast)
        .chain(beyond_mtu(config, &planned, ports))
        .collect()
}

/// The cases of which a port of the tester cannot take the longest packet.
pub(super) fn beyond_mtu(config: &Config, planned: &[Planned], ports: &[Port]) -> Vec<UnfitCase> {
    let is_ipv4 = config.rc().is_some_and(|rc| rc.address.is_ipv4());
    let longest = |task: &Task| match task {
        Task::Pfc(_, PfcTask { plan, .. }) => plan.flows.iter().map(FlowPlan::packet_length).max(),
        Task::Rc(_, plan) => Some(plan.answer_length(is_ipv4)),
        Task::Mad(..) => None,
    };
    let unfit = planned.iter().filter_map(|planned| {
        let longest = planned.repetitions.iter().filter_map(longest).max()?;
        let is_of_pfc = matches!(planned.repetitions.first(), Some(Task::Pfc(..)));
        let port = ports.iter().find(|port| {
            let carries = if is_of_pfc {
                port.role.is_of_pfc()
            } else {
                port.role == Role::Rc
            };
            carries && (port.facts.mtu as usize) < longest
        })?;
        let Facts { interface, mtu, .. } = &port.facts;
        let raise = preflight::command(&port.facts, "ip link set dev", format!("mtu {longest}"));
        let shorter = if is_of_pfc {
            "send shorter frames (traffic.frame)"
        } else {
            "ask for shorter answers (path_mtu)"
        };
        Some(UnfitCase {
            case: planned.case.id.into(),
            reason: format!(
                "expected packets of up to {longest} octets to fit the {} port {interface}, found \
                 an MTU of {mtu}",
                port.role.word()
            ),
            remedy: format!("raise it with `{raise}`, or {shorter}"),
        })
    });
    unfit.collect()
}

/// The line rate that a run would have, without bringing anything up; `None` where nothing of the
/// plan and testbed needs one.
pub fn planned_line_rate(config: &Config) -> Result<Option<LineRate>> {
    config.pfc().map(testbed::planned_line_rate).transpose()
}

/// Flows of the repetition with the most; no fewer than there are code points. At a speed that is
/// not known yet, those of the fastest.
pub(super) fn most_flows(config: &Config) -> u32 {
    let known = planned_line_rate(config).ok().flatten();
    let planned = plan_all(config, known.or(Some(LineRate::FASTEST)));
    let tasks = planned.iter().flat_map(|planned| &planned.repetitions);
    let flows = tasks.filter_map(|task| match task {
        Task::Pfc(_, PfcTask { plan, .. }) => Some(plan.flows.len()),
        Task::Mad(..) | Task::Rc(..) => None,
    });
    flows.chain([Dscp::COUNT]).max().unwrap_or_default() as u32
}

/// The state of the PFC watchdog that the testbed declares.
pub(super) fn declared_watchdog(config: &Config) -> Option<&str> {
    Some(config.testbed.pfc.as_ref()?.facts.watchdog?.word())
}

/// Fails where a case of the plan cannot be judged with the PFC watchdog in that state.
pub(super) fn refuse_watchdog(config: &Config, found: Option<&str>) -> Result<()> {
    refuse(watched(config, found))
}

/// Fails with the first of the cases that cannot be run, and names the others.
pub(super) fn refuse(unfit: impl IntoIterator<Item = UnfitCase>) -> Result<()> {
    let unfit: Vec<UnfitCase> = unfit.into_iter().collect();
    let Some(UnfitCase { reason, remedy, .. }) = unfit.first() else {
        return Ok(());
    };
    let cases: Vec<&str> = unfit.iter().map(|unfit| unfit.case.as_str()).collect();
    bail!("{}: {reason}; {remedy}", cases.join(", "))
}

/// The cases that cannot be judged with the PFC watchdog in that state.
fn watched<'c>(
    config: &'c Config,
    found: Option<&'c str>,
) -> impl Iterator<Item = UnfitCase> + use<'c> {
    config.plan.cases.iter().filter_map(move |planned| {
        let PlannedCase::Pfc(pfc, _) = planned else {
            return None;
        };
        // It would end their storms.
        let found = found.filter(|found| *found != "off")?;
        Some(UnfitCase {
            case: pfc.case.id.into(),
            reason: format!("expected a DUT whose PFC watchdog is off, found it {found}"),
            remedy: "turn it off on the DUT and declare facts.watchdog = \"off\", or let \
                     hooks.prepare do both"
                .into(),
        })
    })
}
