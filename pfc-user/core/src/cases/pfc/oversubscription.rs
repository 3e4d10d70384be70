//! More lossless traffic comes in at two ports than leaves at one.

use pfc_ebpf::units::Priority;

use super::parameters::{Sets, StormChoice};
use super::planning::{Builder, NotApplicable, RepetitionRequest};
use super::port::PortContext;
use super::{PfcCase, checks, unfolding};
use crate::cases::judge::words;
use crate::plan::{PortName, RepetitionPlan, Role};
use crate::verdict::{Case, Step};

/// The case.
pub(super) const CASE: PfcCase = PfcCase {
    case: Case {
        id: "pfc.oversubscription",
        title: "Lossless traffic of two ports, more than a third port takes",
        requirement: "Each port that sends a congested lossless priority is asked to wait, and no \
            other; nothing is lost.",
        document: "IEEE 802.1Qbb (priority-based flow control; clause 36 of IEEE 802.1Q)",
        steps: &[
            Step::phase(
                "baseline: the same flows at two fifths of their rates, which the rx port takes; \
             every counter is shown alive",
            ),
            Step::new(
                "1",
                "send lossless priorities from two ports to one, 110 % of the line together, and \
             a little lossy traffic; of several lossless priorities the highest comes from the tx \
             port alone, at a tenth of the line",
            ),
            Step::new("2", "stop; wait until the DUT has drained"),
            Step::new(
                "3",
                "verify: every frame is received, and XOFF came in at each port that sends a \
             priority of which too much came, and at no other",
            ),
            Step::new("4", "send the flows of the baseline again"),
            Step::new("5", "verify: all of their frames are received"),
        ],
        assertions: &[],
        checks: &words(&checks::OVERSUBSCRIPTION),
    },
    plan,
    unfold: unfolding::as_it_is,
    table: checks::table(&checks::OVERSUBSCRIPTION),
    sets: Sets {
        lossless: 1..=7,
        why: "the case is about lossless priorities beside at least one lossy",
        storm: StormChoice::Traffic,
    },
};

/// Rate at each port of the lossless priorities that both send, in percent of the line: more than
/// half, so that each of them sends too much, whichever way the DUT shares the line out.
const SHARED: u64 = 55;
/// Rate of the lossless priority that comes from one port. It is the highest, which strict order
/// (IEEE 802.1Q 8.6.8.1) serves first, so that those that both send are the congested ones.
const ALONE: u64 = 10;
/// Rate of all lossy priorities.
const LOSSY: u64 = 5;
/// Share of the line that has to count as 100 %, so that all together is more than the line.
const LEAST: f64 = 0.95;
/// Load of the baseline, in percent of these rates.
const BASELINE: u8 = 40;

fn plan(port: &PortContext, request: &RepetitionRequest) -> Result<RepetitionPlan, NotApplicable> {
    let Some(second) = port.senders.first() else {
        return Err(
            "the case has two sending ports and a receiving one, and the testbed has one \
             sending port: add another, such as [ports.tx2] with role = \"tx\""
                .into(),
        );
    };
    if port.load < LEAST {
        return Err(format!(
            "at limits.load = {} nothing is congested; the case wants {LEAST} at least",
            port.load
        ));
    }
    let builder = Builder::new(port, request);
    let lossy = builder.lossy();
    let builder = builder.share(LOSSY, &lossy, Role::Background)?;
    let shares: &[(&PortName, u64, &[Priority])] = match request.lossless {
        [others @ .., last] if !others.is_empty() => &[
            (&PortName::TX, ALONE, std::slice::from_ref(last)),
            (&PortName::TX, SHARED, others),
            (second, SHARED, others),
        ],
        one => &[(&PortName::TX, SHARED, one), (second, SHARED, one)],
    };
    let builder = shares
        .iter()
        .try_fold(builder, |builder, (from, percent, priorities)| {
            let builder = builder.between(from, &PortName::RX);
            builder.share(*percent, priorities, Role::Test)
        })?;
    Ok(builder.of_traffic(BASELINE))
}
