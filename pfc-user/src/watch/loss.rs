//! Loss between two ports, judged from counts. No I/O.
//!
//! Other equipment sends the frames, so that some are in flight at the edges of a window. With S
//! frames sent in the window and R received, at least S - R were lost. At most, the frames in
//! flight at the edges were lost too: the window may count them as received without having counted
//! them as sent. Their number is bounded by the frames sent within the longest latency before the
//! window, and by those sent after it until R was read. The sequence numbers of the validator's
//! stamp, where frames carry it, give the exact number. Losses on the tester's own side, before
//! frames left or after they came, are deducted: only the rest was lost between the ports.
//!
//! Counts alone do not tell a loss for which duplicates make up: such a window is balanced. It is
//! without loss only where stamps, or frames compared by their octets, show that each came.

mod compared;

pub use self::compared::{Compared, compare};
use self::compared::{balanced, different, none_lost_by_comparison, none_lost_by_stamps};

use std::collections::BTreeSet;

use pfc_ebpf::wire::Malformed;
use serde::Serialize;

use crate::driver::bpf::watch::{Flow, Reading};

/// Frames by priority, and in the last those that have none.
pub type Counts = [u64; 9];

/// Place of those that have none.
pub const WITHOUT_PRIORITY: usize = 8;

/// Frames by priority of a reading, but for MAC control frames: those end at the port that they
/// come to.
pub fn counts(reading: &Reading) -> Counts {
    let counters = &reading.counters;
    let untagged = [
        Malformed::ControlTruncated,
        Malformed::ControlOpcode,
        Malformed::ControlDestination,
    ];
    let malformed: u64 = untagged
        .into_iter()
        .map(|reason| counters.malformed[reason as usize])
        .sum();
    let control = counters.pfc_frames + counters.pause.xoff + counters.pause.xon + malformed;
    let none = counters.no_priority.frames.saturating_sub(control);
    std::array::from_fn(|place| {
        counters
            .by_priority
            .get(place)
            .map_or(none, |volume| volume.frames)
    })
}

/// Place where sent frames were counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Sender {
    /// Counted by the program at tc egress.
    #[default]
    Egress,
    /// Counted by the driver, by priority.
    DriverByPriority {
        /// Their names.
        counters: String,
    },
    /// Counted by the driver, all frames in one: its `tx_packets`.
    Driver,
}

impl Sender {
    fn described(&self, tx: &str) -> String {
        match self {
            Self::Egress => format!("what {tx} sent was counted at tc egress"),
            Self::DriverByPriority { counters } => format!(
                "what {tx} sent was counted by its driver ({counters}): frames left that did not \
                 pass tc egress"
            ),
            Self::Driver => format!(
                "what {tx} sent was counted by its driver (tx_packets), without priorities: frames \
                 left that did not pass tc egress"
            ),
        }
    }
}

/// Losses on the tester's own side of frames that were counted as sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnSide {
    /// Counters of the sending interface and of its queueing discipline that rose, by name: frames
    /// that never left.
    pub sender: Vec<(String, u64)>,
    /// Frames that passed tc egress and that the driver did not count as sent.
    pub unsent: u64,
    /// Counters of the receiving interface that rose, and of the stack where frames pass it before
    /// they are counted.
    pub receiver: Vec<(String, u64)>,
}

impl OwnSide {
    /// Frames that it has lost, at most.
    pub fn bound(&self) -> u64 {
        let sum = |drops: &[(String, u64)]| drops.iter().map(|(_, drops)| drops).sum::<u64>();
        // Frames dropped on the way to the driver are not counted as sent either: both counts are
        // of the same frames.
        self.unsent.max(sum(&self.sender)) + sum(&self.receiver)
    }

    fn notes(&self, tx: &str) -> Vec<String> {
        let unsent = (self.unsent > 0).then(|| {
            format!(
                "{} frames passed tc egress of {tx} and were not counted as sent by its driver: \
                 dropped before it, waiting, or merged ones that \
                 it counts as one (`ethtool -K {tx} gso off tso off`)",
                self.unsent
            )
        });
        let drops = self
            .sender
            .iter()
            .chain(&self.receiver)
            .map(|(counter, drops)| format!("the tester's own side: {counter} {drops}"));
        unsent.into_iter().chain(drops).collect()
    }
}

/// Counts of a window.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Window {
    /// The place where sent frames were counted.
    pub sender: Sender,
    /// Sent within the longest latency before the window.
    pub before: Counts,
    /// Sent in the window.
    pub sent: Counts,
    /// Sent after the window, until `received` was read.
    pub after: Counts,
    /// Received in the window, and until all that was sent in it had come or long enough was
    /// waited.
    pub received: Counts,
    /// Losses on the tester's own side in the window.
    pub own: OwnSide,
    /// Frames without a priority that passed tc egress, such as ARP and LLDP: they may be for the
    /// device itself.
    pub for_the_device: u64,
    /// The receiving NIC may have taken VLAN tags out before the frames were counted by the tags'
    /// priorities.
    pub tags_hidden: bool,
    /// Test frames that were seen leaving since the programs were attached.
    pub flows_sent: Vec<Flow>,
    /// Test frames that were seen arriving since then.
    pub flows_received: Vec<Flow>,
    /// Losses on the tester's own side since the programs were attached.
    pub own_of_flows: OwnSide,
    /// Test frames of flows beyond those that there was a place for.
    pub flows_lost: u64,
    /// Frames compared by what no device changes; `None` where the sender's are not to be seen.
    pub compared: Option<Compared>,
    /// Test frames with a stamp among `received`.
    pub stamped: u64,
    /// The receiving interface, or the sending one, is gone, or had no carrier for a time.
    pub disturbed: Option<String>,
}

/// Judgement of loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// No frame is lost, or none beyond the allowance that is stated.
    NoLoss,
    /// As many came as were sent. Duplicates may make up for lost ones.
    Balanced,
    /// A loss can be neither shown nor excluded.
    Inconclusive,
    /// At least one frame is lost.
    Loss,
}

impl Verdict {
    /// As it is written.
    pub const fn word(self) -> &'static str {
        match self {
            Self::NoLoss => "no loss",
            Self::Balanced => "balanced",
            Self::Inconclusive => "inconclusive",
            Self::Loss => "loss",
        }
    }
}

/// Subject of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Subject {
    /// Frames of a priority.
    Priority(u8),
    /// Frames without one.
    NoPriority,
    /// All frames: the sender's count has no priorities.
    All,
    /// A flow of test frames: run and flow.
    Flow(u16, u16),
}

/// The judgement of one subject.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Row {
    /// The subject.
    pub subject: Subject,
    /// Frames sent in the window, or for a flow between its first and its last.
    pub sent: u64,
    /// Frames received of those, or of others in flight.
    pub received: u64,
    /// Frames that may have been in flight at the edges; 0: the count is exact.
    pub allowance: u64,
    /// Frames sent and not received, at least.
    pub lost: u64,
    /// The most of those that the tester's own side may have lost.
    pub own_side: u64,
    /// Judgement of loss between the ports.
    pub verdict: Verdict,
    /// Reason for the verdict, where it is not evident.
    pub reason: Option<String>,
}

/// The judgement of a window.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    /// The sending interface.
    pub tx: String,
    /// The receiving interface.
    pub rx: String,
    /// The place where sent frames were counted, in words.
    pub sender: String,
    /// Losses that were set off, and limits of the counts.
    pub notes: Vec<String>,
    /// By priority, and by flow where frames have stamps.
    pub rows: Vec<Row>,
    /// Verdict on all rows together.
    pub verdict: Verdict,
    /// Reason for the verdict, where it is not evident.
    pub reason: Option<String>,
}

fn inconclusive(reason: impl Into<String>) -> (Verdict, Option<String>) {
    (Verdict::Inconclusive, Some(reason.into()))
}

/// Verdict on `lost` missing frames, of which the tester's own side may have lost `own`; `None`
/// where none is missing.
fn missing(lost: u64, own: u64) -> Option<(Verdict, Option<String>)> {
    match (lost, own) {
        (0, _) => None,
        (_, 0) => Some((Verdict::Loss, None)),
        _ if lost > own => Some((
            Verdict::Loss,
            Some(format!("at most {own} of them by the tester's own side")),
        )),
        _ => Some(inconclusive(format!(
            "the tester's own side may have lost {own} frames, which may explain it"
        ))),
    }
}

/// The sequence numbers of a flow between which all can be told, and how many of them came; `None`
/// for what was not seen to arrive.
fn flow_row(received: Option<&Flow>, sent: Option<&Flow>, own: u64) -> Option<Row> {
    let flows = || [received, sent].into_iter().flatten();
    let lowest = flows().map(|flow| flow.lowest).min()?;
    let next = flows().map(|flow| flow.next).max()?;
    let any = received.or(sent)?;
    let (total, came) = (next - lowest, received.map_or(0, |flow| flow.distinct));
    let lost = total.saturating_sub(came);
    let late: u64 = flows().map(|flow| flow.beyond_window).sum();
    let (verdict, reason) = if late > 0 {
        inconclusive(format!(
            "{late} frames came too late to tell duplicates from new ones, or the sender began anew"
        ))
    } else if let Some(missing) = missing(lost, own) {
        missing
    } else if sent.is_none() {
        let reason = "exact between the first and the last that arrived: none was seen leaving";
        (Verdict::NoLoss, Some(reason.to_owned()))
    } else {
        (Verdict::NoLoss, None)
    };
    let own_side = if late > 0 { 0 } else { own.min(lost) };
    Some(Row {
        subject: Subject::Flow(any.run, any.flow),
        sent: total,
        received: came,
        allowance: 0,
        lost,
        own_side,
        verdict,
        reason,
    })
}

/// The judgement of each flow of test frames; `own` is what the tester's own side may have lost.
pub fn flow_rows(received: &[Flow], sent: &[Flow], own: u64) -> Vec<Row> {
    let keys = received.iter().chain(sent);
    let keys: BTreeSet<_> = keys.map(|flow| (flow.run, flow.flow)).collect();
    let rows = keys.into_iter().filter_map(|key| {
        let is_it = |flow: &&Flow| (flow.run, flow.flow) == key;
        let (received, sent) = (received.iter().find(is_it), sent.iter().find(is_it));
        flow_row(received, sent, own)
    });
    rows.collect()
}

/// Counts that a row is judged by.
#[derive(Clone, Copy)]
struct Frames {
    before: u64,
    sent: u64,
    after: u64,
    received: u64,
}

/// The judgement of frames of one kind, of which the tester's own side may have lost `own`, by
/// counts alone.
fn row(subject: Subject, frames: Frames, own: u64) -> Row {
    let Frames {
        before,
        sent,
        after,
        received,
    } = frames;
    let allowance = before + after;
    let lost = sent.saturating_sub(received);
    let (verdict, reason) = if let Some(missing) = missing(lost, own) {
        missing
    } else if received > sent + allowance {
        let more = received - sent;
        inconclusive(format!(
            "{more} more received than sent: other frames arrive there, which would hide a loss"
        ))
    } else if sent == 0 {
        inconclusive("nothing was sent in the window")
    } else if allowance >= sent {
        inconclusive("as many may have been in flight as were sent: take a longer --duration")
    } else if allowance > 0 {
        let reason = format!("beyond the allowance of {allowance} frames in flight");
        (Verdict::Balanced, Some(reason))
    } else {
        (Verdict::Balanced, None)
    };
    Row {
        subject,
        sent,
        received,
        allowance,
        lost,
        own_side: own.min(lost),
        verdict,
        reason,
    }
}

/// A priority whose frames may have arrived under none: how many of them did cannot be told.
fn without_its_tag(row: Row, rx: &str) -> Row {
    if row.lost == 0 || row.subject == Subject::NoPriority {
        return row;
    }
    let reason = format!(
        "rx-vlan-offload is on at {rx}, which takes tags out before XDP counts: `ethtool -K {rx} \
         rxvlan off`, or --attach tc, which counts them"
    );
    Row {
        own_side: 0,
        verdict: Verdict::Inconclusive,
        reason: Some(reason),
        ..row
    }
}

/// The judgement by counts: of each priority, or of all frames where the sender's count has none.
fn count_rows(rx: &str, window: &Window) -> Vec<Row> {
    let own = window.own.bound();
    let sum = |counts: &Counts| counts.iter().sum::<u64>();
    let frames = |one: &dyn Fn(&Counts) -> u64| Frames {
        before: one(&window.before),
        sent: one(&window.sent),
        after: one(&window.after),
        received: one(&window.received),
    };
    let of_driver = own + window.for_the_device;
    match window.sender {
        Sender::Driver => vec![row(Subject::All, frames(&sum), of_driver)],
        Sender::DriverByPriority { .. } | Sender::Egress => {
            let egress = window.sender == Sender::Egress;
            // A driver's own priorities have no place for the last.
            let places = if egress { 0..window.sent.len() } else { 0..8 };
            let rows = places.filter_map(|place| {
                let frames = frames(&|counts: &Counts| counts[place]);
                let subject = if place < 8 {
                    Subject::Priority(place as u8)
                } else {
                    Subject::NoPriority
                };
                let any = frames.before + frames.sent + frames.after + frames.received > 0;
                any.then(|| row(subject, frames, if egress { own } else { of_driver }))
            });
            rows.map(|row| {
                if window.tags_hidden {
                    without_its_tag(row, rx)
                } else {
                    row
                }
            })
            .collect()
        }
    }
}

/// More is missing in all than the tester's own side can have lost, though of none by itself:
/// `bound` is of all `rows` together.
fn unexplained(rows: &[&Row], bound: u64) -> Option<String> {
    let explained = rows.iter().filter(|row| row.own_side > 0);
    let lost: u64 = explained.map(|row| row.lost).sum();
    (lost > bound).then(|| {
        format!(
            "{lost} frames are missing in all, at most {bound} of them by the tester's own side"
        )
    })
}

/// Judges a window between two ports.
pub fn judge(tx: &str, rx: &str, window: &Window) -> Report {
    let mut rows = count_rows(rx, window);
    let mut flows = Vec::new();
    if window.flows_lost == 0 {
        // Sequence numbers tell a loss that the counts cannot, and its absence where counts have to
        // allow for frames in flight.
        flows = flow_rows(
            &window.flows_received,
            &window.flows_sent,
            window.own_of_flows.bound(),
        );
    }
    if none_lost_by_comparison(window, &rows) || none_lost_by_stamps(window, &flows) {
        let balanced = rows
            .iter_mut()
            .filter(|row| row.verdict == Verdict::Balanced);
        balanced.for_each(|row| row.verdict = Verdict::NoLoss);
    }
    rows.extend(flows);
    let (verdict, reason) = match &window.disturbed {
        Some(disturbed) => inconclusive(disturbed),
        None => verdict_of(&rows, window),
    };
    Report {
        tx: tx.to_owned(),
        rx: rx.to_owned(),
        sender: window.sender.described(tx),
        notes: notes(tx, window),
        rows,
        verdict,
        reason,
    }
}

/// The gravest verdict of the rows that say something, and its reason where no row has one.
fn verdict_of(rows: &[Row], window: &Window) -> (Verdict, Option<String>) {
    // Frames without a priority are often for the device itself (ARP, LLDP): they say something
    // only where there are no others.
    let any = rows
        .iter()
        .any(|row| row.sent > 0 && row.subject != Subject::NoPriority);
    let relevant = rows
        .iter()
        .filter(|row| row.sent > 0 && (!any || row.subject != Subject::NoPriority));
    let (flows, counts): (Vec<_>, Vec<_>) =
        relevant.partition(|row| matches!(row.subject, Subject::Flow(..)));
    match counts.iter().chain(&flows).map(|row| row.verdict).max() {
        None => inconclusive("nothing was sent in the window"),
        Some(Verdict::Inconclusive) => {
            let for_the_device = if window.sender == Sender::Egress {
                0
            } else {
                window.for_the_device
            };
            let unexplained = unexplained(&counts, window.own.bound() + for_the_device)
                .or_else(|| unexplained(&flows, window.own_of_flows.bound()));
            match unexplained {
                Some(reason) => (Verdict::Loss, Some(reason)),
                None => (Verdict::Inconclusive, None),
            }
        }
        Some(Verdict::Balanced) => match window.compared {
            Some(Compared::Different { least, .. }) => inconclusive(different(least)),
            _ => (Verdict::Balanced, Some(balanced(window))),
        },
        Some(verdict) => (verdict, None),
    }
}

/// Remarks on what the counts include or lack.
fn notes(tx: &str, window: &Window) -> Vec<String> {
    let flows = !window.flows_sent.is_empty() || !window.flows_received.is_empty();
    let mut notes = if flows {
        window.own_of_flows.notes(tx)
    } else {
        window.own.notes(tx)
    };
    if window.for_the_device > 0 && window.sender != Sender::Egress {
        notes.push(format!(
            "{} frames without a priority passed tc egress, such as ARP and LLDP: they may be for \
             the device itself",
            window.for_the_device
        ));
    }
    if window.flows_lost > 0 {
        notes.push(format!(
            "{} test frames were of more flows than can be told apart: judged by priority alone, \
             not by stamps",
            window.flows_lost
        ));
    }
    notes
}

#[cfg(test)]
mod tests;
