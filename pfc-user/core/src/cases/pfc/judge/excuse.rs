//! The precondition `honoured`: reasons why a loss may not be the fault of the DUT, and how many
//! frames each explains at most. What is lost beyond that is judged.

use pfc_ebpf::stamp::Phase;
use pfc_ebpf::units::LineRate;

use super::mac::{self, Counted, Witness};
use super::preconditions::{
    self, not_shown, shares_buffer, storm_end, withheld_left_out, withheld_listed,
};
use super::stalls::delaying;
use crate::cases::finding::Again;
use crate::cases::value::{Value, count, time};
use crate::evidence::pfc::{PfcEvidence, Stall};
use crate::plan::{FlowPlan, Nanos, PortName};

/// A reason why frames may have been lost.
pub(super) struct Excuse {
    /// The cause, with its figure.
    pub(super) cause: Value,
    /// Frames that it explains at most.
    pub(super) frames: u64,
    /// The use of measuring again.
    pub(super) again: Again,
}

/// The excuses for a loss of `flow` in `phase`. Frames that came far behind may be the missing
/// ones. The DUT may drop lossless frames that the tester sends despite its XOFF, and frames held
/// longer than its `max_residence`.
pub(super) fn excuses(e: &PfcEvidence, flow: &FlowPlan, phase: Phase) -> Vec<Excuse> {
    let late = far_behind(e, flow, phase);
    if !e.plan.is_lossless(flow.priority) {
        return late.into_iter().collect();
    }
    let found = [
        late,
        beyond_headroom(e, flow, phase),
        late_xoff(e, flow, phase),
        long_wait(e, flow, phase),
        unseen(e, flow),
    ];
    found.into_iter().flatten().collect()
}

/// Frames so far behind the newest that the program does not know whether their number had come.
fn far_behind(e: &PfcEvidence, flow: &FlowPlan, phase: Phase) -> Option<Excuse> {
    let frames = e.received(flow.id, phase)?.beyond_window;
    (frames > 0).then(|| Excuse {
        cause: count(frames, "") + " came too far behind to tell late from duplicate",
        frames,
        again: Again::MayDecide,
    })
}

/// Frames of `flow` that leave in `span`, and the one that had begun.
fn in_time(flow: &FlowPlan, span: Nanos) -> u64 {
    let bits = u128::from(flow.rate) * u128::from(span) / 1_000_000_000;
    let frame = u128::from(LineRate::frame_bits(flow.length)).max(1);
    u64::try_from(bits / frame)
        .unwrap_or(u64::MAX)
        .saturating_add(1)
}

/// More than the headroom left after an XOFF of this phase.
fn beyond_headroom(e: &PfcEvidence, flow: &FlowPlan, phase: Phase) -> Option<Excuse> {
    let after = e.sender.after_xoff[flow.priority.index()];
    let excess = after
        .checked_sub(e.limits.headroom)
        .filter(|excess| *excess > 0)?;
    let listed = withheld_listed(e, flow, phase).count() as u64;
    let unlisted = withheld_left_out(e, flow, phase).map(|spans| spans.count);
    let pauses = listed + unlisted.sum::<u64>();
    let frames = excess.div_ceil(flow.length.max(1) as u64);
    (pauses > 0).then(|| Excuse {
        cause: count(after, "octets")
            + format!(
                " of priority {} left after the DUT's XOFF, its headroom is ",
                flow.priority
            )
            + count(e.limits.headroom, ""),
        frames: frames.saturating_mul(pauses),
        again: Again::MayDecide,
    })
}

/// The simulated DUT's XOFF leaves late if its process stalls. No headroom accounts for the frames
/// that arrive meanwhile.
fn late_xoff(e: &PfcEvidence, flow: &FlowPlan, phase: Phase) -> Option<Excuse> {
    let sent = e.sent(flow.id, phase)?;
    let dut = e.dut.as_ref()?;
    let flows = e.plan.flows.iter();
    let same = |other: &&FlowPlan| other.priority == flow.priority && other.from == flow.from;
    let of_priority = flows.filter(same);
    let rate: u64 = of_priority.map(|flow| flow.rate).sum();
    let octets =
        |stall: &Stall| (u128::from(rate) * u128::from(stall.length()) / 8_000_000_000) as u64;
    let after = e.sender.after_xoff[flow.priority.index()];
    let too_many = |stall: &&Stall| after + octets(stall) > e.limits.headroom;
    let stalls: Vec<&Stall> = delaying(e, sent.first, sent.last)
        .filter(|stall| dut.stalls.contains(stall))
        .filter(too_many)
        .collect();
    let longest = stalls.iter().max_by_key(|stall| stall.length())?;
    Some(Excuse {
        cause: "the simulated DUT stalled for "
            + time(longest.length())
            + ", in which "
            + count(octets(longest), "octets")
            + " came in, and its XOFF was late by as much; its headroom is "
            + count(e.limits.headroom, ""),
        frames: stalls
            .iter()
            .map(|stall| in_time(flow, stall.length()))
            .sum(),
        again: Again::MayDecide,
    })
}

/// The storm made frames wait for longer than the DUT has to keep them.
fn long_wait(e: &PfcEvidence, flow: &FlowPlan, phase: Phase) -> Option<Excuse> {
    if phase != Phase::Storm || !e.plan.holds(flow) {
        return None;
    }
    let (storm, sent) = (e.storm.as_ref()?, e.sent(flow.id, phase)?);
    // The frame sent first had to wait the longest: until the storm's pause ended.
    let end = storm_end(e, storm);
    let waited = end.saturating_sub(sent.first);
    if waited <= e.limits.max_residence {
        return None;
    }
    // The frame held last had to wait for all the others as well.
    let last = e
        .received(flow.id, phase)
        .map_or(0, |received| received.last);
    let too_long = end.max(last).saturating_sub(sent.first) - e.limits.max_residence;
    Some(Excuse {
        cause: "the storm made frames wait "
            + time(waited)
            + ", longer than max_residence "
            + time(e.limits.max_residence)
            + ": shorten it or declare what the DUT can hold",
        frames: in_time(flow, too_long),
        again: Again::CannotDecide,
    })
}

/// Excuses a loss where it is not known whether the DUT asked for a pause that the sender did not
/// obey.
fn unseen(e: &PfcEvidence, flow: &FlowPlan) -> Option<Excuse> {
    if let Some(port) = preconditions::unseen(e, Some(flow)).next() {
        return Some(Excuse {
            cause: not_shown(port).into(),
            frames: u64::MAX,
            again: Again::CannotDecide,
        });
    }
    let of_tx = |other: &FlowPlan| other.from == PortName::TX && shares_buffer(other, flow);
    if !e.plan.flows.iter().any(of_tx) {
        return None;
    }
    let cause = match mac::witness(e) {
        // The sender obeyed what the program saw.
        Ok(Witness::Program) => return None,
        // The sender obeyed no pause: only a DUT that never asked for one has to answer for the
        // loss.
        Ok(Witness::Mac(mac)) => match mac::xoff(mac, flow.priority) {
            Counted::None(_) => return None,
            Counted::Some(how) => {
                let seen = "the DUT asked for a pause, which the sender did not obey, for its \
                            program sees none: by the MAC, ";
                seen + how
            }
            Counted::Unknown(why) | Counted::Unshown(why) => {
                "it is not known whether the DUT asked for a pause: by the MAC, " + why
            }
        },
        Err(why) => why.into(),
    };
    Some(Excuse {
        cause,
        frames: u64::MAX,
        again: Again::CannotDecide,
    })
}
