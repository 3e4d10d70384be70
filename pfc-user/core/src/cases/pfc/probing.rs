//! The times of a probe, which follow from the plan and the limits: for how long it pauses, and the
//! waits before, between and after its pause frames.

use pfc_ebpf::units::{LineRate, Priority, Quanta};

use crate::plan::{FlowPlan, Limits, Nanos, ProbePlan, RepetitionPlan};

/// Load of the probe in percent of the flows' rates: at full load a queue that once built up stays
/// and hides the response.
pub(super) const LOAD: u8 = 50;
/// Probes that have to count.
pub(super) const ENOUGH: usize = 3;
/// Probes at most.
pub(super) const MOST: usize = 30;
/// The XON leaves after this part of the pause.
pub(super) const HOLD: Nanos = 3;
/// Shortest span of undisturbed traffic before a pause frame.
const LEAST_QUIET: Nanos = 20_000_000;

/// The times of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Timing {
    /// Pause time of its XOFF frames.
    pub(super) quanta: Quanta,
    /// The same in nanoseconds.
    pub(super) pause: Nanos,
    /// Undisturbed traffic before each XOFF.
    pub(super) quiet: Nanos,
    /// From XOFF to XON.
    pub(super) hold: Nanos,
    /// Traffic after the end of a pause.
    pub(super) after: Nanos,
    /// Wait for the frames that the longest pause held back, after the end of the traffic; a DUT
    /// that pauses for three times as long has let them go by then.
    pub(super) drain: Nanos,
}

impl Timing {
    /// Of the probe of `plan`.
    pub(super) fn of(plan: &RepetitionPlan, probe: &ProbePlan, limits: &Limits) -> Self {
        let quanta = quanta(probe, limits);
        let pause = limits.pause_time(quanta);
        let quiet = LEAST_QUIET.max(2 * vicinity(plan, limits));
        let again = limits.pause_tolerance(quanta) + limits.max_response + two_frames(plan, limits);
        Self {
            quanta,
            pause,
            quiet,
            hold: pause / HOLD,
            after: again + vicinity(plan, limits),
            drain: 2 * pause + backlog(plan, &probe.priorities, limits, pause) + quiet,
        }
    }
}

/// The least duration of all probes, each of which `prepare` comes before.
pub(super) fn least(plan: &RepetitionPlan, limits: &Limits, prepare: Nanos) -> Nanos {
    let Some(probe) = &plan.probe else {
        return 0;
    };
    let timing = Timing::of(plan, probe, limits);
    let once = |pause| prepare + timing.quiet + pause + timing.after;
    let ended = if probe.xon { once(timing.hold) } else { 0 };
    ENOUGH as Nanos * (once(timing.pause) + ended)
}

/// The longest pause that keeps no frame for more than half of what the DUT has to hold it for: the
/// longer, the smaller is the share by which one may be wrong without being found.
fn quanta(probe: &ProbePlan, limits: &Limits) -> Quanta {
    let allowed = u128::from(limits.max_residence / 2);
    let rate = u128::from(limits.line_rate.bits_per_second());
    let most = allowed * rate / (512 * 1_000_000_000);
    Quanta(u16::try_from(most).unwrap_or(u16::MAX).max(1)).min(probe.quanta)
}

/// Time in which a full link sends what `pause` holds back of those priorities, beside the traffic
/// that goes on: share x load x pause / (1 - load).
fn backlog(plan: &RepetitionPlan, paused: &[Priority], limits: &Limits, pause: Nanos) -> Nanos {
    let load = |flows: &mut dyn Iterator<Item = &FlowPlan>| {
        flows.map(|flow| u128::from(flow.rate)).sum::<u128>() * u128::from(LOAD) / 100
    };
    let held = load(
        &mut plan
            .flows
            .iter()
            .filter(|flow| paused.contains(&flow.priority)),
    );
    let all = load(&mut plan.flows.iter());
    let line = u128::from(limits.line_rate.bits_per_second());
    (u128::from(pause) * held / line.saturating_sub(all).max(1)) as Nanos
}

/// Time around a pause frame, and around the end of a pause, in which traffic is judged: at least
/// four frames of each flow come in it.
pub(super) fn vicinity(plan: &RepetitionPlan, limits: &Limits) -> Nanos {
    let slowest = plan.flows.iter().map(interval).max().unwrap_or(0);
    (5 * limits.max_response).max(4 * slowest)
}

/// Time from one frame of a flow to its next, in a probe.
pub(super) fn interval(flow: &FlowPlan) -> Nanos {
    let rate = u128::from(flow.rate) * u128::from(LOAD) / 100;
    let bits = u128::from(LineRate::frame_bits(flow.length)) * 1_000_000_000;
    (bits / rate.max(1)) as Nanos
}

/// Time of a frame on the wire.
pub(super) fn wire_time(length: usize, limits: &Limits) -> Nanos {
    let bits = u128::from(LineRate::frame_bits(length)) * 1_000_000_000;
    bits.div_ceil(u128::from(limits.line_rate.bits_per_second())) as Nanos
}

/// Time of two of the longest frames: the one that is on the wire when a pause ends, and the first
/// that had to wait.
pub(super) fn two_frames(plan: &RepetitionPlan, limits: &Limits) -> Nanos {
    let longest = plan.flows.iter().map(|flow| flow.length).max();
    2 * wire_time(longest.unwrap_or(0), limits)
}
