//! The DUT's own PFC: it is paused on one side while data comes in on the other.

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
        id: "pfc.generation",
        title: "PFC that the DUT itself sends",
        requirement: "A DUT that has to hold lossless traffic asks for a pause before it loses a \
            frame, by frames as the standard has them, and asks no more once it has drained.",
        document: "IEEE 802.1Qbb (priority-based flow control; clause 36 of IEEE 802.1Q) and IEEE \
            802.3, Annex 31D",
        steps: &[
            Step::phase("baseline: the same flows without a storm; every counter is shown alive"),
            Step::new(
                "1",
                "start the PFC storm on the lossless priorities at the rx port, so that the DUT \
             fills its buffers with what the tx port sends",
            ),
            Step::new(
                "2",
                "after the lead start lossless traffic (50 %) and lossy traffic (50 %), stop both",
            ),
            Step::new(
                "3",
                "verify every PFC frame of the DUT octet by octet, and that XOFF for each stormed \
             priority came before one of its frames was lost",
            ),
            Step::new("4", "stop the storm; wait until the DUT has drained"),
            Step::new(
                "5",
                "verify: every frame that left is received, and the DUT asks no more",
            ),
            Step::new("6", "start the traffic again"),
            Step::new("7", "verify: every frame is received, none withheld"),
        ],
        assertions: &[],
        checks: &words(&checks::GENERATION),
    },
    plan,
    unfold: unfolding::as_it_is,
    table: checks::table(&checks::GENERATION),
    sets: Sets {
        lossless: 1..=7,
        why: "the case is about lossless priorities beside at least one lossy",
        storm: StormChoice::OfCase,
    },
};

fn plan(port: &PortContext, request: &RepetitionRequest) -> Result<RepetitionPlan, NotApplicable> {
    let builder = Builder::new(port, request);
    let lossy = builder.lossy();
    let builder = builder
        .flows(request.lossless, |_| Role::Test)?
        .flows(&lossy, |_| Role::Background)?;
    Ok(builder.of_storm_and_resume(StormKind::Pfc(request.lossless.to_vec())))
}
