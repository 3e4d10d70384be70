//! Marks of single frames on the time line: those that should not have come, came late, twice or
//! damaged, those that were lost, and the tester's own single pause frames.

use pfc_ebpf::abi::account::OffenceKind;
use pfc_ebpf::stamp::Phase;
use pfc_ebpf::units::{Nanos, Priority};

use super::expected::Failed;
use super::markup::Element;
use super::plot::Scale;
use crate::cases::pfc::{held_by_probes, leaked};
use crate::evidence::pfc::{Offence, PfcEvidence, Windows};
use crate::plan::{FlowPlan, PfcFrame};
use crate::quantity;

/// Class of a mark and its words, in the order of the legend.
pub const FRAMES: [(&str, &str); 6] = [
    ("leaked", "frame that the pause should have held"),
    ("late", "frame later than the limit after an XOFF"),
    (
        "overdue",
        "frame later than the limit though no pause held it",
    ),
    ("twice", "frame received twice"),
    ("damaged", "frame damaged, re-marked or out of order"),
    ("lost", "frames lost by then"),
];

/// The marks of a lane: each from its top to its bottom.
pub fn of_lane(
    e: &PfcEvidence,
    failed: &Failed<'_>,
    scale: &Scale,
    priority: Priority,
    place: (f64, f64),
) -> Vec<Element> {
    let flows = || e.plan.flows.iter().filter(|flow| flow.priority == priority);
    // Nothing else is to be held by the storm, though its arrivals may be logged.
    let held = flows().filter(|flow| e.plan.holds(flow));
    let held = held.flat_map(|flow| leaked(e, flow.id)).collect();
    let late = flows().flat_map(|flow| late(e, flow)).collect();
    let of = |wanted: &[OffenceKind]| -> Vec<Nanos> {
        let of = e
            .offences
            .iter()
            .filter(|found| wanted.contains(&found.kind));
        let of = of.filter(|found| priority_of(e, found) == Some(priority));
        of.map(|found| found.time).collect()
    };
    let twice = of(&[OffenceKind::Duplicate, OffenceKind::BeyondWindow]);
    let damaged = of(&[
        OffenceKind::Corrupt,
        OffenceKind::Remarked,
        OffenceKind::Reordered,
    ]);
    let (overdue, lost) = (failed.frames(priority), lost(&e.windows, priority));
    let places: [Vec<Nanos>; 6] = [held, late, overdue, twice, damaged, lost];
    let marks = FRAMES
        .iter()
        .zip(places)
        .filter_map(|((class, word), times)| {
            let tip = |first, number| {
                format!("priority {priority}: {word}: {number} marks, the first at {first} s")
            };
            scale.lines(&times, place, class, tip)
        });
    marks.collect()
}

/// The tester's own single XOFF and XON frames, in the row of the storm.
pub fn own_pauses(e: &PfcEvidence, scale: &Scale, place: (f64, f64)) -> Vec<Element> {
    let lines = |word: &str, class: &str, is_meant: &dyn Fn(&PfcFrame) -> bool| {
        let probes = e.probes.iter();
        let frames = probes.flat_map(|probe| probe.burst.frames.iter().zip(&probe.left));
        let frames = frames.filter(|(one, _)| !one.frame.classes.is_empty());
        let frames = frames.filter(|(one, _)| is_meant(&one.frame));
        let times: Vec<Nanos> = frames.map(|(_, left)| left.before).collect();
        let tip = |first, number| {
            format!("{number} single {word} frames of the tester, the first at {first} s")
        };
        scale.lines(&times, place, class, tip)
    };
    let xoff = lines("XOFF", "own-xoff", &PfcFrame::asks);
    let xon = lines("XON", "own-xon", &|frame| {
        frame.is_heeded() && !frame.asks()
    });
    let odd = lines("odd PFC", "own-odd", &|frame| !frame.is_heeded());
    [xoff, xon, odd].into_iter().flatten().collect()
}

/// Arrivals of a paused flow between the limit after a single XOFF and the end of its pause.
fn late(e: &PfcEvidence, flow: &FlowPlan) -> Vec<Nanos> {
    let spans = held_by_probes(e, flow.priority);
    let arrivals = e.arrivals.records.iter();
    arrivals
        .filter(|arrival| (arrival.flow, arrival.phase) == (flow.id, Phase::Probe))
        .map(|arrival| arrival.time)
        .filter(|time| spans.iter().any(|(from, to)| (from..to).contains(&time)))
        .collect()
}

/// Begins of the windows by which frames of `priority` had been lost: from there on the frames that
/// arrived are fewer than those offered by as many for good.
fn lost(windows: &Windows, priority: Priority) -> Vec<Nanos> {
    let number = windows.offered.len().max(windows.received.len());
    let count = |of: &[[u32; 8]], index: usize| {
        i64::from(of.get(index).map_or(0, |window| window[priority.index()]))
    };
    let mut missing = 0;
    let mut under_way: Vec<i64> = Vec::with_capacity(number);
    for index in 0..number {
        missing += count(&windows.offered, index) - count(&windows.received, index);
        under_way.push(missing);
    }
    // The least that is missing from each window on was lost before it.
    for index in (1..number).rev() {
        under_way[index - 1] = under_way[index - 1].min(under_way[index]);
    }
    let begin = |index: usize| {
        let offset = windows.width.saturating_mul(index as u64);
        windows.epoch.saturating_add(offset)
    };
    let rises = |index: &usize| {
        let before = index.checked_sub(1).map_or(0, |before| under_way[before]);
        under_way[*index] > before.max(0)
    };
    (0..number).filter(rises).map(begin).collect()
}

/// The priority of the flow whose frame that was, by its DSCP: the last one that was sent.
fn priority_of(e: &PfcEvidence, offence: &Offence) -> Option<Priority> {
    let octets = quantity::from_hex(&offence.octets)?;
    let mut at = 12;
    let mut kind = octets.get(at..at + 2)?;
    while kind == [0x81, 0x00] {
        at += 4;
        kind = octets.get(at..at + 2)?;
    }
    let first = *octets.get(at + 2)?;
    let second = *octets.get(at + 3)?;
    let dscp = match kind {
        [0x08, 0x00] => second >> 2,
        [0x86, 0xdd] => (first << 4 | second >> 4) >> 2,
        _ => return None,
    };
    let mut flows = e.plan.flows.iter();
    Some(flows.find(|flow| flow.dscp.get() == dscp)?.priority)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_lost_from_the_window_on_in_which_they_are_missing_for_good() {
        let window = |frames: u32| [frames; 8];
        let found = |offered: &[u32], received: &[u32]| {
            let windows = Windows {
                epoch: 100,
                width: 10,
                offered: offered.iter().copied().map(window).collect(),
                received: received.iter().copied().map(window).collect(),
            };
            lost(&windows, Priority::from_low_bits(3))
        };
        assert_eq!(found(&[5, 5, 0, 0], &[4, 5, 1, 0]), [0; 0]);
        // Held for two windows, of which two frames never come.
        assert_eq!(found(&[5, 5, 5, 0], &[5, 1, 2, 5]), [110]);
        assert_eq!(found(&[5, 5], &[5, 4]), [110]);
        assert_eq!(found(&[], &[]), [0; 0]);
    }
}
