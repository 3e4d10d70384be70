//! Checks on the PFC that the DUT sends: `well-formed`, `in-time`, `releases`.

use std::ops::Range;

use pfc_ebpf::stamp::Phase;
use pfc_ebpf::units::{Priority, Quanta};
use pfc_ebpf::wire::Malformed;
use pfc_ebpf::wire::mac_control::Deviation;

use super::asking::logged;
use super::delivery::explained;
use super::excuse::excuses;
use super::preconditions::{
    flows, frames_at, lost_by_tester, not_shown, rate_in, received, sees_pfc, sent,
};
use super::stalls::{but_stalled, delay, stalled_within};
use crate::cases::finding::Finding;
use crate::cases::value::{Value, count, time};
use crate::evidence::pfc::{PfcEvidence, Port};
use crate::plan::{FlowPlan, Nanos, Role};

/// Departures in frames that MACs read all the same.
const DEVIATIONS: [(Deviation, &str); Deviation::COUNT] = [
    (Deviation::GroupSource, "a group address as the source"),
    (
        Deviation::ReservedVector,
        "an upper octet of the vector that is not 0",
    ),
    (
        Deviation::Padding,
        "an octet behind the operands that is not 0",
    ),
    (Deviation::Length, "another length than 64 octets with FCS"),
];

/// Departures for which MACs do not read a frame.
const DEFECTS: [(Malformed, &str); 3] = [
    (Malformed::ControlDestination, "another destination"),
    (Malformed::ControlTagged, "a VLAN tag"),
    (Malformed::ControlTruncated, "an end before their operands"),
];

/// `well-formed`.
pub(in crate::cases::pfc) fn well_formed(e: &PfcEvidence) -> Finding {
    let mut finding = Finding::new();
    let sum = |of: &dyn Fn(&Port) -> u64| {
        let counts = e.ports.iter().map(|(_, port)| of(port));
        counts.fold(0, u64::saturating_add)
    };
    let mut expect_none = |with: &str, found: u64| {
        let what = format!("MAC control frames of the DUT with {with}");
        finding.prove(what, 0, found, found == 0, true);
    };
    for (defect, with) in DEFECTS {
        expect_none(with, sum(&|port| port.counts.damaged_by(defect)));
    }
    for (deviation, with) in DEVIATIONS {
        expect_none(with, sum(&|port| port.counts.departing_by(deviation)));
    }
    let others = sum(&|port| port.counts.damaged_by(Malformed::ControlOpcode));
    if others > 0 {
        // IEEE 802.3, Annex 31A lists further opcodes, such as those of EPON.
        let what = "MAC control frames of the DUT that are neither PAUSE nor PFC";
        let found = count(others, "") + ": evidence.pcapng shows if they were to be PFC";
        finding.undecidable(what, 0, found);
    }
    let what = "PFC frames of the DUT that were looked at at the tx port";
    match e.ports.tx.counts.pfc_frames {
        0 if sees_pfc(&e.ports.tx) => finding.undecidable(what, "some", 0),
        0 => finding.undecidable(what, "some", not_shown(&e.ports.tx)),
        found => finding.expect(what, "some", found, true),
    }
    finding
}

/// The DUT's PFC for one stormed priority as the tx port saw it, from the storm's traffic to the
/// next frame of the priority that left: that may be the reason of another XOFF.
struct Asked<'e> {
    priority: Priority,
    /// Flows of it.
    flows: Vec<&'e FlowPlan>,
    /// Begin of the storm's traffic, and the end of this record.
    times: Range<Nanos>,
    /// PFC frames that name it: when, and their quanta.
    frames: Vec<(Nanos, Quanta)>,
}

impl<'e> Asked<'e> {
    /// The record of each stormed priority.
    fn of_each(e: &'e PfcEvidence) -> impl Iterator<Item = Self> {
        let all = Priority::all().map(|priority| Self::of(e, priority));
        all.filter(|asked| !asked.flows.is_empty())
    }

    fn of(e: &'e PfcEvidence, priority: Priority) -> Self {
        let flows = flows(e, Some(Role::Test)).filter(|flow| flow.priority == priority);
        let flows: Vec<_> = flows.collect();
        let next = flows.iter().filter_map(|flow| {
            let sent = e.sent(flow.id, Phase::Resume)?;
            (sent.frames > 0).then_some(sent.first)
        });
        let ended = e.phases.iter().map(|span| span.to).max().unwrap_or(0);
        let from = e.span(Phase::Storm).map_or(0, |span| span.from);
        let times = from..next.min().unwrap_or(ended);
        let frames = logged(&e.ports.tx, priority);
        let frames = frames.filter(|(time, _)| times.contains(time));
        Self {
            priority,
            frames: frames.collect(),
            flows,
            times,
        }
    }

    /// Times of its XOFF frames.
    fn xoffs(&self) -> impl Iterator<Item = Nanos> {
        let xoffs = self.frames.iter().filter(|(_, quanta)| quanta.0 > 0);
        xoffs.map(|(time, _)| *time)
    }

    /// The last of them, with its quanta.
    fn last_xoff(&self) -> Option<(Nanos, Quanta)> {
        let mut frames = self.frames.iter().rev();
        frames.find(|(_, quanta)| quanta.0 > 0).copied()
    }

    /// Frames in the storm, by a count of a flow in a phase.
    fn in_storm(&self, e: &PfcEvidence, of: impl Fn(&PfcEvidence, &FlowPlan, Phase) -> u64) -> u64 {
        let counts = self.flows.iter().map(|flow| of(e, flow, Phase::Storm));
        counts.fold(0, u64::saturating_add)
    }

    /// Frames that left in the storm, and those of them that arrived.
    fn sent_and_received(&self, e: &PfcEvidence) -> [u64; 2] {
        [self.in_storm(e, sent), self.in_storm(e, received)]
    }

    /// Frames that were due in the first so many nanoseconds of the storm's traffic.
    fn due(&self, e: &PfcEvidence, span: Nanos) -> u64 {
        self.in_storm(e, |e, flow, phase| {
            let due = frames_at(rate_in(e, flow, phase), flow, span) as u64;
            due.min(sent(e, flow, phase))
        })
    }

    /// Octets of a frame: those of a case are alike.
    fn length(&self) -> u64 {
        self.flows.first().map_or(0, |flow| flow.length as u64)
    }

    /// Says in words that the log has no XOFF; where it left frames out, one may have come.
    fn none(&self, e: &PfcEvidence) -> Value {
        let [sent, received] = self.sent_and_received(e);
        match (
            e.ports.tx.counts.controls_lost,
            sent.saturating_sub(received),
        ) {
            (0, 0) => {
                let held = count(sent.saturating_mul(self.length()), "octets");
                "none; " + held + " came and none was lost, so that its buffer may hold them"
            }
            (0, lost) => "none, and " + count(lost, "frames") + " are lost",
            (missing, _) => "none, but " + count(missing, "PAUSE/PFC frames") + " are not logged",
        }
    }

    /// The longest time after an XOFF in which a DUT that holds on sends another: that from one to
    /// the next where it sent several, else the pause.
    fn longest_interval(&self, e: &PfcEvidence) -> Nanos {
        let pairs = self.frames.windows(2);
        let intervals = pairs.filter_map(|pair| match pair {
            [(one, first), (other, second)] if first.0 > 0 && second.0 > 0 => {
                Some(other.saturating_sub(*one))
            }
            _ => None,
        });
        let pause = self.frames.iter().map(|(_, quanta)| *quanta).max();
        let pause = pause.map_or(0, |quanta| e.limits.pause_time(quanta));
        intervals.max().map_or(pause, |longest| longest.min(pause))
    }
}

/// Time by which a frame may have left later than it was due, or the DUT have acted later.
fn slack(e: &PfcEvidence) -> Nanos {
    e.limits.max_response.saturating_add(e.sender.max_burst)
}

/// `in-time`.
pub(in crate::cases::pfc) fn in_time(e: &PfcEvidence) -> Finding {
    let mut finding = Finding::new();
    let unlogged = e.ports.tx.counts.controls_lost;
    for asked in Asked::of_each(e) {
        let what = format!(
            "XOFF for priority {} before one of its frames is lost",
            asked.priority
        );
        let [sent, received] = asked.sent_and_received(e);
        let lost = sent.saturating_sub(received);
        let Some(first) = asked.xoffs().next() else {
            if lost > 0 && unlogged == 0 {
                finding.prove(what, "one", asked.none(e), false, false);
            } else {
                finding.undecidable(what, "one", asked.none(e));
            }
            continue;
        };
        let after = first.saturating_sub(asked.times.start);
        let most = asked.due(e, after).saturating_mul(asked.length());
        let found = "one after " + time(after) + ", in which at most " + count(most, "octets");
        let found = found + " came";
        if lost == 0 && sent > 0 {
            finding.expect(what, "one", found, true);
            continue;
        }
        let excused = asked.in_storm(e, |e, flow, phase| explained(&excuses(e, flow, phase)));
        let stalled = stalled_within(e, asked.times.start, first);
        let due = |slack: Nanos| asked.due(e, after.saturating_sub(slack));
        let arrived = received.saturating_add(excused);
        let found = found + ", and " + count(lost, "frames") + " are lost";
        if unlogged > 0 {
            let why = found + "; " + count(unlogged, "PAUSE/PFC frames") + " are not logged";
            finding.undecidable(what, "one", why);
        } else if arrived < due(slack(e).saturating_add(stalled)) {
            let before = count(due(slack(e)).saturating_sub(arrived), "");
            let found = found + ", of which " + before + " at least had left before it";
            finding.prove(what, "one", found, false, false);
        } else if arrived < due(slack(e)) {
            finding.undecided(what, "one", but_stalled(found, stalled));
        } else {
            finding.undecided(what, "one", found + ", before it or after");
        }
    }
    finding
}

/// The least delay of an XOFF that `in-time` finds.
pub(in crate::cases::pfc) fn least_late(e: &PfcEvidence) -> Option<Value> {
    Asked::of_each(e).next()?.xoffs().next()?;
    Some("an XOFF " + time(slack(e)) + " after the first frame that is lost")
}

/// `releases`.
pub(in crate::cases::pfc) fn releases(e: &PfcEvidence) -> Finding {
    let mut finding = Finding::new();
    let last = |flow: &FlowPlan| Some(e.received(flow.id, Phase::Storm)?.last);
    let drained = e.plan.flows.iter().filter_map(last).max().unwrap_or(0);
    let arrived = |flow: &FlowPlan| received(e, flow, Phase::Storm) >= sent(e, flow, Phase::Storm);
    let certain = e.plan.flows.iter().all(arrived) && lost_by_tester(e).0 == 0;
    let unlogged = e.ports.tx.counts.controls_lost;
    for asked in Asked::of_each(e) {
        let what = format!(
            "last XOFF for priority {}, against the last frame sent in the storm",
            asked.priority
        );
        let most = e.limits.max_response;
        let expected = Value::from("<= ") + time(most) + " after it";
        let Some((last, quanta)) = asked.last_xoff() else {
            finding.undecidable(what, expected, asked.none(e));
            continue;
        };
        let late = last.saturating_sub(drained);
        if late > most {
            // One bunch may have waited in the tester, whose receiver's stalls nobody lists.
            let is_late = |time: &Nanos| time.saturating_sub(drained) > most;
            let first = asked.xoffs().find(is_late).unwrap_or(last);
            let stalled = delay(e, drained, last);
            let found = time(late) + " after it";
            if late <= most.saturating_add(stalled) {
                finding.undecided(what, expected, but_stalled(found, stalled));
            } else if last.saturating_sub(first) <= most {
                let why = found + ", but no other so late; it may have waited in the tester";
                finding.undecided(what, expected, why);
            } else {
                finding.prove(what, expected, found, false, certain);
            }
            continue;
        }
        let found = match drained.checked_sub(last) {
            Some(before) => time(before) + " before it",
            None => time(late) + " after it",
        };
        let ended = asked.frames.last().is_some_and(|(_, quanta)| quanta.0 == 0);
        let over = last.saturating_add(e.limits.pause_time(quanta));
        let longest = asked.longest_interval(e);
        let rest = asked.times.end.saturating_sub(drained.max(last));
        if unlogged > 0 {
            let why = found + ", but " + count(unlogged, "PAUSE/PFC frames") + " are not logged";
            finding.undecidable(what, expected, why);
        } else if ended {
            finding.expect(what, expected, found + "; an XON followed", true);
        } else if rest >= longest {
            let left = time(over.saturating_sub(drained));
            let found = found + "; no XON followed, its pause lasted for " + left + " more";
            finding.expect(what, expected, found, true);
        } else {
            let why = found + "; the time from one to the next is up to " + time(longest);
            let why = why + ", and nothing is known after " + time(rest);
            finding.undecidable(what, expected, why);
        }
    }
    finding
}
