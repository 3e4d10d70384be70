//! A time of 0 ends a pause, and is nothing to a priority that is not paused.

use pfc_ebpf::units::{Priority, Quanta};

use super::parameters::{Sets, StormChoice};
use super::planning::{Builder, NotApplicable, RepetitionRequest};
use super::port::PortContext;
use super::{PfcCase, checks, probing, unfolding};
use crate::cases::judge::words;
use crate::plan::{RepetitionPlan, StormKind, StormPlan};
use crate::verdict::{Case, Step};

/// The case.
pub(super) const CASE: PfcCase = PfcCase {
    case: Case {
        id: "pfc.zero-time",
        title: "PFC with times of 0",
        requirement: "A time of 0 ends the pause of its priority at once, and has no effect on a \
            priority that is not paused.",
        document: "IEEE 802.1Qbb (priority-based flow control); Windows hardware certification, \
            QosPriorityFlowControl (TimeVectorZeroQuanta)",
        steps: &[
            Step::phase(
                "baseline: traffic of all priorities without a storm; every counter is shown alive",
            ),
            Step::phase(
                "probe: on running traffic PFC for the lossless priorities, and at a third of the \
             pause a frame whose vector has all eight bits and whose eight times are 0; the same \
             for the first half of them where there are several; then such a frame alone",
            ),
            Step::new(
                "1",
                "verify: each priority that is paused goes on at that frame, and each that is not \
             goes on as before",
            ),
            Step::new("2", "start a storm of such frames"),
            Step::new(
                "3",
                "after the lead start lossless and lossy traffic, half the line each",
            ),
            Step::new(
                "4",
                "keep both running, then stop both; verify: all of it arrives, in time",
            ),
            Step::new("5", "stop the storm"),
        ],
        assertions: &[],
        checks: &words(&checks::ZERO_TIME),
    },
    plan,
    unfold: unfolding::as_it_is,
    table: checks::table(&checks::ZERO_TIME),
    sets: Sets {
        lossless: 1..=7,
        why: "the case needs lossy priorities beside lossless ones",
        storm: StormChoice::OfCase,
    },
};

fn plan(port: &PortContext, request: &RepetitionRequest) -> Result<RepetitionPlan, NotApplicable> {
    // Nothing of this storm is to be held.
    let builder = Builder::new(port, request).halves(request.lossless, &[])?;
    let all = Priority::all().collect();
    let bursts = probing::zeroed(port, builder.probe_load(), request.lossless);
    let storm = StormPlan {
        quanta: Quanta::ZERO,
        ..builder.storm(StormKind::Vector(all))
    };
    Ok(builder.after_probe(storm, bursts, true))
}
