//! Each priority is paused for its own time of a PFC frame.

use super::parameters::{Sets, StormChoice};
use super::planning::{Builder, NotApplicable, RepetitionRequest};
use super::port::PortContext;
use super::{PfcCase, checks, probing, unfolding};
use crate::cases::judge::words;
use crate::plan::RepetitionPlan;
use crate::verdict::{Case, Step};

/// The case.
pub(super) const CASE: PfcCase = PfcCase {
    case: Case {
        id: "pfc.independent-times",
        title: "A time for each priority in one PFC frame",
        requirement: "Each priority is paused for its own time of a PFC frame, whatever the times \
            of the others.",
        document: "IEEE 802.1Qbb (priority-based flow control: the time vector)",
        steps: &[
            Step::phase(
                "baseline: traffic of all priorities without a storm; every counter is shown alive",
            ),
            Step::new(
                "1",
                "on running traffic send a PFC frame that gives each lossless priority another \
             time, the longest to the highest",
            ),
            Step::new(
                "2",
                "verify: each is paused, goes on when its own time is over, and no lossy one waits",
            ),
            Step::new(
                "3",
                "repeat with the longest time for the lowest, also while the link is full, and \
             with a frame that names lossy priorities beside them",
            ),
        ],
        assertions: &[],
        checks: &words(&checks::INDEPENDENT_TIMES),
    },
    plan,
    unfold: unfolding::as_it_is_if_several,
    table: checks::table(&checks::INDEPENDENT_TIMES),
    sets: Sets {
        lossless: 2..=7,
        why: "the case is about several lossless priorities beside at least one lossy",
        storm: StormChoice::Without,
    },
};

fn plan(port: &PortContext, request: &RepetitionRequest) -> Result<RepetitionPlan, NotApplicable> {
    let builder = Builder::new(port, request).halves(request.lossless, request.lossless)?;
    let beside = probing::lossy_named(&builder.lossy(), request.turn);
    let load = builder.probe_load();
    let bursts = probing::independent(port, load, request.lossless, &beside);
    Ok(builder.of_probe(bursts))
}
