//! How soon an XOFF is obeyed, at any point of traffic that fills the link.

use super::parameters::Sets;
use super::planning::{Builder, NotApplicable, RepetitionRequest};
use super::port::PortContext;
use super::{PfcCase, checks, probing, unfolding};
use crate::cases::judge::words;
use crate::plan::RepetitionPlan;
use crate::verdict::{Case, Step};

/// The case.
pub(super) const CASE: PfcCase = PfcCase {
    case: Case {
        id: "pfc.response-time",
        title: "Response to a hundred pauses on a full link",
        requirement: "An XOFF stops its priorities within max_response, whenever it comes.",
        document: "IEEE 802.1Qbb (priority-based flow control; clause 36 of IEEE 802.1Q); IEEE \
            802.3, 31B.3.7 (the time to stop)",
        steps: &[
            Step::phase(
                "baseline: traffic of all priorities without a storm; every counter is shown alive",
            ),
            Step::new(
                "1",
                "on traffic at limits.load of the line pause the lossless priorities by single \
                 frames, a hundred times, each at another point of the traffic",
            ),
            Step::new(
                "2",
                "verify: the last frame within max_response of each; report the least, median and \
                 greatest time",
            ),
        ],
        assertions: &[],
        checks: &words(&checks::RESPONSE_TIME),
    },
    plan,
    unfold: unfolding::as_it_is,
    table: checks::table(&checks::RESPONSE_TIME),
    sets: Sets::OF_PROBE,
};

fn plan(port: &PortContext, request: &RepetitionRequest) -> Result<RepetitionPlan, NotApplicable> {
    let builder = Builder::new(port, request).halves(request.lossless, request.lossless)?;
    Ok(builder.of_probe(probing::at_points(port, request.lossless)))
}
