//! How long pauses last, beside their quanta.

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
        id: "pfc.pause-time",
        title: "Pause times from short to long",
        requirement: "A pause lasts for the quanta that its frame gives, of 512 bit times each.",
        document: "IEEE 802.1Qbb (priority-based flow control: the time vector); IEEE 802.3 Annex \
            31B (the quantum)",
        steps: &[
            Step::phase(
                "baseline: traffic of all priorities without a storm; every counter is shown alive",
            ),
            Step::new(
                "1",
                "on running traffic pause the lossless priorities by single frames, five times \
                 each for about 1, 2, 5, 10 and so on to 5000, 8191, 16383, 32767 and 65535 \
                 quanta; those too short to be told from none are left out",
            ),
            Step::new(
                "2",
                "verify: no frame before a pause has ended, one soon after, and pauses that grow \
                 as their quanta do",
            ),
        ],
        assertions: &[],
        checks: &words(&checks::PAUSE_TIME),
    },
    plan,
    unfold: unfolding::as_it_is,
    table: checks::table(&checks::PAUSE_TIME),
    sets: Sets::OF_PROBE,
};

fn plan(port: &PortContext, request: &RepetitionRequest) -> Result<RepetitionPlan, NotApplicable> {
    let builder = Builder::new(port, request).halves(request.lossless, request.lossless)?;
    let bursts = probing::of_each_time(port, builder.probe_load(), request.lossless);
    Ok(builder.of_probe(bursts))
}
