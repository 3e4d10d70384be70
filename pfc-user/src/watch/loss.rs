//! What is lost between two ports: a pure judgement of counts.
//!
//! Counts of a window are of frames that some other equipment sends, so that frames are in flight at its edges. With S frames
//! sent in the window and R received, at least S - R were lost; and at most that and the frames in flight at the edges, of
//! which the window counts as received what it does not count as sent. Those are bounded by what was sent within the longest
//! latency before the window, and by what was sent after it until R was read. Where frames carry the validator's stamp their
//! sequence numbers tell exactly.

use pfc_ebpf::maps::Malformed;
use serde::Serialize;

use crate::driver::watch::{Flow, Reading};

/// Frames by priority, and in the last those that have none.
pub type Counts = [u64; 9];

/// Frames by priority of a reading, but for MAC control frames: those end at the port that they come to.
pub fn counts(reading: &Reading) -> Counts {
    let counters = &reading.counters;
    let untagged = [Malformed::ControlTruncated, Malformed::ControlOpcode, Malformed::ControlDestination];
    let malformed: u64 = untagged.into_iter().map(|reason| counters.malformed[reason as usize]).sum();
    let control = counters.pfc_frames + counters.pause.xoff + counters.pause.xon + malformed;
    let none = counters.no_priority.frames.saturating_sub(control);
    std::array::from_fn(|place| counters.by_priority.get(place).map_or(none, |volume| volume.frames))
}

/// Where the sending side was counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sender {
    /// By the program at tcx egress.
    Egress,
    /// By counters of the driver, by priority.
    DriverByPriority {
        /// Their names.
        counters: String,
    },
    /// By a counter of the driver of all frames.
    Driver {
        /// Its name.
        counter: String,
    },
}

/// What was counted in a window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    /// Who counted what was sent.
    pub sender: Sender,
    /// Sent within the longest latency before the window.
    pub before: Counts,
    /// Sent in the window.
    pub sent: Counts,
    /// Sent after the window, until `received` was read.
    pub after: Counts,
    /// Received in the window, and until all that was sent in it had come or long enough was waited.
    pub received: Counts,
    /// Drops that the two interfaces report of themselves, by name.
    pub own_drops: Vec<(String, u64)>,
    /// Test frames that were seen leaving.
    pub flows_sent: Vec<Flow>,
    /// Test frames that were seen arriving.
    pub flows_received: Vec<Flow>,
    /// The receiving interface, or the sending one, is gone, or had no carrier for a time.
    pub disturbed: Option<String>,
}

/// Whether frames were lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// None, or none beyond the allowance that is stated.
    NoLoss,
    /// Cannot be told.
    Inconclusive,
    /// At least one.
    Loss,
}

impl Verdict {
    /// As it is written.
    pub const fn word(self) -> &'static str {
        match self {
            Self::NoLoss => "no loss",
            Self::Inconclusive => "inconclusive",
            Self::Loss => "loss",
        }
    }
}

/// What is judged by itself.
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
    /// What is judged.
    pub subject: Subject,
    /// Frames sent in the window, or for a flow between its first and its last.
    pub sent: u64,
    /// Frames received of those, or of others in flight.
    pub received: u64,
    /// Frames that may have been in flight at the edges; 0: the count is exact.
    pub allowance: u64,
    /// Frames lost, at least.
    pub lost: u64,
    /// Whether frames were lost.
    pub verdict: Verdict,
    /// What the verdict rests on, where it needs saying.
    pub reason: Option<String>,
}

/// The judgement of a window.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    /// The sending interface.
    pub tx: String,
    /// The receiving interface.
    pub rx: String,
    /// Who counted what was sent, and whether flows were told apart by stamps.
    pub sender: String,
    /// By priority, and by flow where frames have stamps.
    pub rows: Vec<Row>,
    /// Of all together.
    pub verdict: Verdict,
    /// What the verdict rests on, where it needs saying.
    pub reason: Option<String>,
}

/// The sequence numbers of a flow between which all can be told, and how many of them came; `None` for what was not seen to arrive.
fn flow_row(received: Option<&Flow>, sent: Option<&Flow>) -> Option<Row> {
    let lowest = [received, sent].into_iter().flatten().map(|flow| flow.lowest).min()?;
    let next = [received, sent].into_iter().flatten().map(|flow| flow.next).max()?;
    let any = received.or(sent)?;
    let (total, came) = (next - lowest, received.map_or(0, |flow| flow.distinct));
    let lost = total.saturating_sub(came);
    let late = received.map_or(0, |flow| flow.beyond_window) + sent.map_or(0, |flow| flow.beyond_window);
    let (verdict, reason) = if late > 0 {
        (Verdict::Inconclusive, Some(format!("{late} frames came too late to tell duplicates from new ones, or the sender began anew")))
    } else if lost > 0 {
        (Verdict::Loss, None)
    } else if sent.is_none() {
        (Verdict::NoLoss, Some("exact between the first and the last that arrived: none was seen leaving".to_owned()))
    } else {
        (Verdict::NoLoss, None)
    };
    Some(Row { subject: Subject::Flow(any.run, any.flow), sent: total, received: came, allowance: 0, lost, verdict, reason })
}

/// The judgement of each flow of test frames.
pub fn flow_rows(received: &[Flow], sent: &[Flow]) -> Vec<Row> {
    let find = |flows: &[Flow], key: (u16, u16)| flows.iter().find(|flow| (flow.run, flow.flow) == key).copied();
    let mut keys: Vec<_> = received.iter().chain(sent).map(|flow| (flow.run, flow.flow)).collect();
    keys.sort_unstable();
    keys.dedup();
    keys.into_iter().filter_map(|key| flow_row(find(received, key).as_ref(), find(sent, key).as_ref())).collect()
}

/// The judgement of `sent` frames of one kind.
fn row(subject: Subject, before: u64, sent: u64, after: u64, received: u64, own_drops: u64) -> Row {
    let allowance = before + after;
    let lost = sent.saturating_sub(received);
    let (verdict, reason) = if lost > own_drops {
        (Verdict::Loss, None)
    } else if lost > 0 {
        (Verdict::Inconclusive, Some(format!("the two interfaces themselves report {own_drops} drops, which may explain it")))
    } else if received > sent + allowance {
        let more = received - sent;
        (Verdict::Inconclusive, Some(format!("{more} more received than sent: other frames arrive there, which would hide a loss")))
    } else if sent == 0 {
        (Verdict::Inconclusive, Some("nothing was sent in the window".to_owned()))
    } else if allowance >= sent {
        (Verdict::Inconclusive, Some("as many may have been in flight as were sent: take a longer --duration".to_owned()))
    } else if allowance > 0 {
        (Verdict::NoLoss, Some(format!("beyond the allowance of {allowance} frames in flight")))
    } else {
        (Verdict::NoLoss, None)
    };
    Row { subject, sent, received, allowance, lost, verdict, reason }
}

/// Judges a window between two ports.
pub fn judge(tx: &str, rx: &str, window: &Window) -> Report {
    let own: u64 = window.own_drops.iter().map(|(_, drops)| drops).sum();
    let flows = flow_rows(&window.flows_received, &window.flows_sent);
    let sum = |counts: &Counts| counts.iter().sum::<u64>();
    let mut rows = Vec::new();
    if matches!(window.sender, Sender::Driver { .. }) {
        rows.push(row(Subject::All, sum(&window.before), sum(&window.sent), sum(&window.after), sum(&window.received), own));
    } else {
        for place in 0..window.sent.len() {
            let [before, sent, after, received] =
                [&window.before, &window.sent, &window.after, &window.received].map(|counts| counts[place]);
            let subject = if place < 8 { Subject::Priority(place as u8) } else { Subject::NoPriority };
            // A driver's own priorities have no place for the last.
            if before + sent + after + received > 0 && !(place == 8 && matches!(window.sender, Sender::DriverByPriority { .. })) {
                rows.push(row(subject, before, sent, after, received, own));
            }
        }
    }
    // Sequence numbers tell a loss that the counts cannot, and its absence where counts have to allow for frames in flight.
    rows.extend(flows);
    // Frames without a priority are often for the device itself (ARP, LLDP): they say something only where there are no others.
    let any = rows.iter().any(|row| row.sent > 0 && row.subject != Subject::NoPriority);
    let relevant = || rows.iter().filter(|row| row.sent > 0 && (!any || row.subject != Subject::NoPriority));
    let (verdict, reason) = if let Some(disturbed) = &window.disturbed {
        (Verdict::Inconclusive, Some(disturbed.clone()))
    } else {
        match relevant().map(|row| row.verdict).max() {
            None => (Verdict::Inconclusive, Some("nothing was sent in the window".to_owned())),
            Some(verdict) => (verdict, None),
        }
    };
    let sender = match &window.sender {
        Sender::Egress => format!("what {tx} sent was counted at tcx egress"),
        Sender::DriverByPriority { counters } => {
            format!("what {tx} sent was counted by its driver ({counters}): frames left that did not pass tcx egress")
        }
        Sender::Driver { counter } => {
            format!("what {tx} sent was counted by its driver ({counter}), without priorities: frames left that did not pass tcx egress")
        }
    };
    Report { tx: tx.to_owned(), rx: rx.to_owned(), sender, rows, verdict, reason }
}

/// Counters of a driver by priority, by the names that drivers have for them: mlx5, mlx4, bnxt.
pub fn driver_priorities(counters: &[(String, u64)]) -> Option<(&'static str, [u64; 8])> {
    type Name = fn(usize) -> String;
    let names: [(&'static str, Name); 3] = [
        ("tx_prioN_packets", |priority| format!("tx_prio{priority}_packets")),
        ("tx_prio_N_packets", |priority| format!("tx_prio_{priority}_packets")),
        ("tx_packets_priN", |priority| format!("tx_packets_pri{priority}")),
    ];
    names.into_iter().find_map(|(shown, name)| {
        let value = |priority| counters.iter().find(|(found, _)| *found == name(priority)).map(|(_, value)| *value);
        let all: Vec<u64> = (0..8).map_while(value).collect();
        Some((shown, all.try_into().ok()?))
    })
}

#[cfg(test)]
mod tests;
