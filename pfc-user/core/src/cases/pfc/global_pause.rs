//! Test Case #4 - GLOBAL PAUSE (IEEE 802.3x link level flow control).

use super::parameters::{Sets, StormChoice};
use super::planning::{Builder, NotApplicable, RepetitionRequest};
use super::port::PortContext;
use super::{PfcCase, checks, unfolding};
use crate::cases::judge::words;
use crate::plan::{RepetitionPlan, Role, StormKind};
use crate::verdict::{Case, Step};

/// The case.
pub(super) const CASE: PfcCase = PfcCase {
    case: Case {
        id: "pfc.global-pause",
        title: "Test Case #4 - GLOBAL PAUSE (IEEE 802.3x link level Flow Control)",
        requirement: "802.3x PAUSE has no effect on a DUT that is configured for PFC.",
        document: super::DOCUMENT,
        steps: &[
            Step::phase("baseline: test traffic without a storm; every counter is shown alive"),
            Step::phase(
                "probe: PFC for the lossless priorities from the storm's port stops them, so that \
                 the storm is known to arrive",
            ),
            Step::new("1", "start the 802.3x PAUSE storm, quanta 0xffff"),
            Step::new(
                "2",
                "after the lead start test traffic: all 64 DSCPs, 100 % of line rate, PFC honoured \
             on all eight priorities of the tx port",
            ),
            Step::new("3", "keep it running, then stop it"),
            Step::new("4", "stop the storm"),
            Step::new(
                "5",
                "verify: all test frames received, throughput close to link capacity",
            ),
        ],
        assertions: &[],
        checks: &words(&checks::GLOBAL_PAUSE),
    },
    plan,
    unfold: unfolding::as_it_is,
    table: checks::table(&checks::GLOBAL_PAUSE),
    sets: Sets {
        lossless: 1..=8,
        why: "there are eight priorities",
        storm: StormChoice::OfCase,
    },
};

fn plan(port: &PortContext, request: &RepetitionRequest) -> Result<RepetitionPlan, NotApplicable> {
    let builder = Builder::new(port, request).every_dscp(|_| Role::Test);
    Ok(builder.without_resume(StormKind::Pause))
}
