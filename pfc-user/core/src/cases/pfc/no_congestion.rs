//! Traffic of all priorities that leaves as fast as it comes.

use pfc_ebpf::units::LineRate;

use super::parameters::{Sets, StormChoice};
use super::planning::{Builder, NotApplicable, RepetitionRequest};
use super::port::PortContext;
use super::{PfcCase, checks, unfolding};
use crate::cases::judge::words;
use crate::plan::{RepetitionPlan, Role};
use crate::verdict::{Case, Step};

/// The case.
pub(super) const CASE: PfcCase = PfcCase {
    case: Case {
        id: "pfc.no-congestion",
        title: "Traffic of all priorities without congestion",
        requirement: "A DUT that has nothing to hold loses nothing, and asks for no pause.",
        document: "IEEE 802.1Qbb (priority-based flow control; clause 36 of IEEE 802.1Q)",
        steps: &[
            Step::phase(
                "baseline: the same flows at half their rates; every counter is shown alive",
            ),
            Step::new(
                "1",
                "send lossless and lossy priorities, a half each, just below what the line takes, \
                 and no pause frame",
            ),
            Step::new(
                "2",
                "verify: every frame is received, and the DUT sends neither PFC nor PAUSE",
            ),
        ],
        assertions: &[],
        checks: &words(&checks::NO_CONGESTION),
    },
    plan,
    unfold: unfolding::as_it_is,
    table: checks::table(&checks::NO_CONGESTION),
    sets: Sets {
        lossless: 1..=7,
        why: "the case needs lossy priorities beside lossless ones",
        storm: StormChoice::Traffic,
    },
};

/// Share of the line at most. Two clocks may be 200 ppm apart (IEEE 802.3): what fills the line by
/// the one is more than it takes by the other, and queues.
const MOST: f64 = 0.999;
/// Octets of the VLAN tags that a DUT may add to each frame.
const TAGS: usize = 8;
/// Load of the baseline, in percent of these rates.
const BASELINE: u8 = 50;

fn plan(port: &PortContext, request: &RepetitionRequest) -> Result<RepetitionPlan, NotApplicable> {
    let [sent, tagged] = [0, TAGS].map(|tags| LineRate::frame_bits(request.frame + tags) as f64);
    let port = PortContext {
        load: port.load.min(MOST * sent / tagged),
        ..port.clone()
    };
    let builder = Builder::new(&port, request);
    let lossy = builder.lossy();
    if lossy.is_empty() {
        return Err("no lossy priority can be reached beside the lossless ones".into());
    }
    let builder = builder.share(50, request.lossless, Role::Test)?;
    let mut plan = builder.share(50, &lossy, Role::Test)?.of_traffic(BASELINE);
    plan.durations.resume = 0;
    Ok(plan)
}
