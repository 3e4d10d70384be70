//! Plans that can never work at a speed and a frame length, found before anything is sent.

use pfc_ebpf::units::{LineRate, Quanta};

use crate::plan::{FlowPlan, Limits, Nanos, RepetitionPlan};
use crate::quantity::Span;

/// Frames that each flow has to have in a phase, at least: with one, a loss of it could not be
/// distinguished from a phase that was too short for it.
const LEAST_FRAMES: Nanos = 2;

/// The reason why a repetition can give no verdict at the rates of its flows, and the remedy.
pub(super) fn impossible(plan: &RepetitionPlan) -> Option<String> {
    if let Some(flow) = plan.flows.iter().find(|flow| flow.rate == 0) {
        return Some(format!(
            "the share of the line that flow {} gets is below 1 bit/s; raise limits.load",
            flow.id
        ));
    }
    let slot = plan.flows.iter().map(slot).max()?;
    let durations = &plan.durations;
    let phases = [
        ("baseline", durations.baseline),
        ("traffic", durations.traffic),
        ("resume", durations.resume),
    ];
    let least_of = |name: &str| match name {
        "baseline" | "resume" => LEAST_FRAMES * slot * 100 / Nanos::from(plan.baseline_load.max(1)),
        _ => LEAST_FRAMES * slot,
    };
    let (name, found) = phases
        .into_iter()
        .find(|(name, duration)| (1..least_of(name)).contains(duration))?;
    let least = least_of(name);
    Some(format!(
        "a flow, one of {}, sends a frame each {}, and has to send {LEAST_FRAMES} in each phase: \
         set durations.{name} to at least {}, found {}; or send shorter frames (traffic.frame)",
        plan.flows.len(),
        Span(slot),
        Span(least),
        Span(found)
    ))
}

/// Time from one frame of a flow to the next, rounded up.
fn slot(flow: &FlowPlan) -> Nanos {
    let bits = u128::from(LineRate::frame_bits(flow.length));
    (bits * 1_000_000_000).div_ceil(flow.rate.into()) as Nanos
}

/// Limits with which no single pause can be judged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unfit {
    /// The figures.
    pub reason: String,
    /// The remedy.
    pub remedy: String,
}

/// The longest pause that a frame can ask for at that speed, where it is over before a DUT has to
/// obey it.
pub fn pauses_too_short(line_rate: LineRate, max_response: Nanos) -> Option<Unfit> {
    let longest = Quanta::MAX.nanos(line_rate);
    (max_response >= longest / 2).then(|| Unfit {
        reason: format!(
            "the longest pause at {line_rate} is {}, so that a DUT that may take {} to obey it \
             cannot be told from one that does not",
            Span(longest),
            Span(max_response),
        ),
        remedy: format!(
            "set limits.max_response to what the DUT needs, below {}",
            Span(longest / 2)
        ),
    })
}

/// The frames of `plan`, where a response is to be quicker than they pass. Other traffic round a
/// pause frame shows the latency of the path, which has to be below half of `max_response`: it
/// waits for the frame that is being sent, and is sent itself.
pub fn frames_too_long(limits: &Limits, plan: &RepetitionPlan) -> Option<Unfit> {
    let longest = plan.flows.iter().map(|flow| flow.length).max()?;
    let least = 4 * limits.line_rate.frame_nanos(longest);
    (limits.max_response <= least).then(|| Unfit {
        reason: format!(
            "a frame of {longest} octets takes {} at {}, and the latency of the path has to be \
             below half of the {} in which a DUT is to obey a pause",
            Span(least / 4),
            limits.line_rate,
            Span(limits.max_response),
        ),
        remedy: format!(
            "set limits.max_response above {}, or send shorter frames (traffic.frame)",
            Span(least)
        ),
    })
}

#[cfg(test)]
mod tests {
    use pfc_ebpf::units::Priority;

    use super::super::parameters::{PfcParameters, PlannedRepetition};
    use super::super::port::PortContext;
    use super::super::unfolding::Repetitions;
    use super::super::{CASES, PfcCase};
    use super::*;

    const MS: Nanos = 1_000_000;
    /// The case with a baseline at a part of its load.
    const TWO_SENDERS: &str = "pfc.oversubscription";

    fn rate(bits_per_second: u64) -> LineRate {
        LineRate::from_bits_per_second(bits_per_second).unwrap()
    }

    fn parameters(frame: usize, interval: Option<Nanos>) -> PfcParameters {
        let lossless = |list: &[u8]| PlannedRepetition {
            lossless: list.iter().copied().map(Priority::from_low_bits).collect(),
            storm: None,
        };
        let repetitions = vec![lossless(&[3]), lossless(&[0, 1, 2, 3, 4, 5, 6])];
        PfcParameters::of(300 * MS, frame, interval, repetitions)
    }

    fn plan(case: &PfcCase, speed: u64, frame: usize, interval: Option<Nanos>) -> Repetitions {
        case.repetitions(&PortContext::at(speed), &parameters(frame, interval))
    }

    #[test]
    fn every_case_can_be_done_from_10_mbit_to_800_gbit_with_frames_of_any_length() {
        let speeds = [
            10_000_000,
            100_000_000,
            1_000_000_000,
            25_000_000_000,
            100_000_000_000,
            400_000_000_000,
            800_000_000_000,
        ];
        let id = |case: &PfcCase| case.case.id;
        for case in CASES.iter().filter(|case| id(case) != TWO_SENDERS) {
            for speed in speeds {
                for frame in [60, 1024, 1514] {
                    let found = plan(case, speed, frame, None);
                    assert_eq!(found.plans.len(), 2, "{speed}, {frame}: {found:?}");
                    assert_eq!((found.omitted.len(), found.impossible), (0, None));
                }
            }
        }
    }

    #[test]
    fn a_baseline_at_a_part_of_the_load_takes_longer_at_10_mbit() {
        let case = CASES.iter().find(|case| case.case.id == TWO_SENDERS);
        let case = case.unwrap();
        let found = plan(case, 10_000_000, 1024, None);
        assert_eq!(found.plans.len(), 1, "{found:?}");
        let reason = &found.omitted[0].reason;
        assert!(
            reason.contains("set durations.baseline to at least 586.8847ms, found 300ms"),
            "{reason}"
        );
        for frame in [60, 1024, 1514] {
            assert_eq!(plan(case, 100_000_000, frame, None).plans.len(), 2);
        }
    }

    #[test]
    fn a_repetition_with_too_few_frames_is_left_out_and_the_others_are_not() {
        // 3424 octets take 27 ms of 1 Mbit/s: half a line for one flow, or for seven.
        let found = plan(&CASES[0], 1_000_000, 3400, None);
        assert_eq!((found.plans.len(), found.omitted.len()), (0, 2));
        let found = plan(&CASES[0], 4_000_000, 3400, None);
        assert_eq!((found.plans.len(), found.omitted.len()), (2, 0));
        let mut parameters = parameters(3400, None);
        parameters.repetitions[0].lossless = vec![Priority::from_low_bits(3)];
        // Case 2: of two lossless priorities six are lossy, of seven one is.
        parameters.repetitions[0]
            .lossless
            .push(Priority::from_low_bits(4));
        let found = CASES[1].repetitions(&PortContext::at(2_500_000), &parameters);
        assert_eq!(
            (found.plans.len(), found.omitted.len()),
            (1, 1),
            "{found:?}"
        );
        let omitted = &found.omitted[0];
        assert!(!omitted.not_applicable);
        assert_eq!(
            omitted.reason,
            "a flow, one of 8, sends a frame each 153.395569ms, and has to send 2 in each phase: set \
             durations.baseline to at least 306.791138ms, found 300ms; or send shorter frames \
             (traffic.frame)"
        );
        assert_eq!(found.impossible, Some(omitted.reason.clone()));
    }

    #[test]
    fn a_storm_with_gaps_is_left_out_with_the_interval_that_would_do() {
        let found = plan(&CASES[0], 100_000_000_000, 1024, Some(10 * MS));
        assert_eq!((found.plans.len(), found.omitted.len()), (0, 2));
        assert_eq!(
            found.omitted[0].reason,
            "storm.interval: expected an interval below the pause time, which is 335.539us at 100 \
             Gbit/s; found 10ms"
        );
    }

    #[test]
    fn a_load_that_leaves_nothing_is_named() {
        let port = PortContext {
            load: 1e-9,
            ..PortContext::at(10_000_000)
        };
        let found = CASES[3].repetitions(&port, &parameters(1024, None));
        assert!(found.omitted[0].reason.contains("raise limits.load"));
    }

    #[test]
    fn frames_that_take_as_long_as_a_response_are_named() {
        let plan = plan(&CASES[0], 10_000_000, 1514, None).plans.remove(0);
        let limits = |bits_per_second, max_response| Limits {
            line_rate: rate(bits_per_second),
            max_response,
            headroom: 0,
            xoff: None,
            max_residence: 0,
            min_throughput: 0.0,
            max_burst: 0,
        };
        assert_eq!(frames_too_long(&limits(10_000_000, 5 * MS), &plan), None);
        assert_eq!(frames_too_long(&limits(100_000_000, MS), &plan), None);
        let found = frames_too_long(&limits(10_000_000, MS), &plan).unwrap();
        assert_eq!(
            found.reason,
            "a frame of 1514 octets takes 1.2304ms at 10 Mbit/s, and the latency of the path has \
             to be below half of the 1ms in which a DUT is to obey a pause"
        );
        assert_eq!(
            found.remedy,
            "set limits.max_response above 4.9216ms, or send shorter frames (traffic.frame)"
        );
    }

    #[test]
    fn a_response_as_long_as_the_longest_pause_is_named_with_the_limit() {
        assert_eq!(pauses_too_short(rate(10_000_000_000), MS), None);
        assert_eq!(pauses_too_short(rate(800_000_000_000), 20_000), None);
        let found = pauses_too_short(rate(100_000_000_000), MS).unwrap();
        assert_eq!(
            found.reason,
            "the longest pause at 100 Gbit/s is 335.539us, so that a DUT that may take 1ms to obey \
             it cannot be told from one that does not"
        );
        assert_eq!(
            found.remedy,
            "set limits.max_response to what the DUT needs, below 167.769us"
        );
    }
}
