//! The flows of a port, as scripts of the one sender in userspace: its data are sent by one thread,
//! its pause frames by another, which keeps to their times as a storm does and has a standby.

mod frames;
pub mod kernel;
mod offload;

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use pfc_ebpf::units::{LineRate, Nanos, Priority};
use validator_core::engine::Change;
use validator_core::engine::flow::Pace;
use validator_core::engine::packet::Template;
use validator_core::engine::plan::{Flow, Obeys};
use validator_core::engine::port::{Due, PortSchedule};
use validator_core::engine::snapshot::Count;
use validator_core::evidence::pfc::Departure;
use validator_core::pacing::storm::placement::Placement;
use validator_core::pacing::storm::schedule::LONGEST_REST;

use self::frames::{Frames, Note};
use self::kernel::KernelSender;
use self::offload::Fast;
use super::published::{FlowState, PortState};
use crate::driver::bpf::flow::{PauseClocks, Place};
use crate::driver::kernel::clock;
use crate::driver::kernel::packet::{PacketError, PacketSocket};
use crate::driver::kernel::realtime::{self, Awake};
pub use crate::driver::sender::Died;
use crate::driver::sender::batch::{Batches, Script, Slot, TICK};
use crate::driver::sender::{Next, Setup, standby};

/// Time from one try to the next while the link is down.
const DOWN: Nanos = 1_000_000;

/// Frames a second that leave one by one: waking up for each takes a fifth of a CPU.
const FEW: u64 = 40_000;

/// Senders of a port: that of data, and that of pause frames.
pub const SENDERS: usize = 2;

/// The sender of a flow, by its place among those of the port.
pub fn place(flow: &Flow) -> usize {
    usize::from(flow.packet.is_pause())
}

/// Sends flows of a port, until this is dropped.
pub type PortSender = standby::Sender<Batches<Flows>>;

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
    /// State that the flow publishes.
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
        /// Flows, each with its stamp values, and its frames anew where they changed.
        flows: Vec<(usize, Place, Option<Box<Template>>)>,
        /// Time at which the order was given.
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
    /// The kernel sends what this thread cannot keep up with.
    Fast(Box<KernelSender>),
}

/// The flows of a sender.
pub struct Flows {
    pauses: PauseClocks,
    obeys: Obeys,
    schedule: PortSchedule,
    frames: Frames,
    part: Part,
    /// The link has been down since then.
    stalled: Option<Nanos>,
    fast: Fast,
    /// The flows want so few frames that each may leave by itself.
    few: bool,
}

/// Part of its port's flows that a sender has.
enum Part {
    /// Data flows. They leave the line to pause frames; `control` counts those that had left at the
    /// last look.
    Data { control: Count },
    /// Flows of pause frames. CPUs are kept out of deep sleep while there is one to send.
    Pauses { busy: bool, awake: Option<Awake> },
}

/// Starts the senders of a port, without flows.
pub fn start(
    sockets: [PacketSocket; SENDERS],
    pauses: &PauseClocks,
    line_rate: LineRate,
    state: &Arc<PortState>,
) -> io::Result<[PortSender; SENDERS]> {
    let work = |socket, part, tick| {
        let flows = Flows {
            pauses: pauses.clone(),
            obeys: Obeys::Nothing,
            schedule: PortSchedule::new(line_rate),
            frames: Frames::new(state.clone(), line_rate),
            part,
            stalled: None,
            fast: Fast::new(line_rate),
            few: true,
        };
        Batches::new(socket, flows, tick)
    };
    let setup = |name: &str, priority, cpu| Setup {
        name: name.into(),
        priority: Some(priority),
        cpu,
    };
    let [data, control] = sockets;
    let sent = Count::default();
    let data = work(data, Part::Data { control: sent }, TICK);
    let pauses = Part::Pauses {
        busy: false,
        awake: None,
    };
    let pauses = work(control, pauses, LONGEST_REST);
    // Flows of pause frames come later, and may have the shortest of pauses.
    let cpus = Placement::choose(0, &realtime::allowed_cpus()).cpus();
    let threads = ["pauses", "pauses standby"].into_iter().zip(cpus);
    let mut threads = threads.map(|(name, cpu)| setup(name, realtime::STORM, cpu));
    let first = threads.next().expect("a placement has a sender");
    Ok([
        PortSender::start(setup("flows", realtime::SENDER, None), None, data)?,
        PortSender::start(first, threads.next(), pauses)?,
    ])
}

impl Flows {
    /// Leaves the line to what the other sender of the port has sent since the last look.
    fn share(&mut self, now: Nanos) {
        if let Part::Data { control } = &mut self.part {
            let sent = self.frames.port.control.read();
            if sent != *control {
                self.schedule.share(sent.since(*control), now);
                *control = sent;
            }
        }
    }

    /// Keeps CPUs awake while there are pause frames to send.
    fn keep_awake(&mut self, busy: bool) {
        if let Part::Pauses {
            busy: before,
            awake,
        } = &mut self.part
            && *before != busy
        {
            *before = busy;
            *awake = busy.then(Awake::hold).flatten();
        }
    }

    fn change(&mut self, flow: usize, change: Change, now: Nanos) {
        match change {
            Change::Rate(rate) => self.schedule.change(flow, |pace| pace.set_rate(rate, now)),
            Change::Length(length) => {
                self.frames.set_length(flow, &length);
                self.schedule.change(flow, |pace| pace.set_length(length));
            }
        }
    }

    fn each(&mut self, flows: &[usize], change: impl Fn(&mut Pace)) {
        for flow in flows {
            self.schedule.change(*flow, &change);
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
        self.recall();
        let now = clock::now();
        match command {
            Command::Install {
                flows,
                obeys,
                line_rate,
            } => {
                self.obeys = obeys;
                self.fast.install(&flows, line_rate);
                self.schedule = PortSchedule::new(line_rate);
                for flow in &flows {
                    self.schedule.add(flow.pace.clone(), flow.queue);
                }
                self.frames.install(flows, line_rate);
            }
            Command::Start { flows, at } => {
                let mut started = Vec::new();
                for (flow, place, template) in flows {
                    self.frames.start(flow, place, template, at);
                    self.schedule.change(flow, |pace| pace.start(at));
                    self.frames.publish(flow, &self.schedule);
                    started.push(flow);
                }
                // Pause frames keep to the times that they were ordered for.
                if matches!(self.part, Part::Data { .. }) {
                    self.schedule.spread(&started);
                }
            }
            Command::Stop(flows) => self.each(&flows, Pace::stop),
            Command::Pause(flows) => {
                self.each(&flows, |pace| pace.pause(now));
                flows.iter().for_each(|flow| self.frames.interrupt(*flow));
            }
            Command::Resume(flows) => self.each(&flows, |pace| pace.resume(now)),
            Command::Change(changes) => {
                for (flow, change) in changes {
                    self.change(flow, change, now);
                }
            }
            Command::Fast(sender) => self.fast.sender = Some(sender),
        }
        self.few = self.schedule.rate() <= FEW;
    }

    fn look(&mut self, now: Nanos) -> bool {
        let now = self.look_after(now);
        let holds = self.obeys.holds(&self.pauses.read(), now);
        self.frames.look(now, &holds);
        self.schedule.look(now, &holds);
        for flow in self.schedule.ended() {
            self.frames.publish(flow, &self.schedule);
        }
        self.share(now);
        if matches!(self.part, Part::Data { .. }) {
            let forgotten = self.schedule.forgotten();
            self.frames.port.forgotten.store(forgotten, Relaxed);
        }
        self.hand_over(now, &holds);
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
            // The MTU was lowered: the flow cannot go on, the others can.
            let state = &self.frames.flows[flow].state;
            state.too_long.fetch_add(1, Relaxed);
            self.each(&[flow], Pace::stop);
            return Next::Now;
        }
        // The link is down, say: nothing leaves, and nothing is owed for it.
        let since = self.stalled.replace(now);
        if since.is_none() {
            self.frames.port.stalls.fetch_add(1, Relaxed);
        }
        self.schedule.stalled(now - since.unwrap_or(now), now);
        Next::At(now + DOWN)
    }

    fn tick(&mut self, tick: Nanos, now: Nanos) -> Nanos {
        let is_data = matches!(self.part, Part::Data { .. });
        // Held flows are looked at each tick.
        if is_data && self.few && !self.schedule.waits(now) {
            0
        } else {
            tick
        }
    }

    fn next(&mut self, now: Nanos) -> Option<Nanos> {
        self.goes_on(now);
        // Held flows may be let go at any time.
        let next = if self.schedule.waits(now) {
            Some(now)
        } else {
            let come_back = self.fast.until();
            self.schedule.next(now).into_iter().chain(come_back).min()
        };
        self.keep_awake(next.is_some());
        next
    }
}
