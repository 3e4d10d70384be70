//! Frames that look like PFC, and depart from it in one thing.

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
        id: "pfc.invalid-frames",
        title: "Frames that are almost PFC",
        // "PRIORITY PAUSE opcode = 01-01", "globally assigned 48-bit multicast address
        // 01-80-C2-00-00-01" (IEEE 802.1Qbb, as the PFC test plan quotes it).
        requirement: "The DUT acts on PFC by its opcode, EtherType and destination alone, ignores \
            reserved octets, and goes on after frames that it cannot read.",
        document: "IEEE 802.3 clause 31 and Annex 31D (MAC Control, PFC); IEEE 802.1Qbb",
        steps: &[
            Step::phase(
                "baseline: traffic of all priorities without a storm; every counter is shown alive",
            ),
            Step::new(
                "1",
                "on running traffic send a frame that is PFC for the lossless priorities but for \
                 its opcode, EtherType or destination, or that is tagged; then PFC as the \
                 standard has it",
            ),
            Step::new(
                "2",
                "verify: no priority waits after the first; the second pauses the lossless ones",
            ),
            Step::new(
                "3",
                "send such a frame during a pause, and PFC as the standard has it soon after; \
                 verify: the pause lasts until the latter's time is over",
            ),
            Step::new(
                "4",
                "send PFC whose reserved octets are not 0; verify: it pauses the lossless \
                 priorities",
            ),
        ],
        assertions: &[],
        checks: &words(&checks::INVALID_FRAMES),
    },
    plan,
    unfold: unfolding::as_it_is,
    table: checks::table(&checks::INVALID_FRAMES),
    sets: Sets::OF_PROBE,
};

fn plan(port: &PortContext, request: &RepetitionRequest) -> Result<RepetitionPlan, NotApplicable> {
    let builder = Builder::new(port, request).halves(request.lossless, request.lossless)?;
    let load = builder.probe_load();
    let alone = probing::odd(port, load, request.lossless, &Form::ODD);
    let meanwhile = [Form::OpcodeZero, Form::Broadcast];
    let meanwhile = probing::odd_meanwhile(port, load, request.lossless, &meanwhile);
    Ok(builder.of_probe([alone, meanwhile].concat()))
}
