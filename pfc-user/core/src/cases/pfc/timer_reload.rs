//! A later PFC frame replaces the time of an earlier one.

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
        id: "pfc.timer-reload",
        title: "A PFC frame during a pause",
        requirement: "The time of a PFC frame replaces what is left of the pause of its priority, \
            be it longer or shorter.",
        document: "IEEE 802.1Qbb (priority-based flow control: the pause timers)",
        steps: &[
            Step::phase(
                "baseline: traffic of all priorities without a storm; every counter is shown alive",
            ),
            Step::new(
                "1",
                "on running traffic pause the lossless priorities for long, and at a third of the \
             pause for a tenth of it",
            ),
            Step::new("2", "verify: each goes on when the later time is over"),
            Step::new(
                "3",
                "repeat with a shorter time first, and then a longer one",
            ),
            Step::new(
                "4",
                "repeat step 1 with a second frame for half of the priorities, and while the link \
             is full",
            ),
        ],
        assertions: &[],
        checks: &words(&checks::TIMER_RELOAD),
    },
    plan,
    unfold: unfolding::as_it_is,
    table: checks::table(&checks::TIMER_RELOAD),
    sets: Sets::OF_PROBE,
};

fn plan(port: &PortContext, request: &RepetitionRequest) -> Result<RepetitionPlan, NotApplicable> {
    let builder = Builder::new(port, request).halves(request.lossless, request.lossless)?;
    let bursts = probing::reloaded(port, builder.probe_load(), request.lossless);
    Ok(builder.of_probe(bursts))
}
