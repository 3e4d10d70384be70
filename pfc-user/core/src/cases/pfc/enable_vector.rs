//! The class-enable vector decides which of the eight times of a PFC frame are valid.

use super::parameters::{Sets, StormChoice};
use super::planning::{Builder, NotApplicable, RepetitionRequest};
use super::port::PortContext;
use super::{PfcCase, checks, unfolding};
use crate::cases::judge::words;
use crate::plan::{RepetitionPlan, StormKind};
use crate::verdict::{Case, Step};

/// The case.
pub(super) const CASE: PfcCase = PfcCase {
    case: Case {
        id: "pfc.enable-vector",
        title: "The class-enable vector of PFC",
        // "e[n] = 1 => time (n) valid", "e[n] =0 => time (n)invalid" (IEEE 802.1Qbb, as the PFC
        // test plan quotes it).
        requirement: "The DUT heeds the time of a priority if, and only if, its bit in the \
            class-enable vector is 1.",
        document: "IEEE 802.1Qbb (priority enable vector); Windows hardware certification, \
            QosPriorityFlowControl (EnableVectorBitsReset)",
        steps: &[
            Step::phase(
                "baseline: traffic of all priorities without a storm; every counter is shown alive",
            ),
            Step::phase(
                "probe: PFC for the lossless priorities from the storm's port stops them, so that \
                 the storm is known to arrive",
            ),
            Step::new(
                "1",
                "start a storm of PFC frames whose eight times are all 0xffff, and whose vector is \
             0 or has the bit of one lossless priority",
            ),
            Step::new(
                "2",
                "after the lead start lossless and lossy traffic, half the line each",
            ),
            Step::new("3", "keep both running, then stop both"),
            Step::new(
                "4",
                "verify: the priority whose bit is 1 is paused, and all others go on",
            ),
            Step::new("5", "stop the storm; verify: what was held arrives"),
            Step::new("6", "repeat with another vector"),
        ],
        assertions: &[],
        checks: &words(&checks::ENABLE_VECTOR),
    },
    plan,
    unfold: unfolding::none_and_each,
    table: checks::table(&checks::ENABLE_VECTOR),
    sets: Sets {
        lossless: 1..=7,
        why: "the case needs lossy priorities beside lossless ones",
        storm: StormChoice::SomeOrNone,
    },
};

fn plan(port: &PortContext, request: &RepetitionRequest) -> Result<RepetitionPlan, NotApplicable> {
    let named = request.storm.unwrap_or(request.lossless);
    let builder = Builder::new(port, request).halves(request.lossless, named)?;
    Ok(builder.without_resume(StormKind::Vector(named.to_vec())))
}
