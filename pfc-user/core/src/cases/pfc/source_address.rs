//! PFC from addresses that no station has.

use super::parameters::Sets;
use super::planning::{Builder, NotApplicable, RepetitionRequest};
use super::port::PortContext;
use super::{PfcCase, checks, probing, unfolding};
use crate::cases::judge::words;
use crate::plan::RepetitionPlan;
use crate::plan::form::Form;
use crate::verdict::{Case, Step};

/// The case.
pub(super) const CASE: PfcCase = PfcCase {
    case: Case {
        id: "pfc.source-address",
        title: "The source address of PFC",
        requirement: "A DUT that is declared to obey PFC from 00-00-00-00-00-00 does so; PFC from \
            an address that no station has does not disturb what it does with other PFC.",
        document: "none: sonic-mgmt expects it of SONiC switches (tests/snappi_tests/pfc)",
        steps: &[
            Step::phase(
                "baseline: traffic of all priorities without a storm; every counter is shown alive",
            ),
            Step::new(
                "1",
                "on running traffic send PFC for the lossless priorities from 00-00-00-00-00-00; \
                 where it is declared that the DUT obeys it, verify: they are paused",
            ),
            Step::new(
                "2",
                "send PFC from a group address, and then from the port's own; verify: that one \
                 pauses the lossless priorities",
            ),
        ],
        assertions: &[],
        checks: &words(&checks::SOURCE_ADDRESS),
    },
    plan,
    unfold: unfolding::as_it_is,
    table: checks::table(&checks::SOURCE_ADDRESS),
    sets: Sets::OF_PROBE,
};

fn plan(port: &PortContext, request: &RepetitionRequest) -> Result<RepetitionPlan, NotApplicable> {
    let builder = Builder::new(port, request).halves(request.lossless, request.lossless)?;
    let forms = Form::sources(port.zero_source);
    let bursts = probing::odd(port, builder.probe_load(), request.lossless, &forms);
    Ok(builder.of_probe(bursts))
}
