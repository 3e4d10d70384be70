//! The flows of a port, as a script of the one sender in userspace.

mod frames;

use std::io;
use std::sync::Arc;

use pfc_ebpf::units::{LineRate, Nanos, Priority};
use validator_core::engine::Change;
use validator_core::engine::flow::Pace;
use validator_core::engine::packet::Template;
use validator_core::engine::plan::Obeys;
use validator_core::engine::port::{Due, PortSchedule};

use self::frames::{Frames, Note};
use super::published::{FlowState, PortState};
use crate::driver::bpf::flow::{PauseClocks, Place};
use crate::driver::kernel::packet::{PacketError, PacketSocket};
use crate::driver::kernel::{clock, realtime};
pub use crate::driver::sender::Died;
use crate::driver::sender::batch::{Batches, Script, Slot, TICK};
use crate::driver::sender::{Next, Setup};
use crate::evidence::pfc::Departure;

/// From one try to the next while the link is down.
const DOWN: Nanos = 1_000_000;

/// The thread that sends the flows of a port. It ends when this is dropped.
pub type SenderThread = crate::driver::sender::SenderThread<Batches<Flows>>;

/// A flow as its sender needs it.
pub struct SenderFlow {
    /// Its pace.
    pub pace: Pace,
    /// `None`: pause frames, which nothing holds.
    pub queue: Option<Priority>,
    /// Its frames.
    pub template: Template,
    /// Its frames have all one length.
    pub one_length: bool,
    /// What it says of itself.
    pub state: Arc<FlowState>,
}

/// An order to the thread. Flows are by their place among those of the port.
pub enum Command {
    /// These are the flows; those before end.
    Install {
        /// Flows.
        flows: Vec<SenderFlow>,
        /// Pause frames that hold them.
        obeys: Obeys,
        /// Line rate.
        line_rate: LineRate,
    },
    /// These flows begin.
    Start {
        /// Each with what its stamps have, and its frames anew where they changed.
        flows: Vec<(usize, Place, Option<Box<Template>>)>,
        /// When the order was given.
        at: Nanos,
    },
    /// These flows end.
    Stop(Vec<usize>),
    /// These flows are held.
    Pause(Vec<usize>),
    /// These flows go on.
    Resume(Vec<usize>),
    /// Flows change while they are sent.
    Change(Vec<(usize, Change)>),
}

/// The flows of a port.
pub struct Flows {
    pauses: PauseClocks,
    obeys: Obeys,
    schedule: PortSchedule,
    frames: Frames,
    /// The link has been down since then.
    stalled: Option<Nanos>,
}

/// Starts the thread of a port, without flows.
pub fn start(
    socket: PacketSocket,
    pauses: PauseClocks,
    line_rate: LineRate,
    state: Arc<PortState>,
) -> io::Result<SenderThread> {
    let flows = Flows {
        pauses,
        obeys: Obeys::Nothing,
        schedule: PortSchedule::new(line_rate),
        frames: Frames::new(state, line_rate),
        stalled: None,
    };
    let setup = Setup {
        name: "flows".into(),
        priority: realtime::SENDER,
        cpu: None,
    };
    SenderThread::start(setup, Batches::new(socket, flows, TICK))
}

impl Flows {
    fn change(&mut self, flow: usize, change: Change, now: Nanos) {
        match change {
            Change::Rate(rate) => self.schedule.change(flow, |pace| pace.set_rate(rate, now)),
            Change::Length(length) => {
                self.frames.set_length(flow, &length);
                self.schedule.change(flow, |pace| pace.set_length(length));
            }
        }
    }

    fn each(&mut self, flows: &[usize], mut change: impl FnMut(&mut PortSchedule, usize)) {
        for flow in flows {
            change(&mut self.schedule, *flow);
            self.frames.publish(*flow, &self.schedule);
        }
    }

    /// The link is up, whatever it was before: what could not leave meanwhile is not owed.
    fn goes_on(&mut self, now: Nanos) {
        if let Some(since) = self.stalled.take() {
            self.schedule.stalled(now.saturating_sub(since), now);
        }
    }
}

impl Script for Flows {
    type Order = Command;
    type Note = Note;

    fn obey(&mut self, command: Command) {
        let now = clock::now();
        match command {
            Command::Install {
                flows,
                obeys,
                line_rate,
            } => {
                self.obeys = obeys;
                self.schedule = PortSchedule::new(line_rate);
                for flow in &flows {
                    self.schedule.add(flow.pace.clone(), flow.queue);
                }
                self.frames.install(flows, line_rate);
            }
            Command::Start { flows, at } => {
                for (flow, place, template) in flows {
                    self.frames.start(flow, place, template, at);
                    self.schedule.start(flow, at);
                    self.frames.publish(flow, &self.schedule);
                }
            }
            Command::Stop(flows) => self.each(&flows, |schedule, flow| schedule.stop(flow)),
            Command::Pause(flows) => {
                self.each(&flows, |schedule, flow| schedule.pause(flow, now));
                flows.iter().for_each(|flow| self.frames.interrupt(*flow));
            }
            Command::Resume(flows) => {
                self.each(&flows, |schedule, flow| schedule.resume(flow, now));
            }
            Command::Change(changes) => {
                for (flow, change) in changes {
                    self.change(flow, change, now);
                }
            }
        }
    }

    fn look(&mut self, now: Nanos) -> bool {
        let holds = self.obeys.holds(&self.pauses.read(), now);
        self.schedule.look(now, &holds);
        for flow in self.schedule.ended() {
            self.frames.publish(flow, &self.schedule);
        }
        true
    }

    fn make(&mut self, slot: &mut Slot<Note>, now: Nanos) -> bool {
        let Some(due) = self.schedule.take(now) else {
            return false;
        };
        self.frames.make(due, slot);
        true
    }

    fn stamp(&mut self, slots: &mut [Slot<Note>], time: Nanos) -> bool {
        self.frames.stamp(slots, time);
        true
    }

    fn give_back(&mut self, note: &Note) {
        if let Some(due) = &note.due {
            self.schedule.give_back(due);
        }
    }

    fn left(&mut self, slots: &[Slot<Note>], departure: Departure) {
        self.goes_on(departure.before);
        self.frames.left(slots, departure, &self.schedule);
    }

    fn failed(&mut self, error: PacketError, first: &Note, now: Nanos) -> Next {
        if let (PacketError::TooLong { .. }, Some(Due { flow, .. })) = (&error, first.due) {
            // Somebody has lowered the MTU: the flow cannot go on, the others can.
            self.each(&[flow], PortSchedule::stop);
            return Next::Now;
        }
        // The link is down, say: nothing leaves, and nothing is owed for it.
        let since = self.stalled.replace(now).unwrap_or(now);
        self.schedule.stalled(now - since, now);
        Next::At(now + DOWN)
    }

    fn next(&mut self, now: Nanos) -> Option<Nanos> {
        self.goes_on(now);
        // What is held may be let go at any time.
        if self.schedule.waits(now) {
            return Some(now);
        }
        self.schedule.next(now)
    }
}
