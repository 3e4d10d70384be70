//! From the request of a plan and the testbed's ports to the flows and the storm of a repetition.

use pfc_ebpf::abi::Trust;
use pfc_ebpf::units::{Dscp, LineRate, Priority, Quanta};

use super::probing;
use crate::plan::{
    Durations, FlowPlan, Nanos, ProbePlan, RepetitionPlan, Role, StormKind, StormPlan,
};

/// The testbed's ports, and how the DUT sorts their frames.
#[derive(Clone, Debug)]
pub struct PortContext {
    /// Speed of the ports.
    pub line_rate: LineRate,
    /// Longest time that the DUT has to obey a pause frame.
    pub max_response: Nanos,
    /// Longest time for which the DUT has to hold a frame.
    pub max_residence: Nanos,
    /// Share of the line rate that counts as 100 %.
    pub load: f64,
    /// Field that tells a frame's priority.
    pub trust: Trust,
    /// Priority by DSCP.
    pub dscp_map: [Priority; Dscp::COUNT],
    /// True: frames are tagged although the DSCP is trusted.
    pub vlan: bool,
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

/// Distance from a flow's priority to the one that the field not trusted points to, so that a DUT
/// that reads that field fails. As it is odd, only the set of all eight priorities points to
/// itself; as it is not 1, two neighbours such as 3 and 4 point outside their set.
const ELSEWHERE: u8 = 3;

/// The seven other priorities, in the order in which the field not trusted points to them.
fn others(priority: Priority) -> impl Iterator<Item = Priority> {
    (1..8).map(move |n| Priority::from_low_bits(priority.get() + n * ELSEWHERE))
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
        let pcp = match self.port.trust {
            Trust::Pcp => Some(priority),
            Trust::Dscp => self
                .port
                .vlan
                .then(|| others(priority).next().unwrap_or(priority)),
        };
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

    /// The code point of frames of `priority`: one that the map has for it where the DSCP is
    /// trusted, else one that it has for another priority.
    fn dscp_of(&self, priority: Priority) -> Result<Dscp, NotApplicable> {
        match self.port.trust {
            Trust::Dscp => self
                .mapped_to(priority)
                .ok_or_else(|| format!("no DSCP is mapped to priority {priority}")),
            // With all code points mapped to one priority the DSCP can point nowhere else; it does
            // not tell priorities then.
            Trust::Pcp => Ok(others(priority)
                .find_map(|other| self.mapped_to(other))
                .unwrap_or(Dscp::from_traffic_class(0))),
        }
    }

    /// The code point that is mapped to `priority`: its own number where the map has it so.
    fn mapped_to(&self, priority: Priority) -> Option<Dscp> {
        let map = &self.port.dscp_map;
        let own =
            Dscp::all().find(|dscp| dscp.get() == priority.get() && map[dscp.index()] == priority);
        own.or_else(|| Dscp::all().find(|dscp| map[dscp.index()] == priority))
    }

    /// The priority of frames with `dscp`: the map's where the DSCP is trusted, else another one.
    /// It then goes by the number of the code point, so that all eight priorities have flows
    /// whatever the map.
    fn priority_of(&self, dscp: Dscp) -> Priority {
        let mapped = self.port.dscp_map[dscp.index()];
        match self.port.trust {
            Trust::Dscp => mapped,
            Trust::Pcp => (1..8)
                .map(|n| Priority::from_low_bits(dscp.get().wrapping_sub(n * ELSEWHERE)))
                .find(|priority| *priority != mapped)
                .unwrap_or(mapped),
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
            self.push(role, self.priority_of(dscp), dscp, rate);
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
            name: name(request.lossless, request.storm),
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

/// The name of a repetition with this storm (`None`: on all lossless priorities), unique in its case.
pub fn name(lossless: &[Priority], storm: Option<&[Priority]>) -> String {
    match storm {
        Some(storm) if storm != lossless => {
            format!("lossless {}, storm on {}", join(lossless), join(storm))
        }
        _ => format!("lossless {}", join(lossless)),
    }
}

/// Case 1: half the line for the stormed priority, half for the lossy ones. Other lossless
/// priorities of the DUT have no traffic.
pub(super) fn single_storm(
    port: &PortContext,
    request: &RepetitionRequest,
) -> Result<RepetitionPlan, NotApplicable> {
    lossless_storm(port, request, request.storm.unwrap_or(request.lossless))
}

/// Case 2: half the line for the lossless priorities, stormed or not, half for the lossy ones.
pub(super) fn multi_storm(
    port: &PortContext,
    request: &RepetitionRequest,
) -> Result<RepetitionPlan, NotApplicable> {
    lossless_storm(port, request, request.lossless)
}

/// The storm on lossless priorities, with traffic of those in `sent` and of all lossy ones.
fn lossless_storm(
    port: &PortContext,
    request: &RepetitionRequest,
    sent: &[Priority],
) -> Result<RepetitionPlan, NotApplicable> {
    let stormed = request.storm.unwrap_or(request.lossless).to_vec();
    let role = |priority: &Priority| {
        if stormed.contains(priority) {
            Role::Test
        } else {
            Role::Isolation
        }
    };
    let lossless: Vec<_> = sent
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
    let others: Vec<_> = lossy.iter().map(|(_, priority)| *priority).collect();
    let probe = ProbePlan {
        bursts: probing::judged(port, &stormed, &others),
        priorities: stormed.clone(),
        judged: true,
    };
    Ok(builder.flows(&lossless, 50)?.flows(&lossy, 50)?.build(
        StormKind::Pfc(stormed),
        probe,
        false,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::pfc::CASES;

    const MS: Nanos = 1_000_000;

    /// DSCP mod 8, DSCP / 8, one that has priority 7 for nothing and 1 for most, and one that has
    /// two priorities.
    const MAPS: [fn(u8) -> u8; 4] = [
        |dscp| dscp % 8,
        |dscp| dscp / 8,
        |dscp| match dscp {
            8 => 0,
            5 => 2,
            3 | 4 => dscp,
            46 => 5,
            48 => 6,
            _ => 1,
        },
        |dscp| 3 + dscp / 32,
    ];

    fn port(trust: Trust, vlan: bool, map: fn(u8) -> u8) -> PortContext {
        PortContext {
            line_rate: LineRate::from_bits_per_second(1_000_000_000).unwrap(),
            max_response: MS,
            max_residence: 1000 * MS,
            load: 1.0,
            trust,
            vlan,
            dscp_map: std::array::from_fn(|dscp| Priority::new(map(dscp as u8)).unwrap()),
            fixed_lossless: None,
        }
    }

    /// Plans of all cases with priorities 3 and 4 lossless, where these can be reached.
    fn plans(port: &PortContext) -> Vec<RepetitionPlan> {
        let lossless = [3, 4].map(|number| Priority::new(number).unwrap());
        let durations = Durations {
            baseline: MS,
            lead: MS,
            traffic: MS,
            tail: MS,
            resume: MS,
            drain_max: MS,
        };
        let request = RepetitionRequest {
            lossless: &lossless,
            storm: None,
            durations,
            frame: 1024,
            quanta: Quanta::MAX,
            interval: MS,
        };
        let plans = CASES.iter().map(|case| (case.plan)(port, &request));
        plans.filter_map(Result::ok).collect()
    }

    fn flows(port: &PortContext) -> Vec<FlowPlan> {
        let plans = plans(port);
        assert!(!plans.is_empty());
        plans.into_iter().flat_map(|plan| plan.flows).collect()
    }

    #[test]
    fn by_pcp_the_dscp_points_to_another_priority() {
        for map in MAPS {
            let port = port(Trust::Pcp, false, map);
            for flow in flows(&port) {
                assert_eq!(flow.pcp, Some(flow.priority));
                assert_ne!(port.dscp_map[flow.dscp.index()], flow.priority, "{flow:?}");
            }
            // Each case has flows of all eight priorities, whatever the map.
            for plan in plans(&port) {
                let mut found: Vec<_> = plan.flows.iter().map(|flow| flow.priority).collect();
                found.sort();
                found.dedup();
                assert_eq!(found.len(), Priority::COUNT, "{plan:?}");
            }
        }
    }

    #[test]
    fn by_dscp_frames_are_untagged_or_the_pcp_points_to_another_priority() {
        for map in MAPS {
            for vlan in [false, true] {
                let port = port(Trust::Dscp, vlan, map);
                for flow in flows(&port) {
                    assert_eq!(port.dscp_map[flow.dscp.index()], flow.priority);
                    assert_eq!(flow.pcp.is_some(), vlan);
                    assert_ne!(flow.pcp, Some(flow.priority), "{flow:?}");
                }
            }
        }
    }

    #[test]
    fn the_lossless_priorities_point_to_lossy_ones() {
        let port = port(Trust::Pcp, false, MAPS[0]);
        let plans = plans(&port);
        let lossless = plans.iter().flat_map(|plan| {
            let lossless = |flow: &&FlowPlan| plan.is_lossless(flow.priority);
            plan.flows
                .iter()
                .filter(lossless)
                .map(move |flow| (plan, flow))
        });
        for (plan, flow) in lossless {
            assert!(
                !plan.is_lossless(port.dscp_map[flow.dscp.index()]),
                "{flow:?}"
            );
        }
    }

    #[test]
    fn a_map_to_one_priority_does_not_end_the_planning() {
        let port = port(Trust::Pcp, false, |_| 3);
        assert!(
            flows(&port)
                .iter()
                .all(|flow| flow.pcp == Some(flow.priority))
        );
    }
}
