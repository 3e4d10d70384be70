//! The code points that PFC for each class holds.

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
        id: "pfc.class-map",
        title: "Code points that PFC for each class holds",
        requirement: "PFC for a lossless class holds the frames whose code points are mapped to it, \
            and no others; PFC for a lossy class holds none.",
        document: "IEEE 802.1Q clause 36 (a class is a priority); RFC 2474 (the DSCP); sonic-mgmt \
            tests/qos (the map from DSCP to queue)",
        steps: &[
            Step::phase(
                "baseline: traffic of all 64 DSCPs without a storm; every counter is shown alive",
            ),
            Step::phase(
                "probe: PFC for the lossless priorities from the storm's port stops them, so that \
                 the storm is known to arrive",
            ),
            Step::new("1", "start a PFC storm on one class"),
            Step::new(
                "2",
                "after the lead start test traffic: all 64 DSCPs, the whole line",
            ),
            Step::new("3", "keep it running, then stop it"),
            Step::new(
                "4",
                "verify: the frames of the code points that the map gives to that class are held, \
                 where it is lossless, and all others are received",
            ),
            Step::new("5", "stop the storm; verify: what was held arrives"),
            Step::new("6", "repeat with the next of the eight classes"),
        ],
        assertions: &[],
        checks: &words(&checks::CLASS_MAP),
    },
    plan,
    unfold: unfolding::each_class,
    table: checks::table(&checks::CLASS_MAP),
    sets: Sets {
        lossless: 1..=7,
        why: "a lossy priority beside lossless ones shows that the storm arrives",
        storm: StormChoice::Any,
    },
};

fn plan(port: &PortContext, request: &RepetitionRequest) -> Result<RepetitionPlan, NotApplicable> {
    let stormed = request.storm.unwrap_or(request.lossless);
    let role = |priority| request.role(stormed, priority);
    let builder = Builder::new(port, request).every_dscp(role);
    Ok(builder.without_resume(StormKind::Pfc(stormed.to_vec())))
}
