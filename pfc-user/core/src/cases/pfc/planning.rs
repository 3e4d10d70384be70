//! From the request of a plan and the testbed's ports to the flows and the storm of a repetition.

use pfc_ebpf::abi::Trust;
use pfc_ebpf::units::{Dscp, LineRate, Priority, Quanta};

use super::PfcCase;
use super::parameters::{IntervalTooLong, PfcParameters, PlannedRepetition};
use crate::evidence::Omitted;
use crate::plan::{
    Durations, FlowPlan, Nanos, ProbePlan, RepetitionPlan, Role, StormKind, StormPlan,
};

/// The testbed's ports, and how the DUT sorts their frames.
#[derive(Clone, Debug)]
pub struct PortContext {
    /// Speed of the ports.
    pub line_rate: LineRate,
    /// Share of the line rate that counts as 100 %.
    pub load: f64,
    /// Field that tells a frame's priority.
    pub trust: Trust,
    /// Priority by DSCP.
    pub dscp_map: [Priority; Dscp::COUNT],
    /// The DUT's lossless priorities, where the tester cannot configure others.
    pub fixed_lossless: Option<Vec<Priority>>,
}

/// One repetition as a plan asks for it.
#[derive(Clone, Debug)]
pub struct RepetitionRequest<'a> {
    /// Lossless priorities of the DUT.
    pub lossless: &'a [Priority],
    /// Priorities of the storm, where not the case's own choice.
    pub storm: Option<&'a [Priority]>,
    /// Times.
    pub durations: Durations,
    /// Length of the frames, without FCS.
    pub frame: usize,
    /// Pause time in each storm frame.
    pub quanta: Quanta,
    /// Time between storm frames.
    pub interval: Nanos,
}

impl PfcCase {
    /// The repetitions that `parameters` ask for, and those that cannot be done.
    pub fn repetitions(
        &self,
        port: &PortContext,
        parameters: &PfcParameters,
    ) -> Result<(Vec<RepetitionPlan>, Vec<Omitted>), IntervalTooLong> {
        let interval = parameters.storm.interval_at(port.line_rate)?;
        let (mut plans, mut omitted) = (Vec::new(), Vec::new());
        for PlannedRepetition { lossless, storm } in &parameters.repetitions {
            let request = RepetitionRequest {
                lossless,
                storm: storm.as_deref(),
                durations: parameters.durations,
                frame: parameters.frame,
                quanta: parameters.storm.quanta,
                interval,
            };
            let fixed = port.fixed_lossless.as_ref();
            let (reason, not_applicable) = match ((self.plan)(port, &request), fixed) {
                (Err(reason), _) => (reason, true),
                (Ok(_), Some(fixed)) if fixed != lossless => {
                    let fixed = join(fixed);
                    let reason = format!(
                        "the DUT's lossless priorities are {fixed}; others need the hook \
                         `configure`"
                    );
                    (reason, false)
                }
                (Ok(plan), _) => {
                    plans.push(plan);
                    continue;
                }
            };
            omitted.push(Omitted {
                name: name(&request),
                reason,
                not_applicable,
            });
        }
        Ok((plans, omitted))
    }
}

/// Why a repetition makes no sense here.
pub type NotApplicable = String;

/// Puts a repetition together.
pub(super) struct Builder<'a> {
    port: &'a PortContext,
    request: &'a RepetitionRequest<'a>,
    flows: Vec<FlowPlan>,
}

impl<'a> Builder<'a> {
    pub(super) fn new(port: &'a PortContext, request: &'a RepetitionRequest<'a>) -> Self {
        Self {
            port,
            request,
            flows: Vec::new(),
        }
    }

    /// Layer-1 rate of `percent` of the line, split over `parts`.
    fn rate(&self, percent: u64, parts: usize) -> u64 {
        let full = self.port.line_rate.bits_per_second() as f64 * self.port.load;
        (full * percent as f64 / 100.0 / parts as f64) as u64
    }

    fn push(&mut self, role: Role, priority: Priority, dscp: Dscp, rate: u64) {
        let pcp = (self.port.trust == Trust::Pcp).then_some(priority);
        let id = self.flows.len() as u16;
        self.flows.push(FlowPlan {
            id,
            role,
            priority,
            dscp,
            pcp,
            rate,
            length: self.request.frame,
        });
    }

    /// The code point by which `priority` is reached: its own number where the map has it so.
    fn dscp_of(&self, priority: Priority) -> Result<Dscp, NotApplicable> {
        let map = &self.port.dscp_map;
        let own =
            Dscp::all().find(|dscp| dscp.get() == priority.get() && map[dscp.index()] == priority);
        match (
            own.or_else(|| Dscp::all().find(|dscp| map[dscp.index()] == priority)),
            self.port.trust,
        ) {
            (Some(dscp), _) => Ok(dscp),
            // Where the PCP is trusted the code point does not matter.
            (None, Trust::Pcp) => Ok(Dscp::from_traffic_class(0)),
            (None, Trust::Dscp) => Err(format!("no DSCP is mapped to priority {priority}")),
        }
    }

    /// One flow for each of `priorities`, which share `percent` of the line.
    pub(super) fn flows(
        mut self,
        priorities: &[(Role, Priority)],
        percent: u64,
    ) -> Result<Self, NotApplicable> {
        let rate = self.rate(percent, priorities.len());
        for (role, priority) in priorities {
            let dscp = self.dscp_of(*priority)?;
            self.push(*role, *priority, dscp, rate);
        }
        Ok(self)
    }

    /// One flow for each of the 64 code points, at 100 % of the line in all.
    pub(super) fn every_dscp(mut self, role: Role) -> Self {
        let rate = self.rate(100, Dscp::COUNT);
        for dscp in Dscp::all() {
            self.push(role, self.port.dscp_map[dscp.index()], dscp, rate);
        }
        self
    }

    /// Priorities that are not lossless and that a code point (or the PCP) can reach.
    pub(super) fn lossy(&self) -> Vec<Priority> {
        Priority::all()
            .filter(|priority| {
                !self.request.lossless.contains(priority) && self.dscp_of(*priority).is_ok()
            })
            .collect()
    }

    pub(super) fn build(
        self,
        kind: StormKind,
        probe: ProbePlan,
        probe_first: bool,
    ) -> RepetitionPlan {
        let request = self.request;
        RepetitionPlan {
            name: name(request),
            lossless: request.lossless.to_vec(),
            flows: self.flows,
            storm: StormPlan {
                kind,
                quanta: request.quanta,
                interval: request.interval,
            },
            probe: Some(probe),
            probe_first,
            durations: request.durations,
        }
    }
}

/// Priorities as `3+4`.
pub fn join(priorities: &[Priority]) -> String {
    priorities
        .iter()
        .map(Priority::to_string)
        .collect::<Vec<_>>()
        .join("+")
}

/// The name of the repetition, unique in its case.
pub fn name(request: &RepetitionRequest) -> String {
    match request.storm {
        Some(storm) if storm != request.lossless => {
            format!(
                "lossless {}, storm on {}",
                join(request.lossless),
                join(storm)
            )
        }
        _ => format!("lossless {}", join(request.lossless)),
    }
}

/// Cases 1 and 2: half the line for the lossless priorities, half for the lossy; the storm on the
/// lossless ones.
pub(super) fn lossless_storm(
    port: &PortContext,
    request: &RepetitionRequest,
) -> Result<RepetitionPlan, NotApplicable> {
    let stormed = request.storm.unwrap_or(request.lossless).to_vec();
    let role = |priority: &Priority| {
        if stormed.contains(priority) {
            Role::Test
        } else {
            Role::Isolation
        }
    };
    let lossless: Vec<_> = request
        .lossless
        .iter()
        .map(|priority| (role(priority), *priority))
        .collect();
    let builder = Builder::new(port, request);
    let lossy: Vec<_> = builder
        .lossy()
        .into_iter()
        .map(|priority| (Role::Background, priority))
        .collect();
    if lossy.is_empty() {
        return Err(
            "no lossy priority can be reached, so that there is no background traffic".into(),
        );
    }
    let probe = ProbePlan {
        priorities: stormed.clone(),
        quanta: Quanta::MAX,
        xon: true,
    };
    Ok(builder.flows(&lossless, 50)?.flows(&lossy, 50)?.build(
        StormKind::Pfc(stormed),
        probe,
        false,
    ))
}
