//! Test Case #3 - PFC PAUSE with lossy priorities.

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
        id: "pfc.pause-lossy",
        title: "Test Case #3 - PFC PAUSE with lossy priorities",
        requirement: "PFC for lossy priorities has no effect on any traffic.",
        document: super::DOCUMENT,
        steps: &[
            Step::phase(
                "baseline: test and background traffic without a storm; every counter is shown \
                 alive",
            ),
            Step::phase(
                "probe: PFC for a lossless priority from the storm's port stops it, so that the \
                 storm is known to arrive",
            ),
            Step::new("1", "start the PFC storm on the lossy priorities"),
            Step::new(
                "2",
                "after the lead start test traffic (lossy, 50 %) and background traffic (lossless, \
             50 %) together",
            ),
            Step::new("3", "keep both running, then stop both"),
            Step::new(
                "4",
                "verify: all test and background frames received, no loss, no dip",
            ),
            Step::new("5", "stop the storm"),
            Step::new("6", "repeat with the next lossless priority"),
        ],
        assertions: &[],
        checks: &words(&checks::LOSSY_STORM),
    },
    plan,
    unfold: unfolding::as_it_is,
    table: checks::table(&checks::LOSSY_STORM),
    sets: Sets {
        lossless: 1..=7,
        why: "the case needs lossy priorities to storm beside lossless ones",
        storm: StormChoice::OfCase,
    },
};

fn plan(port: &PortContext, request: &RepetitionRequest) -> Result<RepetitionPlan, NotApplicable> {
    let builder = Builder::new(port, request);
    let lossy = builder.lossy();
    if lossy.is_empty() {
        return Err("no lossy priority can be reached, so that there is no test traffic".into());
    }
    let stormed = request.storm.unwrap_or(&lossy);
    let builder = builder
        .flows(&lossy, |_| Role::Test)?
        .flows(request.lossless, |_| Role::Background)?;
    Ok(builder.without_resume(StormKind::Pfc(stormed.to_vec())))
}
