//! Traffic by sendmmsg on a packet socket: the flows of a case, paced and accounted for, as a
//! script of the one sender in userspace.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use pfc_ebpf::stamp::Stamp;
use pfc_ebpf::units::{Nanos, Priority};
use validator_core::evidence::pfc::Departure;
use validator_core::pacing::pacer::{Pacer, Pauses, Token};
use validator_core::pacing::sent_ledger::{Accounted, SentLedger, WindowPlan};
use validator_core::test_frame::FrameTemplate;

use super::{Burst, FlowControl, Sent, Source, TrafficError, TrafficPlan};
use crate::driver::kernel::packet::{PacketError, PacketSocket};
use crate::driver::kernel::{clock, realtime};
use crate::driver::sender::batch::{Batches, Script, Slot, TICK};
use crate::driver::sender::{Next, SenderThread, Setup};

/// Share of the largest burst kept back: while a late burst leaves, more becomes due, and the
/// account counts it to the burst.
const RESERVE: Nanos = 16;

/// A [`Source`] on any interface. Its thread ends when it is dropped.
pub struct Sendmmsg {
    thread: SenderThread<Batches<Traffic>>,
    ended: Receiver<Result<(), PacketError>>,
    running: bool,
    /// The reason why it is this sender, for the report.
    because: Option<String>,
}

enum Order {
    Run(Burst),
    Stop,
    /// Asks for the account, once no burst is running.
    Report(Sender<Sent>),
}

/// The flows of a case.
struct Traffic {
    flow_control: FlowControl,
    run: u16,
    flows: Vec<Flow>,
    pacer: Pacer,
    account: SentLedger,
    burst: Option<Running>,
    /// Says that a burst is over, and why.
    ended: Sender<Result<(), PacketError>>,
    /// Callers who wait for the burst's end to get the account.
    asked: Vec<Sender<Sent>>,
}

/// A burst, at the last look.
#[derive(Clone, Copy)]
struct Running {
    burst: Burst,
    looked: Nanos,
    pauses: Pauses,
}

struct Flow {
    id: u16,
    priority: Priority,
    template: FrameTemplate,
    /// Sequence number of the next frame. Counts only frames that left: a gap would look like a
    /// loss.
    sequence: u64,
}

/// A frame of the batch.
#[derive(Clone, Copy, Default)]
struct Note {
    token: Token,
    sequence: u64,
}

impl Sendmmsg {
    /// Opens the socket in the calling thread's network namespace and starts the thread; nothing is
    /// sent yet.
    pub fn open(plan: &TrafficPlan<'_>, flow_control: FlowControl) -> Result<Self, TrafficError> {
        let (outbox, ended) = channel();
        let traffic = Traffic::new(plan, flow_control, outbox)?;
        let work = Batches::new(PacketSocket::open(plan.interface)?, traffic, TICK);
        let setup = Setup {
            name: "traffic".into(),
            priority: Some(realtime::SENDER),
            cpu: plan.cpus.first().copied(),
        };
        Ok(Self {
            thread: SenderThread::start(setup, work).map_err(TrafficError::Spawn)?,
            ended,
            running: false,
            because: None,
        })
    }

    /// Sets the reason for this sender, for the report.
    pub fn because(self, reason: String) -> Self {
        Self {
            because: Some(reason),
            ..self
        }
    }

    /// Gives an order; its outcome is reported elsewhere.
    fn order(&self, order: Order) -> Result<(), TrafficError> {
        match self.thread.give(order) {
            Ok(_) => Ok(()),
            Err(_) => Err(TrafficError::Died),
        }
    }
}

impl Source for Sendmmsg {
    fn start(&mut self, burst: Burst) -> Result<(), TrafficError> {
        if self.running {
            return Err(TrafficError::Running);
        }
        self.order(Order::Run(burst))?;
        self.running = true;
        Ok(())
    }

    fn wait(&mut self, deadline: Nanos) -> Result<bool, TrafficError> {
        if !self.running {
            return Ok(true);
        }
        match self
            .ended
            .recv_timeout(Duration::from_nanos(deadline.saturating_sub(clock::now())))
        {
            Err(RecvTimeoutError::Timeout) => Ok(false),
            Err(RecvTimeoutError::Disconnected) => Err(TrafficError::Died),
            Ok(result) => {
                self.running = false;
                Ok(result.map(|()| true)?)
            }
        }
    }

    fn stop(&mut self) -> Result<(), TrafficError> {
        if !self.running {
            return Ok(());
        }
        self.running = false;
        self.order(Order::Stop)?;
        Ok(self.ended.recv().map_err(|_| TrafficError::Died)??)
    }

    fn report(&mut self) -> Result<Sent, TrafficError> {
        let (reply, sent) = channel();
        self.order(Order::Report(reply))?;
        let mut sent = sent.recv().map_err(|_| TrafficError::Died)?;
        if let Some(because) = &self.because {
            sent.report.method = format!("{} ({because})", sent.report.method);
        }
        Ok(sent)
    }
}

impl Traffic {
    fn new(
        plan: &TrafficPlan<'_>,
        flow_control: FlowControl,
        ended: Sender<Result<(), PacketError>>,
    ) -> Result<Self, TrafficError> {
        let mut flows = Vec::with_capacity(plan.flows.len());
        let mut accounted = Vec::with_capacity(plan.flows.len());
        for (id, paced, template) in plan.paced()? {
            accounted.push(Accounted { id, paced });
            flows.push(Flow {
                id,
                priority: paced.priority,
                template,
                sequence: 0,
            });
        }
        let paced: Vec<_> = accounted.iter().map(|flow| flow.paced).collect();
        let windows = WindowPlan {
            epoch: plan.epoch,
            width: plan.width,
            count: plan.windows,
        };
        Ok(Self {
            flow_control,
            run: plan.run,
            flows,
            pacer: Pacer::new(
                &paced,
                plan.line_rate,
                plan.max_burst - plan.max_burst / RESERVE,
            )?,
            account: SentLedger::new(accounted, plan.line_rate, windows),
            burst: None,
            ended,
            asked: Vec::new(),
        })
    }

    fn sent(&self) -> Sent {
        self.account.sent(match &self.flow_control {
            FlowControl::Software(_) => "software (XDP)",
            FlowControl::Unaware(reason) => reason,
        })
    }

    fn pauses(&self) -> Pauses {
        match &self.flow_control {
            FlowControl::Software(source) => std::array::from_fn(|class| source.state(class)),
            FlowControl::Unaware(_) => Pauses::default(),
        }
    }

    /// Ends the burst that is running, if one is.
    fn end(&mut self, result: Result<(), PacketError>) {
        if self.burst.take().is_none() {
            return;
        }
        // The receiver is gone only when it no longer wants to know.
        let _ = self.ended.send(result);
        for reply in std::mem::take(&mut self.asked) {
            let _ = reply.send(self.sent());
        }
    }

    /// Counts what left of priorities that were paused meanwhile.
    fn look_back(&mut self, octets: &[u64; Priority::COUNT], before: &Pauses) {
        let after = self.pauses();
        let now = clock::now();
        for (priority, &octets) in octets.iter().enumerate().filter(|&(_, &octets)| octets > 0) {
            self.account
                .after_xoff(priority, octets, &before[priority], &after[priority], now);
        }
    }
}

impl Script for Traffic {
    type Order = Order;
    type Note = Note;

    fn obey(&mut self, order: Order) {
        match order {
            Order::Run(burst) => {
                self.account.begin(burst.phase, burst.from);
                self.pacer.start(burst.from, burst.load);
                self.burst = Some(Running {
                    burst,
                    looked: burst.from,
                    pauses: Pauses::default(),
                });
            }
            Order::Stop => self.end(Ok(())),
            Order::Report(reply) if self.burst.is_some() => self.asked.push(reply),
            Order::Report(reply) => {
                let _ = reply.send(self.sent());
            }
        }
    }

    fn look(&mut self, now: Nanos) -> bool {
        let Some(Running { burst, looked, .. }) = self.burst.filter(|it| it.burst.from <= now)
        else {
            return false;
        };
        let pauses = self.pauses();
        let now = now.min(burst.to).max(looked);
        self.account.running(now);
        let stood = self.pacer.advance(now, &pauses);
        self.account.withheld(stood);
        self.burst = Some(Running {
            burst,
            looked: now,
            pauses,
        });
        if now >= burst.to {
            self.end(Ok(()));
        }
        self.burst.is_some()
    }

    fn make(&mut self, slot: &mut Slot<Note>, _: Nanos) -> bool {
        let Some(token) = self.pacer.take() else {
            return false;
        };
        let flow = &mut self.flows[token.flow];
        slot.note = Note {
            token,
            sequence: flow.sequence,
        };
        flow.sequence += 1;
        flow.template.copy_to(&mut slot.frame);
        true
    }

    fn stamp(&mut self, slots: &mut [Slot<Note>], time: Nanos) -> bool {
        let Some(Running { burst, .. }) = self.burst else {
            return false;
        };
        for slot in &mut *slots {
            let flow = &self.flows[slot.note.token.flow];
            let stamp = Stamp {
                run: self.run,
                flow: flow.id,
                phase: burst.phase,
                sequence: slot.note.sequence,
                time,
            };
            flow.template.stamp(&mut slot.frame, &stamp);
        }
        time < burst.to
    }

    fn give_back(&mut self, note: &Note) {
        self.flows[note.token.flow].sequence = note.sequence;
        self.pacer.give_back(std::iter::once(note.token));
    }

    fn left(&mut self, slots: &[Slot<Note>], departure: Departure) {
        let mut octets = [0; Priority::COUNT];
        for slot in slots {
            let flow = slot.note.token.flow;
            self.account.left(flow, departure.before);
            octets[self.flows[flow].priority.index()] += slot.frame.len() as u64;
        }
        if let Some(Running { pauses, .. }) = self.burst {
            self.look_back(&octets, &pauses);
        }
    }

    fn refused(&mut self) {
        self.account.waited();
    }

    /// Ends the burst for an error such as a port that is down.
    fn failed(&mut self, error: PacketError, _: &Note, _: Nanos) -> Next {
        self.end(Err(error));
        Next::Order
    }

    fn next(&mut self, now: Nanos) -> Option<Nanos> {
        let Running { burst, pauses, .. } = self.burst?;
        if now < burst.from {
            return Some(burst.from);
        }
        // Withheld frames may be set free at any time.
        if pauses.iter().any(|pause| pause.until > now) {
            return Some(now);
        }
        let due = self.pacer.next_due().unwrap_or(burst.to);
        Some(due.min(burst.to))
    }

    fn sleeping(&mut self, until: Nanos) {
        if let Some(Running { burst, .. }) = self.burst {
            self.account.running(clock::now().min(burst.to));
            self.account.sleeping(until.min(burst.to));
        }
    }
}
