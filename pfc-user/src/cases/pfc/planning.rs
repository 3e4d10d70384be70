//! From what a plan asks and what the testbed is to the repetition's flows and storm.

use pfc_ebpf::abi::Trust;
use pfc_ebpf::units::{Dscp, LineRate, Priority, Quanta};

use crate::plan::{
    Durations, FlowPlan, Nanos, ProbePlan, RepetitionPlan, Role, StormKind, StormPlan,
};

/// What a testbed gives.
#[derive(Clone, Debug)]
pub struct Surroundings {
    /// Speed of the ports.
    pub line_rate: LineRate,
    /// Share of the line rate that counts as 100 %.
    pub load: f64,
    /// Field that tells a frame's priority.
    pub trust: Trust,
    /// Priority by DSCP.
    pub dscp_map: [Priority; Dscp::COUNT],
}

/// What a plan asks for in one repetition.
#[derive(Clone, Debug)]
pub struct Ask<'a> {
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

/// Why a repetition makes no sense here.
pub type NotApplicable = String;

/// Puts a repetition together.
pub(super) struct Builder<'a> {
    surroundings: &'a Surroundings,
    ask: &'a Ask<'a>,
    flows: Vec<FlowPlan>,
}

impl<'a> Builder<'a> {
    pub(super) fn new(surroundings: &'a Surroundings, ask: &'a Ask<'a>) -> Self {
        Self {
            surroundings,
            ask,
            flows: Vec::new(),
        }
    }

    /// Layer-1 rate of `percent` of the line, split over `parts`.
    fn rate(&self, percent: u64, parts: usize) -> u64 {
        let full = self.surroundings.line_rate.bits_per_second() as f64 * self.surroundings.load;
        (full * percent as f64 / 100.0 / parts as f64) as u64
    }

    fn push(&mut self, role: Role, priority: Priority, dscp: Dscp, rate: u64) {
        let pcp = (self.surroundings.trust == Trust::Pcp).then_some(priority);
        let id = self.flows.len() as u16;
        self.flows.push(FlowPlan {
            id,
            role,
            priority,
            dscp,
            pcp,
            rate,
            length: self.ask.frame,
        });
    }

    /// The code point by which `priority` is reached: its own number where the map has it so.
    fn dscp_of(&self, priority: Priority) -> Result<Dscp, NotApplicable> {
        let map = &self.surroundings.dscp_map;
        let own =
            Dscp::all().find(|dscp| dscp.get() == priority.get() && map[dscp.index()] == priority);
        match (
            own.or_else(|| Dscp::all().find(|dscp| map[dscp.index()] == priority)),
            self.surroundings.trust,
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
            self.push(role, self.surroundings.dscp_map[dscp.index()], dscp, rate);
        }
        self
    }

    /// Priorities that are not lossless and that a code point (or the PCP) can reach.
    pub(super) fn lossy(&self) -> Vec<Priority> {
        Priority::all()
            .filter(|priority| {
                !self.ask.lossless.contains(priority) && self.dscp_of(*priority).is_ok()
            })
            .collect()
    }

    pub(super) fn build(
        self,
        kind: StormKind,
        probe: ProbePlan,
        probe_first: bool,
    ) -> RepetitionPlan {
        let ask = self.ask;
        RepetitionPlan {
            name: name(ask),
            lossless: ask.lossless.to_vec(),
            flows: self.flows,
            storm: StormPlan {
                kind,
                quanta: ask.quanta,
                interval: ask.interval,
            },
            probe: Some(probe),
            probe_first,
            durations: ask.durations,
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

/// What tells the repetition from the others of its case.
pub fn name(ask: &Ask) -> String {
    match ask.storm {
        Some(storm) if storm != ask.lossless => {
            format!("lossless {}, storm on {}", join(ask.lossless), join(storm))
        }
        _ => format!("lossless {}", join(ask.lossless)),
    }
}

/// Cases 1 and 2: half the line for the lossless priorities, half for the lossy; the storm on the lossless ones.
pub(super) fn lossless_storm(
    surroundings: &Surroundings,
    ask: &Ask,
) -> Result<RepetitionPlan, NotApplicable> {
    let stormed = ask.storm.unwrap_or(ask.lossless).to_vec();
    let role = |priority: &Priority| {
        if stormed.contains(priority) {
            Role::Test
        } else {
            Role::Isolation
        }
    };
    let lossless: Vec<_> = ask
        .lossless
        .iter()
        .map(|priority| (role(priority), *priority))
        .collect();
    let builder = Builder::new(surroundings, ask);
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
