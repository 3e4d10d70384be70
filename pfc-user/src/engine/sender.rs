//! The thread that sends the flows of a port: it sleeps, and sends in batches what has become due.

mod batch;

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread::{self, JoinHandle};

use pfc_ebpf::units::{LineRate, Nanos, Priority};
use validator_core::engine::Change;
use validator_core::engine::flow::Pace;
use validator_core::engine::packet::Template;
use validator_core::engine::plan::Obeys;
use validator_core::engine::port::PortSchedule;

use self::batch::Batch;
use super::published::{FlowState, PortState};
use crate::driver::bpf::flow::{PauseClocks, Place};
use crate::driver::kernel::packet::{AGAIN, PacketError, PacketSocket};
use crate::driver::kernel::{clock, realtime};

/// Time from one look at what is due to the next, so that frames leave by the dozen and not by one.
const TICK: Nanos = 150_000;
/// After so long without sleep the thread lets others run, for [`REST`]: under SCHED_FIFO nothing
/// else would make it.
const LONGEST_RUN: Nanos = 1_000_000;
const REST: Nanos = 100_000;
/// From one try to the next while the link is down.
const DOWN: Nanos = 1_000_000;

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

/// The thread. It ends when this is dropped.
pub struct SenderThread {
    orders: Option<Sender<(Command, Sender<()>)>>,
    thread: Option<JoinHandle<()>>,
}

/// The thread is gone.
#[derive(Debug, thiserror::Error)]
#[error("the thread that sends has ended; its last words are on stderr")]
pub struct Died;

impl SenderThread {
    /// Starts it, without flows.
    pub fn start(
        socket: PacketSocket,
        pauses: PauseClocks,
        line_rate: LineRate,
        state: Arc<PortState>,
    ) -> io::Result<Self> {
        let (orders, inbox) = channel();
        let mut worker = Worker {
            socket,
            pauses,
            obeys: Obeys::Nothing,
            schedule: PortSchedule::new(line_rate),
            batch: Batch::new(state, line_rate),
            stalled: None,
        };
        let thread = thread::Builder::new().name("flows".into()).spawn(move || {
            // Where it is not permitted frames may leave late, which counts tell.
            realtime::enter_fifo(realtime::SENDER);
            worker.serve(&inbox);
        })?;
        Ok(Self {
            orders: Some(orders),
            thread: Some(thread),
        })
    }

    /// Gives an order; returns when it has been carried out.
    pub fn order(&self, command: Command) -> Result<(), Died> {
        self.give(command)?.recv().map_err(|_| Died)
    }

    /// Gives an order; the receiver hears when it has been carried out.
    pub fn give(&self, command: Command) -> Result<Receiver<()>, Died> {
        let (done, carried_out) = channel();
        let orders = self.orders.as_ref().ok_or(Died)?;
        orders.send((command, done)).map_err(|_| Died)?;
        self.unpark();
        Ok(carried_out)
    }

    fn unpark(&self) {
        if let Some(thread) = &self.thread {
            thread.thread().unpark();
        }
    }
}

impl Drop for SenderThread {
    fn drop(&mut self) {
        self.orders = None;
        self.unpark();
        // A panic there has been reported on stderr by the thread itself.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

struct Worker {
    socket: PacketSocket,
    pauses: PauseClocks,
    obeys: Obeys,
    schedule: PortSchedule,
    batch: Batch,
    /// The link has been down since then.
    stalled: Option<Nanos>,
}

/// When the thread looks again.
enum Next {
    /// At once.
    Now,
    /// Then, or when an order comes.
    At(Nanos),
    /// When an order comes.
    Order,
}

impl Worker {
    /// Serves until nobody can give orders any more.
    fn serve(&mut self, inbox: &Receiver<(Command, Sender<()>)>) {
        let mut rested = clock::now();
        loop {
            match inbox.try_recv() {
                Ok((command, done)) => {
                    self.obey(command);
                    // Who gave the order may have gone.
                    let _ = done.send(());
                    continue;
                }
                Err(TryRecvError::Disconnected) => return,
                Err(TryRecvError::Empty) => {}
            }
            let next = self.round();
            let now = clock::now();
            match next {
                Next::At(time) if time > now => clock::park_until(time),
                Next::Order => thread::park(),
                // At once, or at a time that the round has passed.
                _ if now < rested + LONGEST_RUN => continue,
                _ => clock::park_until(now + REST),
            }
            rested = clock::now();
        }
    }

    /// Sends a batch of what is due.
    fn round(&mut self) -> Next {
        let now = clock::now();
        let holds = self.obeys.holds(&self.pauses.read(), now);
        self.schedule.look(now, &holds);
        for flow in self.schedule.ended() {
            self.batch.publish(flow, &self.schedule);
        }
        self.batch.fill(&mut self.schedule, now);
        let full = match self.batch.send(&self.socket, &mut self.schedule) {
            Ok(full) => full,
            // Somebody has lowered the MTU: the flow cannot go on, the others can.
            Err(PacketError::TooLong { .. }) => {
                self.batch.end_first(&mut self.schedule);
                return Next::Now;
            }
            // The link is down, say: nothing leaves, and nothing is owed for it.
            Err(_) => return self.stall(now),
        };
        if let Some(since) = self.stalled.take() {
            self.schedule.stalled(now.saturating_sub(since), now);
        }
        if full {
            return Next::At(clock::now() + AGAIN);
        }
        if self.batch.is_full() {
            return Next::Now;
        }
        let tick = now + TICK;
        match self.schedule.next(now) {
            // What is held may be let go at any time.
            _ if self.schedule.waits(now) => Next::At(tick),
            Some(due) => Next::At(due.max(tick)),
            None => Next::Order,
        }
    }

    fn stall(&mut self, now: Nanos) -> Next {
        let since = *self.stalled.get_or_insert(now);
        self.schedule.stalled(now - since, now);
        self.stalled = Some(now);
        Next::At(now + DOWN)
    }

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
                self.batch.install(flows, line_rate);
            }
            Command::Start { flows, at } => {
                for (flow, place, template) in flows {
                    self.batch.start(flow, place, template, at);
                    self.schedule.start(flow, at);
                    self.batch.publish(flow, &self.schedule);
                }
            }
            Command::Stop(flows) => self.each(&flows, |schedule, flow| schedule.stop(flow)),
            Command::Pause(flows) => {
                self.each(&flows, |schedule, flow| schedule.pause(flow, now));
                flows.iter().for_each(|flow| self.batch.interrupt(*flow));
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

    fn change(&mut self, flow: usize, change: Change, now: Nanos) {
        match change {
            Change::Rate(rate) => self.schedule.change(flow, |pace| pace.set_rate(rate, now)),
            Change::Length(length) => {
                self.batch.set_length(flow, &length);
                self.schedule.change(flow, |pace| pace.set_length(length));
            }
        }
    }

    fn each(&mut self, flows: &[usize], mut change: impl FnMut(&mut PortSchedule, usize)) {
        for flow in flows {
            change(&mut self.schedule, *flow);
            self.batch.publish(*flow, &self.schedule);
        }
    }
}
