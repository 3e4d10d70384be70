//! A storm at one receiving port, beside another.

use super::parameters::{Sets, StormChoice};
use super::planning::{Builder, NotApplicable, RepetitionRequest};
use super::port::PortContext;
use super::{PfcCase, checks, unfolding};
use crate::cases::judge::words;
use crate::plan::{PortName, RepetitionPlan, Role, StormKind};
use crate::verdict::{Case, Step};

/// The case.
pub(super) const CASE: PfcCase = PfcCase {
    case: Case {
        id: "pfc.victim",
        title: "PFC storm at one port, traffic between two others",
        requirement: "A storm at one port stops what leaves by that port, and nothing that leaves \
            by another.",
        document: "IEEE 802.1Qbb (priority-based flow control; clause 36 of IEEE 802.1Q)",
        steps: &[
            Step::phase("baseline: the same flows without a storm; every counter is shown alive"),
            Step::new(
                "1",
                "start the PFC storm on the lossless priorities at the rx port",
            ),
            Step::new(
                "2",
                "after the lead start traffic, 20 % of the line each: the stormed priorities from \
             tx to rx; the other lossless ones, and the lossy ones, from tx to a further receiving \
             port; the stormed priorities from a further sending port to that port",
            ),
            Step::new("3", "keep all running, then stop them"),
            Step::new(
                "4",
                "verify: nothing arrives at the rx port while the storm runs, and everything at \
             the other",
            ),
            Step::new("5", "stop the storm; wait until the DUT has drained"),
            Step::new("6", "repeat with the next lossless priorities"),
        ],
        assertions: &[],
        checks: &words(&checks::VICTIM_BESIDE),
    },
    plan,
    unfold: unfolding::each,
    table: checks::table(&checks::VICTIM_BESIDE),
    sets: Sets {
        lossless: 1..=7,
        why: "the case is about lossless priorities beside at least one lossy",
        storm: StormChoice::Some,
    },
};

/// Rate of each part of the traffic, in percent of the line: the other receiving port takes three
/// of them, and has room to work off what a stall of both senders leaves.
const PART: u64 = 20;

fn plan(port: &PortContext, request: &RepetitionRequest) -> Result<RepetitionPlan, NotApplicable> {
    let (Some(sender), Some(receiver)) = (port.senders.first(), port.receivers.first()) else {
        return Err(
            "the case has two sending and two receiving ports: add ports, such as [ports.tx2] with \
             role = \"tx\" and [ports.rx2] with role = \"rx\""
                .into(),
        );
    };
    let stormed = request.storm.unwrap_or(request.lossless);
    let others = request.lossless.iter().copied();
    let others: Vec<_> = others.filter(|one| !stormed.contains(one)).collect();
    let builder = Builder::new(port, request);
    let lossy = builder.lossy();
    if lossy.is_empty() {
        return Err(
            "no lossy priority can be reached, so that there is no background traffic".into(),
        );
    }
    let builder = builder
        .share(PART, stormed, Role::Test)?
        .between(&PortName::TX, receiver)
        .share(PART, &others, Role::Isolation)?
        .share(PART, &lossy, Role::Background)?
        .between(sender, receiver)
        .share(PART, stormed, Role::Victim)?;
    Ok(builder.of_storm(StormKind::Pfc(stormed.to_vec())))
}
