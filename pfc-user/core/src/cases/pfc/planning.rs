//! From the request of a plan and the testbed's ports to the flows and the storm of a repetition.

use pfc_ebpf::abi::Trust;
use pfc_ebpf::units::{Dscp, LineRate, Priority, Quanta};

use super::port::PortContext;
use super::probing;
use crate::pacing::workers::{CPU_CARRIES, FLOW_CARRIES};
use crate::plan::{
    Durations, FlowPlan, Nanos, PortName, ProbeBurst, ProbePlan, RepetitionPlan, Role, StormKind,
    StormPlan,
};

/// One repetition as a plan asks for it.
#[derive(Clone, Debug)]
pub struct RepetitionRequest<'a> {
    /// Lossless priorities of the DUT.
    pub lossless: &'a [Priority],
    /// Priorities of the storm, where not the case's own choice.
    pub storm: Option<&'a [Priority]>,
    /// Its place among the repetitions of the plan: others have other code points, and name other
    /// lossy classes beside lossless ones.
    pub turn: usize,
    /// Times.
    pub durations: Durations,
    /// Length of the frames, without FCS.
    pub frame: usize,
    /// Pause time in each storm frame.
    pub quanta: Quanta,
    /// Time between storm frames.
    pub interval: Nanos,
}

impl RepetitionRequest<'_> {
    /// The traffic item of `priority` in a storm on these: a stormed lossless one is tested.
    pub(super) fn role(&self, stormed: &[Priority], priority: Priority) -> Role {
        match (
            self.lossless.contains(&priority),
            stormed.contains(&priority),
        ) {
            (true, true) => Role::Test,
            (true, false) => Role::Isolation,
            (false, _) => Role::Background,
        }
    }
}

/// Distance from a flow's priority to the one that the field not trusted points to, so that a DUT
/// that reads that field fails. As it is odd, only the set of all eight priorities points to
/// itself; as it is not 1, two neighbours such as 3 and 4 point outside their set.
const ELSEWHERE: u8 = 3;

/// The first code point of the upper half, which a DUT that looks at five bits does not have.
const HIGH_DSCP: u8 = 32;

/// Frames of a flow in each phase from which a priority has several flows.
const MANY: u128 = 20;

/// Share of the rate that the first of two flows of a lossless priority has. With three quarters,
/// neighbours among the frames that a pause holds are of one flow as often as of two, and order is
/// judged within a flow (IEEE 802.1Q clause 8.6.6). Above what one CPU sends, parts of the first
/// are flows of their own, and this no longer holds.
const MOST: (u64, u64) = (3, 4);

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
    /// The ports of the flows that are added.
    from: PortName,
    to: PortName,
    /// The length of their frames.
    length: usize,
}

impl<'a> Builder<'a> {
    pub(super) fn new(port: &'a PortContext, request: &'a RepetitionRequest<'a>) -> Self {
        Self {
            port,
            request,
            flows: Vec::new(),
            from: PortName::TX,
            to: PortName::RX,
            length: request.frame,
        }
    }

    /// The flows that are added from here on go from that port to that one.
    pub(super) fn between(self, from: &PortName, to: &PortName) -> Self {
        Self {
            from: from.clone(),
            to: to.clone(),
            ..self
        }
    }

    /// Layer-1 rate of `percent` of the line, split over `parts`.
    fn rate(&self, percent: u64, parts: usize) -> u64 {
        let full = self.port.line_rate.bits_per_second() as f64 * self.port.load;
        (full * percent as f64 / 100.0 / parts as f64) as u64
    }

    /// Frames of a flow of that rate in the shortest phase.
    fn frames(&self, rate: u64) -> u128 {
        let durations = &self.request.durations;
        let phases = [durations.baseline, durations.traffic, durations.resume];
        let shortest = phases.into_iter().filter(|phase| *phase > 0).min();
        let bits = u128::from(rate) * u128::from(shortest.unwrap_or(0)) / 1_000_000_000;
        bits / u128::from(LineRate::frame_bits(self.request.frame))
    }

    /// Adds a flow, or several of equal rate where one would have more frames than a flow carries.
    /// Flows of a lossless priority stay whole for as long as a CPU carries one: equal ones take
    /// turns, and order is judged within a flow.
    fn push(&mut self, role: Role, priority: Priority, dscp: Dscp, rate: u64) {
        let frames = rate / LineRate::frame_bits(self.length);
        let lossless = self.request.lossless.contains(&priority);
        let most = if lossless { CPU_CARRIES } else { FLOW_CARRIES };
        let parts = frames.div_ceil(most).max(1);
        for part in 0..parts {
            self.push_one(role, priority, dscp, (rate + part) / parts);
        }
    }

    fn push_one(&mut self, role: Role, priority: Priority, dscp: Dscp, rate: u64) {
        let pcp = match self.port.trust {
            Trust::Pcp => Some(priority),
            Trust::Dscp if self.port.vlan => others(priority).next(),
            Trust::Dscp => None,
        };
        self.flows.push(FlowPlan {
            from: self.from.clone(),
            to: self.to.clone(),
            id: self.flows.len() as u16,
            role,
            priority,
            dscp,
            pcp,
            rate,
            length: self.length,
        });
    }

    /// Code points of frames of `priority`: where the DSCP is trusted, up to two that the map has
    /// for it, else one that it has for another priority.
    fn dscps_of(&self, priority: Priority) -> Result<Vec<Dscp>, NotApplicable> {
        match self.port.trust {
            Trust::Dscp => {
                let found = self.in_turn(&self.mapped_to(priority));
                if found.is_empty() {
                    return Err(format!("no DSCP is mapped to priority {priority}"));
                }
                Ok(found)
            }
            // With all code points mapped to one priority the DSCP can point nowhere else; it does
            // not tell priorities then.
            Trust::Pcp => {
                let first = |priority| self.mapped_to(priority).first().copied();
                let elsewhere = others(priority).find_map(first);
                Ok(vec![elsewhere.unwrap_or(Dscp::from_traffic_class(0))])
            }
        }
    }

    /// The code points that are mapped to `priority`, its own number first.
    fn mapped_to(&self, priority: Priority) -> Vec<Dscp> {
        let is_mapped = |dscp: &Dscp| self.port.dscp_map[dscp.index()] == priority;
        let mut mapped: Vec<_> = Dscp::all().filter(is_mapped).collect();
        mapped.sort_by_key(|dscp| dscp.get() != priority.get());
        mapped
    }

    /// Picks two of the code points mapped to a priority, one below 32 and one from 32 on where
    /// there are both: a DUT may look at a part of the DSCP, or at a part of the map. Each
    /// repetition takes the next ones.
    fn in_turn(&self, mapped: &[Dscp]) -> Vec<Dscp> {
        let turn = self.request.turn;
        let (low, high): (Vec<Dscp>, Vec<Dscp>) =
            mapped.iter().partition(|dscp| dscp.get() < HIGH_DSCP);
        let pick = |of: &[Dscp], turn: usize| of.get(turn % of.len().max(1)).copied();
        let found = if low.is_empty() || high.is_empty() {
            [pick(mapped, turn), pick(mapped, turn + 1)]
        } else {
            [pick(&low, turn), pick(&high, turn)]
        };
        let mut found: Vec<_> = found.into_iter().flatten().collect();
        found.dedup();
        found
    }

    /// Returns the priority of frames with `dscp`: the map's where the DSCP is trusted, else
    /// another one. That one follows from the number of the code point, so that all eight
    /// priorities have flows with any map.
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

    /// Flows for each of `priorities`, which share half the line.
    pub(super) fn flows(
        self,
        priorities: &[Priority],
        role: impl Fn(Priority) -> Role,
    ) -> Result<Self, NotApplicable> {
        self.share_of(50, priorities, role)
    }

    /// Flows for each of `priorities`, which share `percent` of the line.
    pub(super) fn share(
        self,
        percent: u64,
        priorities: &[Priority],
        role: Role,
    ) -> Result<Self, NotApplicable> {
        self.share_of(percent, priorities, |_| role)
    }

    /// Flows for each of `priorities`, which share `percent` of the line: one for each of their
    /// code points, which share the rate of the priority; several where no CPU carries one.
    fn share_of(
        mut self,
        percent: u64,
        priorities: &[Priority],
        role: impl Fn(Priority) -> Role,
    ) -> Result<Self, NotApplicable> {
        let rate = self.rate(percent, priorities.len().max(1));
        for &priority in priorities {
            let mut dscps = self.dscps_of(priority)?;
            let role = role(priority);
            let lossless = self.request.lossless.contains(&priority);
            let (part, whole) = if lossless { MOST } else { (1, 2) };
            let first = rate * part / whole;
            let second = rate - first;
            if self.frames(second) < MANY {
                dscps.truncate(1);
            }
            match dscps.as_slice() {
                [one, other] => {
                    self.push(role, priority, *one, first);
                    self.push(role, priority, *other, second);
                }
                all => {
                    for dscp in all {
                        self.push(role, priority, *dscp, rate);
                    }
                }
            }
        }
        Ok(self)
    }

    /// A flow of each of these lengths for each of `priorities`, which share `percent` of the line:
    /// as many frames of each. Lengths take turns with the code points of a priority.
    pub(super) fn of_each_length(
        mut self,
        percent: u64,
        priorities: &[Priority],
        lengths: &[usize],
        role: impl Fn(Priority) -> Role,
    ) -> Result<Self, NotApplicable> {
        let rate = self.rate(percent, priorities.len().max(1));
        let bits = |length: &usize| LineRate::frame_bits(*length);
        let all: u64 = lengths.iter().map(bits).sum();
        for &priority in priorities {
            let dscps = self.dscps_of(priority)?;
            for (length, dscp) in lengths.iter().zip(dscps.iter().cycle()) {
                self.length = *length;
                let part = u128::from(rate) * u128::from(bits(length)) / u128::from(all);
                self.push(role(priority), priority, *dscp, part as u64);
            }
        }
        self.length = self.request.frame;
        Ok(self)
    }

    /// Half the line for these lossless priorities, of which the `stormed` ones are the test
    /// traffic, and half for all lossy ones.
    pub(super) fn halves(
        self,
        sent: &[Priority],
        stormed: &[Priority],
    ) -> Result<Self, NotApplicable> {
        let lossy = self.lossy();
        if lossy.is_empty() {
            return Err(
                "no lossy priority can be reached, so that there is no background traffic".into(),
            );
        }
        let request = self.request;
        self.flows(sent, |priority| request.role(stormed, priority))?
            .flows(&lossy, |_| Role::Background)
    }

    /// One flow for each of the 64 code points, or several where no CPU carries one, at 100 % of
    /// the line in all.
    pub(super) fn every_dscp(mut self, role: impl Fn(Priority) -> Role) -> Self {
        let rate = self.rate(100, Dscp::COUNT);
        for dscp in Dscp::all() {
            let priority = self.priority_of(dscp);
            self.push(role(priority), priority, dscp, rate);
        }
        self
    }

    /// Load of its probes, but for the one at full load.
    pub(super) fn probe_load(&self) -> u8 {
        probing::load(&self.flows)
    }

    /// Priorities that are not lossless and that a code point (or the PCP) can reach.
    pub(super) fn lossy(&self) -> Vec<Priority> {
        Priority::all()
            .filter(|priority| {
                !self.request.lossless.contains(priority) && self.dscps_of(*priority).is_ok()
            })
            .collect()
    }

    /// The repetition of a case whose document has no traffic after the drain. Its probe comes
    /// first, and shows that the storm arrives.
    pub(super) fn without_resume(self, kind: StormKind) -> RepetitionPlan {
        let bursts = probing::arrival(self.port, self.probe_load(), self.request.lossless);
        let storm = self.storm(kind);
        self.after_probe(storm, bursts, false)
    }

    /// The repetition of such a case, with a probe of all lossless priorities.
    pub(super) fn after_probe(
        self,
        storm: StormPlan,
        bursts: Vec<ProbeBurst>,
        judged: bool,
    ) -> RepetitionPlan {
        let probe = self.probe(bursts, judged);
        let mut plan = self.build(Some(storm), Some(probe), true);
        plan.durations.resume = 0;
        plan
    }

    /// The repetition of a case that consists of its probe, which is judged.
    pub(super) fn of_probe(self, bursts: Vec<ProbeBurst>) -> RepetitionPlan {
        let probe = self.probe(bursts, true);
        let mut plan = self.build(None, Some(probe), false);
        plan.durations = plan.durations.without_storm();
        plan
    }

    /// The repetition of a case that consists of its storm, without traffic after the drain.
    pub(super) fn of_storm(self, kind: StormKind) -> RepetitionPlan {
        let mut plan = self.of_storm_and_resume(kind);
        plan.durations.resume = 0;
        plan
    }

    /// The same, with traffic after the drain.
    pub(super) fn of_storm_and_resume(self, kind: StormKind) -> RepetitionPlan {
        let storm = self.storm(kind);
        self.build(Some(storm), None, false)
    }

    /// The repetition of a case that consists of its traffic, with a baseline at `load` percent of
    /// it.
    pub(super) fn of_traffic(self, load: u8) -> RepetitionPlan {
        let mut plan = self.build(None, None, false);
        plan.durations = plan.durations.of_traffic();
        plan.baseline_load = load;
        plan
    }

    /// A probe of all lossless priorities.
    fn probe(&self, bursts: Vec<ProbeBurst>, judged: bool) -> ProbePlan {
        ProbePlan {
            priorities: self.request.lossless.to_vec(),
            judged,
            bursts,
        }
    }

    /// A storm of that kind, as the plan asks for it.
    pub(super) fn storm(&self, kind: StormKind) -> StormPlan {
        StormPlan {
            kind,
            quanta: self.request.quanta,
            interval: self.request.interval,
        }
    }

    fn build(
        self,
        storm: Option<StormPlan>,
        probe: Option<ProbePlan>,
        probe_first: bool,
    ) -> RepetitionPlan {
        let request = self.request;
        RepetitionPlan {
            name: name(request.lossless, request.storm),
            lossless: request.lossless.to_vec(),
            flows: self.flows,
            storm,
            baseline_load: 100,
            probe,
            probe_first,
            durations: request.durations,
        }
    }
}

/// Priorities as `3+4`, or `none`.
pub fn join(priorities: &[Priority]) -> String {
    if priorities.is_empty() {
        "none".into()
    } else {
        listed(priorities, "+")
    }
}

/// Priorities with `separator` between them.
pub(super) fn listed(priorities: &[Priority], separator: &str) -> String {
    let numbers: Vec<_> = priorities.iter().map(Priority::to_string).collect();
    numbers.join(separator)
}

/// The name of a repetition with this storm (`None`: on all lossless priorities), unique in its
/// case.
pub fn name(lossless: &[Priority], storm: Option<&[Priority]>) -> String {
    match storm {
        Some(storm) if storm != lossless => {
            format!("lossless {}, storm on {}", join(lossless), join(storm))
        }
        _ => format!("lossless {}", join(lossless)),
    }
}

/// The storm on lossless priorities, with traffic of those in `sent` and of all lossy ones.
pub(super) fn lossless_storm(
    port: &PortContext,
    request: &RepetitionRequest,
    sent: &[Priority],
) -> Result<RepetitionPlan, NotApplicable> {
    let stormed = request.storm.unwrap_or(request.lossless).to_vec();
    let builder = Builder::new(port, request).halves(sent, &stormed)?;
    let beside = probing::lossy_named(&builder.lossy(), request.turn);
    let probe = ProbePlan {
        bursts: probing::judged(port, builder.probe_load(), &stormed, &beside),
        priorities: stormed.clone(),
        judged: true,
    };
    let storm = builder.storm(StormKind::Pfc(stormed));
    // In every other repetition the first pause of all finds traffic: the storm's finds none.
    let probe_first = request.turn % 2 == 1;
    Ok(builder.build(Some(storm), Some(probe), probe_first))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::pfc::CASES;
    use crate::cases::pfc::parameters::PfcParameters;
    use crate::pacing::workers::{rates, wanted};

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
            trust,
            vlan,
            dscp_map: std::array::from_fn(|dscp| Priority::new(map(dscp as u8)).unwrap()),
            ..PortContext::at(1_000_000_000)
        }
    }

    /// Plans of all cases with priorities 3 and 4 lossless, where these can be reached.
    fn plans(port: &PortContext) -> Vec<RepetitionPlan> {
        plans_in_turn(port, 0)
    }

    fn plans_in_turn(port: &PortContext, turn: usize) -> Vec<RepetitionPlan> {
        let lossless = [3, 4].map(|number| Priority::new(number).unwrap());
        let parameters = PfcParameters::of(1000 * MS, 1024, None, Vec::new());
        let request = RepetitionRequest {
            lossless: &lossless,
            storm: None,
            turn,
            durations: parameters.durations,
            frame: parameters.frame,
            quanta: parameters.storm.quanta,
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
    fn a_fast_priority_has_several_flows_for_several_cpus() {
        // Speed, frame without FCS, CPUs: one carries 6 million frames a second.
        for (speed, frame, cpus) in [
            (100_000_000_000, 1020, 2..=3),
            (100_000_000_000, 60, 26..=28),
            (400_000_000_000, 1020, 8..=9),
        ] {
            let port = PortContext {
                line_rate: LineRate::from_bits_per_second(speed).unwrap(),
                ..port(Trust::Dscp, false, MAPS[0])
            };
            let parameters = PfcParameters::of(1000 * MS, frame, None, Vec::new());
            let lossless = [3, 4].map(|number| Priority::new(number).unwrap());
            let request = RepetitionRequest {
                lossless: &lossless,
                storm: None,
                turn: 0,
                durations: parameters.durations,
                frame,
                quanta: parameters.storm.quanta,
                interval: MS,
            };
            for case in &CASES {
                let plan = (case.plan)(&port, &request).unwrap();
                let most = |priority| match lossless.contains(&priority) {
                    true => CPU_CARRIES,
                    false => FLOW_CARRIES,
                };
                assert!(
                    plan.flows
                        .iter()
                        .all(|flow| flow.frames() <= most(flow.priority))
                );
                let ids: Vec<_> = plan.flows.iter().map(|flow| flow.id).collect();
                assert!(ids.iter().copied().eq(0..ids.len() as u16));
                let rate_of = |port: &PortName| -> u64 {
                    let flows = plan.flows.iter().filter(|flow| flow.from == *port);
                    flows.map(|flow| flow.rate).sum()
                };
                let [rate, beside] = [PortName::TX, port.senders[0].clone()].map(|at| rate_of(&at));
                if beside > 0 {
                    // Where the baseline is at a part of the load, too much for the rx port; never
                    // for one that sends, or for another that receives.
                    assert!(rate <= speed && beside <= speed);
                    let [rx, rx2] = [PortName::RX, port.receivers[0].clone()].map(|at| {
                        let flows = plan.flows.iter().filter(|flow| flow.to == at);
                        flows.map(|flow| flow.rate).sum::<u64>()
                    });
                    assert_eq!(rx > speed, plan.baseline_load < 100);
                    assert!(rx2 <= speed);
                    continue;
                }
                if case.case.id == "pfc.no-congestion" {
                    // Below the line by one clock or another, with two VLAN tags more.
                    let tagged = LineRate::frame_bits(frame + 8);
                    let most = speed * LineRate::frame_bits(frame) / tagged;
                    assert!((most - most / 500..=most - most / 5000).contains(&rate));
                    continue;
                }
                if case.case.id == "pfc.sizes" {
                    assert!((speed / 2 - 100..=speed / 2).contains(&rate), "{rate}");
                    continue;
                }
                assert!((speed - 100..=speed).contains(&rate), "{rate}");
                let found = wanted(&rates(&plan.flows));
                assert!(cpus.contains(&found), "{found}");
            }
        }
    }

    #[test]
    fn most_of_a_lossless_priority_is_one_flow_at_100_gbit() {
        let port = PortContext {
            line_rate: LineRate::from_bits_per_second(100_000_000_000).unwrap(),
            ..port(Trust::Dscp, false, MAPS[0])
        };
        let plan = plans(&port).remove(0);
        for priority in plan.lossless {
            let of_it = plan.flows.iter().filter(|flow| flow.priority == priority);
            let rates: Vec<u64> = of_it.map(|flow| flow.rate).collect();
            assert_eq!(rates.len(), 2);
            assert!(rates[0].abs_diff(3 * rates[1]) < 10, "{rates:?}");
        }
    }

    #[test]
    fn traffic_after_the_drain_is_sent_where_a_check_asks_for_it() {
        let port = port(Trust::Dscp, false, MAPS[0]);
        let plans = plans(&port);
        assert_eq!(plans.len(), CASES.len());
        for (case, plan) in CASES.iter().zip(plans) {
            let resumes = plan.durations.resume > 0;
            assert_eq!(resumes, case.has_check("resume"), "{}", case.case.id);
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
    fn a_priority_has_code_points_of_both_halves_and_other_ones_in_the_next_repetition() {
        let port = port(Trust::Dscp, false, MAPS[0]);
        let code_points = |plan: &RepetitionPlan| -> Vec<u8> {
            let of_it = plan.flows.iter().filter(|flow| flow.role == Role::Test);
            of_it.map(|flow| flow.dscp.get()).take(2).collect()
        };
        let plans: Vec<_> = (0..5)
            .map(|turn| plans_in_turn(&port, turn).remove(0))
            .collect();
        let found: Vec<_> = plans.iter().map(code_points).collect();
        assert_eq!(found, [[3, 35], [11, 43], [19, 51], [27, 59], [3, 35]]);
        for plan in &plans {
            let rate: u64 = plan.flows.iter().map(|flow| flow.rate).sum();
            assert!((999_999_900..=1_000_000_000).contains(&rate), "{rate}");
            assert_eq!(plan.flows.len(), 16);
        }
    }

    #[test]
    fn a_priority_with_code_points_of_one_half_has_two_of_it_and_one_with_one_has_that() {
        let of = |map: fn(u8) -> u8, priority| {
            let port = port(Trust::Dscp, false, map);
            let flows = plans(&port).remove(0).flows.into_iter();
            let of_it = flows.filter(|flow| flow.priority.get() == priority);
            of_it.map(|flow| flow.dscp.get()).collect::<Vec<_>>()
        };
        assert_eq!(of(MAPS[1], 3), [24, 25]);
        assert_eq!(of(MAPS[1], 4), [32, 33]);
        assert_eq!(of(MAPS[2], 3), [3]);
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
