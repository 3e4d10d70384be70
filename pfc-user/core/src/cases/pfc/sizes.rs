//! Frames of all sizes, while PFC holds their priorities and while it does not.

use pfc_ebpf::units::LineRate;

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
        id: "pfc.sizes",
        title: "Frames of all sizes",
        requirement: "PFC holds a lossless priority, and no other, whatever the size of its frames.",
        document: "PFC test plan, cases 1 and 3; RFC 2544, section 9.1 (sizes on Ethernet)",
        steps: &[
            Step::phase(
                "baseline: test and background traffic without a storm; every counter is shown \
                 alive",
            ),
            Step::phase(
                "probe: PFC for the lossless priorities from the storm's port stops them, so that \
                 the storm is known to arrive",
            ),
            Step::new(
                "1",
                "start the PFC storm on the lossless priorities, or on the lossy ones",
            ),
            Step::new(
                "2",
                "after the lead start a flow of each size for each priority: 64, 65, 127, 128, \
                 256, 512, 1024, 1280 and 1518 octets with FCS, and the plan's own size where it \
                 is longer; as many frames of each",
            ),
            Step::new("3", "keep all running, then stop them"),
            Step::new(
                "4",
                "verify: no frame of a stormed lossless priority is received, all others are",
            ),
            Step::new("5", "stop the storm; wait until the DUT has drained"),
            Step::new("6", "where frames were held, start all flows again"),
            Step::new("7", "verify: all frames received"),
        ],
        assertions: &[],
        checks: &words(&checks::SIZES),
    },
    plan,
    unfold: unfolding::lossless_and_lossy,
    table: checks::table(&checks::SIZES),
    sets: Sets {
        lossless: 1..=7,
        why: "the case needs lossy priorities beside lossless ones",
        storm: StormChoice::Any,
    },
};

/// Octets with FCS: where a buffer of cells of 64 or 128 octets is full and where it is just
/// exceeded, then the sizes of RFC 2544.
const SIZES: [usize; 9] = [64, 65, 127, 128, 256, 512, 1024, 1280, 1518];

/// Load of the lossless priorities, and of the lossy ones, in percent of `limits.load`: together
/// about as many frames a second as the other cases have at the whole line.
const LOAD: u64 = 25;

fn plan(port: &PortContext, request: &RepetitionRequest) -> Result<RepetitionPlan, NotApplicable> {
    let stormed = request.storm.unwrap_or(request.lossless);
    let usual = SIZES.map(|size| size - LineRate::FCS as usize);
    let longest = usual[usual.len() - 1];
    let own = Some(request.frame).filter(|own| *own > longest);
    let fits = |length: &usize| *length >= port.shortest;
    let lengths: Vec<_> = usual.into_iter().filter(fits).chain(own).collect();
    let builder = Builder::new(port, request);
    let lossy = builder.lossy();
    if lossy.is_empty() {
        return Err("no lossy priority can be reached beside the lossless ones".into());
    }
    let role = |priority| request.role(stormed, priority);
    let mut plan = builder
        .of_each_length(LOAD, request.lossless, &lengths, role)?
        .of_each_length(LOAD, &lossy, &lengths, role)?
        .without_resume(StormKind::Pfc(stormed.to_vec()));
    if plan.flows.iter().any(|flow| flow.role == Role::Test) {
        plan.durations.resume = request.durations.resume;
    }
    Ok(plan)
}
