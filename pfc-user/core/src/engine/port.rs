//! A port in time: which of its flows' frames leaves next, on a line that carries one after the
//! other. No clock is asked, and nothing is sent here.

pub mod fast;
mod line;
#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use pfc_ebpf::units::{LineRate, Nanos, Priority};

pub use self::line::BURST;
use self::line::Line;
use super::flow::{Fine, NEVER, Pace, Progress, Taken, fine, whole};
use super::queue::Holds;
use super::snapshot::{Count, Transmit};

/// Queues that pause frames hold, and the one of pause frames, which nothing holds.
const LANES: usize = Priority::COUNT + 1;
const PAUSE_LANE: usize = Priority::COUNT;
/// Time after its end within which a flow may still send frames that were due in as much time
/// before it: the sender may have been held up. A flow that owes more than that had too full a
/// line, and would send beyond its time.
const GRACE: Nanos = 10_000_000;

/// Lateness to which the flows are cut back once it exceeds twice this: a sender that was held up
/// by its machine makes good for less, and flows whose line is full fall behind no further.
pub const MEMORY: Nanos = 100_000_000;

/// The schedule of a port's flows.
#[derive(Debug)]
pub struct PortSchedule {
    flows: Vec<Scheduled>,
    lanes: [Lane; LANES],
    line: Line,
    /// Ends of flows that end by time.
    ends: BinaryHeap<Reverse<(Nanos, usize)>>,
    /// Flows that ended without a frame, since the last call of `ended`.
    changed: Vec<usize>,
    /// Time of what was due and forgotten, as the port could not keep up.
    forgotten: Nanos,
}

#[derive(Debug)]
struct Scheduled {
    pace: Pace,
    lane: usize,
    /// Version of the entry in force in the lane; older ones are passed over.
    version: u64,
    /// True while another sender has the flow ([`fast`]).
    offloaded: bool,
}

/// The flows of a queue, the one that is due first at the top.
#[derive(Debug, Default)]
struct Lane {
    due: BinaryHeap<Reverse<Entry>>,
    /// Time until which the lane is held.
    until: Nanos,
    /// Time for which it was held, at the last look.
    total: Nanos,
    /// Time held or stalled that has not been taken off what its flows owe.
    owed: Nanos,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    due: Fine,
    flow: usize,
    version: u64,
}

/// A frame that leaves now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Due {
    /// Place of its flow.
    pub flow: usize,
    /// Number and length of the frame.
    pub frame: Taken,
    before: Progress,
    line: Line,
}

impl PortSchedule {
    /// Makes the schedule of a port without flows.
    pub fn new(line_rate: LineRate) -> Self {
        Self {
            flows: Vec::new(),
            lanes: Default::default(),
            line: Line::new(line_rate),
            ends: BinaryHeap::new(),
            changed: Vec::new(),
            forgotten: 0,
        }
    }

    /// Adds a flow; its place is their number so far. `queue` is `None` for pause frames, which
    /// nothing holds.
    pub fn add(&mut self, pace: Pace, queue: Option<Priority>) {
        self.flows.push(Scheduled {
            pace,
            lane: queue.map_or(PAUSE_LANE, Priority::index),
            version: 0,
            offloaded: false,
        });
    }

    /// Progress of a flow.
    pub fn progress(&self, flow: usize) -> Progress {
        self.flows[flow].pace.progress()
    }

    /// Spreads the first frames of flows that have just started together.
    pub fn spread(&mut self, flows: &[usize]) {
        let count = flows.len() as u64;
        for (place, flow) in (0..).zip(flows) {
            self.change(*flow, |pace| pace.stand_back(place, count));
        }
    }

    /// Time of what was due to leave and never did, as the port sends no faster.
    pub const fn forgotten(&self) -> Nanos {
        self.forgotten
    }

    /// Frames a second of all flows that are sent.
    pub fn rate(&self) -> u64 {
        let sent = self.flows.iter().filter(|flow| flow.pace.is_started());
        sent.map(|flow| flow.pace.rate().0).sum()
    }

    /// Changes the pace of a flow, such as by its start or its end.
    pub fn change(&mut self, flow: usize, change: impl FnOnce(&mut Pace)) {
        change(&mut self.flows[flow].pace);
        self.enlist(flow);
    }

    /// Puts a flow into its lane, as it now is.
    fn enlist(&mut self, flow: usize) {
        let scheduled = &mut self.flows[flow];
        scheduled.version += 1;
        if !scheduled.pace.is_started() || scheduled.offloaded {
            return;
        }
        let progress = scheduled.pace.progress();
        if progress.due < NEVER {
            self.lanes[scheduled.lane].due.push(Reverse(Entry {
                due: progress.due,
                flow,
                version: scheduled.version,
            }));
        }
        if progress.end < Nanos::MAX && progress.number == 0 {
            self.ends.push(Reverse((progress.end, flow)));
        }
    }

    /// Looks at what is held at `now`, and ends the flows whose time is over.
    pub fn look(&mut self, now: Nanos, holds: &Holds) {
        self.hold(now, holds);
        while let Some(Reverse((end, flow))) = self.ends.peek().copied()
            && end <= now
        {
            self.ends.pop();
            self.end(flow, now);
        }
        self.forget(now);
    }

    /// Looks at what is held at `now`.
    pub fn hold(&mut self, now: Nanos, holds: &Holds) {
        for (lane, hold) in holds.iter().enumerate() {
            let state = &mut self.lanes[lane];
            state.owed += hold.total.saturating_sub(state.total);
            // The program moves time from one word to another: a look in between misses it.
            state.total = state.total.max(hold.total);
            state.until = hold.until;
            if state.owed > 0 && hold.until <= now {
                self.release(lane, now);
            }
        }
    }

    /// Forgets what is owed for too long, of all flows alike: none gains on another.
    fn forget(&mut self, now: Nanos) {
        let Some(first) = self.first(now) else { return };
        if first.due + fine(2 * MEMORY) < fine(now) {
            let span = now - MEMORY - whole(first.due);
            self.forgotten += span;
            self.stalled(span, now);
        }
    }

    /// Takes off what the flows of a lane owe the time for which it was held.
    fn release(&mut self, lane: usize, now: Nanos) {
        let held = std::mem::take(&mut self.lanes[lane].owed);
        let entries = std::mem::take(&mut self.lanes[lane].due);
        for Reverse(entry) in entries {
            let scheduled = &mut self.flows[entry.flow];
            if entry.version == scheduled.version {
                scheduled.pace.was_held(held, now);
                self.lanes[lane].due.push(Reverse(Entry {
                    due: scheduled.pace.progress().due,
                    ..entry
                }));
            }
        }
    }

    /// Ends a flow whose time may be over.
    fn end(&mut self, flow: usize, now: Nanos) {
        let scheduled = &self.flows[flow];
        let progress = scheduled.pace.progress();
        if progress.state == Transmit::Paused || progress.end > now {
            // Resumed or started anew since; a paused flow is looked at again.
            if progress.state != Transmit::Stopped {
                let next = progress.end.max(now + GRACE);
                self.ends.push(Reverse((next, flow)));
            }
            return;
        }
        let owed = fine(progress.end).saturating_sub(progress.due);
        let makes_good = (1..=fine(GRACE)).contains(&owed);
        let is_held = self.lanes[scheduled.lane].until > now;
        if makes_good && !is_held && now < progress.end + GRACE {
            self.ends.push(Reverse((progress.end + GRACE, flow)));
        } else if progress.state == Transmit::Started {
            self.change(flow, Pace::stop);
            self.changed.push(flow);
        }
    }

    /// The frame that leaves at `now`, if one does.
    pub fn take(&mut self, now: Nanos) -> Option<Due> {
        loop {
            if !self.line.is_free(now) {
                return None;
            }
            let entry = self.first(now)?;
            if entry.due > fine(now) {
                return None;
            }
            let scheduled = &mut self.flows[entry.flow];
            let (lane, line) = (scheduled.lane, self.line);
            let before = scheduled.pace.progress();
            self.lanes[lane].due.pop();
            let taken = scheduled.pace.take();
            self.enlist(entry.flow);
            let Some(frame) = taken else {
                self.changed.push(entry.flow);
                continue;
            };
            self.line.carry(now, 1, frame.length.into());
            return Some(Due {
                flow: entry.flow,
                frame,
                before,
                line,
            });
        }
    }

    /// The entry that is due first of all lanes that are not held.
    fn first(&mut self, now: Nanos) -> Option<Entry> {
        let mut first: Option<Entry> = None;
        self.prune();
        for lane in &self.lanes {
            if lane.until > now {
                continue;
            }
            if let Some(Reverse(entry)) = lane.due.peek()
                && first.is_none_or(|first| *entry < first)
            {
                first = Some(*entry);
            }
        }
        first
    }

    /// Takes outdated entries off the tops of the lanes.
    fn prune(&mut self) {
        for lane in &mut self.lanes {
            while let Some(Reverse(entry)) = lane.due.peek()
                && self.flows[entry.flow].version != entry.version
            {
                lane.due.pop();
            }
        }
    }

    /// Accounts frames that another sender has put on the line: those of this one get the rest of
    /// it.
    pub fn share(&mut self, others: Count, now: Nanos) {
        self.line.carry(now, others.frames, others.octets);
    }

    /// Gives back a frame that did not leave, nor did any that was taken after it; to be called for
    /// the last first.
    pub fn give_back(&mut self, due: &Due) {
        self.line = due.line;
        self.flows[due.flow].pace.return_to(due.before);
        self.enlist(due.flow);
    }

    /// Accounts a stall: nothing could leave for `span` until `now`, held or not, and none of it is
    /// owed.
    pub fn stalled(&mut self, span: Nanos, now: Nanos) {
        for lane in 0..LANES {
            self.lanes[lane].owed += span;
            if self.lanes[lane].until <= now {
                self.release(lane, now);
            }
        }
    }

    /// Returns when there may next be something to do, if nothing changes: a frame, or the end of a
    /// flow or of a hold.
    pub fn next(&mut self, now: Nanos) -> Option<Nanos> {
        let due = self
            .first(now)
            .map(|entry| whole(entry.due).max(self.line.free()));
        let end = self.ends.peek().map(|Reverse((end, _))| *end);
        let held = self
            .lanes
            .iter()
            .filter(|lane| lane.until > now && !lane.due.is_empty())
            .map(|lane| lane.until)
            .min();
        [due, end, held].into_iter().flatten().min()
    }

    /// Returns true if flows wait in a lane that is held.
    pub fn waits(&mut self, now: Nanos) -> bool {
        self.prune();
        let mut lanes = self.lanes.iter();
        lanes.any(|lane| lane.until > now && !lane.due.is_empty())
    }

    /// Flows that ended without a frame since this was last asked.
    pub fn ended(&mut self) -> Vec<usize> {
        std::mem::take(&mut self.changed)
    }
}
