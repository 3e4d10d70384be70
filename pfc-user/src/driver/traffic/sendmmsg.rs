//! Traffic by sendmmsg on a packet socket: a thread that sleeps, and sends in batches what has
//! become due.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle, Thread};
use std::time::Duration;

use pfc_ebpf::stamp::Stamp;
use pfc_ebpf::units::{LineRate, Nanos, Priority};

use super::{Burst, FlowControl, Sent, Source, TrafficError, TrafficPlan};
use crate::driver::kernel::packet::{AGAIN, BATCH, PacketError, PacketSocket};
use crate::driver::kernel::{clock, realtime};
use crate::pacing::pacer::{Paced, Pacer, Pauses, Token};
use crate::pacing::sent_ledger::{Accounted, SentLedger, WindowPlan};
use crate::test_frame::FrameTemplate;

/// Time from one look at what is due to the next, so that frames leave by the dozen and not by one.
const TICK: Nanos = 150_000;
/// After so long without sleep the thread lets others run, for [`REST`]: under SCHED_FIFO nothing
/// else would make it.
const LONGEST_RUN: Nanos = 1_000_000;
const REST: Nanos = 100_000;

/// Share of the largest burst kept back: while a late burst leaves, more becomes due, and the
/// account counts it to the burst.
const RESERVE: Nanos = 16;

/// A [`Source`] on any interface. Its thread ends when it is dropped.
pub struct Sendmmsg {
    orders: Option<Sender<Order>>,
    ended: Receiver<Result<(), PacketError>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    running: bool,
}

enum Order {
    Run(Burst),
    Report(Sender<Sent>),
}

/// State of the sender's thread.
struct Engine {
    socket: PacketSocket,
    flow_control: FlowControl,
    run: u16,
    flows: Vec<Flow>,
    pacer: Pacer,
    account: SentLedger,
    batch: [Slot; BATCH],
    stop: Arc<AtomicBool>,
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
#[derive(Default)]
struct Slot {
    token: Token,
    frame: Vec<u8>,
}

/// Result of sending a batch.
struct Outcome {
    /// Octets that left, by priority.
    octets: [u64; Priority::COUNT],
    /// The port had no room for the rest.
    full: bool,
}

impl Sendmmsg {
    /// Opens the socket in the calling thread's network namespace and starts the thread; nothing is
    /// sent yet.
    pub fn open(plan: &TrafficPlan<'_>, flow_control: FlowControl) -> Result<Self, TrafficError> {
        let stop = Arc::new(AtomicBool::new(false));
        let mut engine = Engine::new(plan, flow_control, stop.clone())?;
        let (orders, inbox) = channel();
        let (outbox, ended) = channel();
        let cpu = plan.cpu;
        let serve = move || {
            // Where neither is permitted frames may leave late, which the account tells.
            realtime::enter_fifo(realtime::SENDER);
            cpu.map(realtime::pin);
            for order in inbox {
                // The other side is gone only when it no longer wants to know.
                let _ = match order {
                    Order::Run(burst) => outbox.send(engine.run(burst)).is_ok(),
                    Order::Report(reply) => reply.send(engine.sent()).is_ok(),
                };
            }
        };
        let thread = thread::Builder::new()
            .name("traffic".into())
            .spawn(serve)
            .map_err(TrafficError::Spawn)?;
        Ok(Self {
            orders: Some(orders),
            ended,
            stop,
            thread: Some(thread),
            running: false,
        })
    }

    fn order(&self, order: Order) -> Result<(), TrafficError> {
        self.orders
            .as_ref()
            .and_then(|orders| orders.send(order).ok())
            .ok_or(TrafficError::Died)
    }

    fn unpark(&self) {
        self.thread
            .as_ref()
            .map(JoinHandle::thread)
            .map(Thread::unpark);
    }
}

impl Source for Sendmmsg {
    fn start(&mut self, burst: Burst) -> Result<(), TrafficError> {
        if self.running {
            return Err(TrafficError::Running);
        }
        self.stop.store(false, Ordering::Release);
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
        self.stop.store(true, Ordering::Release);
        self.unpark();
        if !self.running {
            return Ok(());
        }
        self.running = false;
        Ok(self.ended.recv().map_err(|_| TrafficError::Died)??)
    }

    fn report(&mut self) -> Result<Sent, TrafficError> {
        let (reply, sent) = channel();
        self.order(Order::Report(reply))?;
        sent.recv().map_err(|_| TrafficError::Died)
    }
}

impl Drop for Sendmmsg {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        self.orders = None;
        self.unpark();
        // A panic there has been reported on stderr by the thread itself.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

impl Engine {
    fn new(
        plan: &TrafficPlan<'_>,
        flow_control: FlowControl,
        stop: Arc<AtomicBool>,
    ) -> Result<Self, TrafficError> {
        let mut flows = Vec::with_capacity(plan.flows.len());
        let mut accounted = Vec::with_capacity(plan.flows.len());
        let mut longest = 0;
        for flow in plan.flows {
            let template = FrameTemplate::new(flow, &plan.addresses)?;
            let bits = LineRate::frame_bits(template.length());
            let paced = Paced {
                priority: flow.priority,
                rate: flow.rate,
                bits,
            };
            accounted.push(Accounted { id: flow.id, paced });
            longest = longest.max(template.length());
            flows.push(Flow {
                id: flow.id,
                priority: flow.priority,
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
            socket: PacketSocket::open(plan.interface)?,
            flow_control,
            run: plan.run,
            flows,
            pacer: Pacer::new(
                &paced,
                plan.line_rate,
                plan.max_burst - plan.max_burst / RESERVE,
            )?,
            account: SentLedger::new(accounted, plan.line_rate, windows),
            batch: std::array::from_fn(|_| Slot {
                token: Token::default(),
                frame: vec![0; longest],
            }),
            stop,
        })
    }

    fn sent(&self) -> Sent {
        self.account.sent(match &self.flow_control {
            FlowControl::Software(_) => "software (XDP)",
            FlowControl::Unaware(reason) => reason,
        })
    }

    /// Sends until the burst's end or an order to stop.
    fn run(&mut self, burst: Burst) -> Result<(), PacketError> {
        self.account.begin(burst.phase, burst.from);
        self.pacer.start(burst.from, burst.load);
        self.sleep(burst.from);
        let mut last = burst.from;
        let mut rested = burst.from;
        while !self.stop.load(Ordering::Acquire) {
            let now = clock::now().min(burst.to).max(last);
            self.account.running(now);
            let before = self.pauses();
            self.account.withheld(self.pacer.advance(now, &before));
            last = now;
            if now >= burst.to {
                break;
            }
            let count = self.fill();
            let Outcome { octets, full } = self.send(count, burst)?;
            self.look_back(&octets, &before);

            let idle_until = match self.pacer.next_due() {
                _ if full => clock::now() + AGAIN,
                // What is withheld may be set free at any time.
                Some(_) if count == BATCH => now,
                _ if before.iter().any(|pause| pause.until > now) => now + TICK,
                Some(due) => due.max(now + TICK),
                None => burst.to,
            };
            let here = clock::now();
            self.account.running(here.min(burst.to));
            if here < idle_until {
                self.sleep(idle_until.min(burst.to));
            } else if here >= rested + LONGEST_RUN {
                self.sleep(here + REST);
            } else {
                continue;
            }
            rested = clock::now();
        }
        Ok(())
    }

    /// Sleeps until `wake` or an order to stop.
    fn sleep(&mut self, wake: Nanos) {
        self.account.sleeping(wake);
        while clock::now() < wake && !self.stop.load(Ordering::Acquire) {
            clock::park_until(wake);
        }
    }

    fn pauses(&self) -> Pauses {
        match &self.flow_control {
            FlowControl::Software(source) => std::array::from_fn(|class| source.state(class)),
            FlowControl::Unaware(_) => Pauses::default(),
        }
    }

    /// Makes a batch of frames that are due, without their stamps; returns its length.
    fn fill(&mut self) -> usize {
        let mut count = 0;
        while count < BATCH
            && let Some(token) = self.pacer.take()
        {
            let slot = &mut self.batch[count];
            slot.token = token;
            let flow = &self.flows[token.flow];
            flow.template.copy_to(&mut slot.frame);
            count += 1;
        }
        count
    }

    /// Stamps and sends the first `count` frames of the batch. Those for which the port has no room
    /// did not leave: they are due as before, and get the sequence numbers that they had, for a gap
    /// would look like a loss. An error, such as a port that is down, is the end of the burst.
    fn send(&mut self, count: usize, burst: Burst) -> Result<Outcome, PacketError> {
        let mut octets = [0; Priority::COUNT];
        let time = clock::now();
        if count == 0 || time >= burst.to {
            return Ok(Outcome {
                octets,
                full: false,
            });
        }
        let batch = &mut self.batch[..count];
        for slot in &mut *batch {
            let flow = &mut self.flows[slot.token.flow];
            let stamp = Stamp {
                run: self.run,
                flow: flow.id,
                phase: burst.phase,
                sequence: flow.sequence,
                time,
            };
            flow.template.stamp(&mut slot.frame, &stamp);
            flow.sequence += 1;
        }
        let frames = batch.iter().map(|slot| slot.frame.as_slice());
        let outcome = self.socket.send_batch(frames);
        let left = outcome.as_ref().map_or(0, |outcome| outcome.left);
        let (sent, unsent) = batch.split_at(left);
        for slot in sent {
            let flow = slot.token.flow;
            self.account.left(flow, time);
            octets[self.flows[flow].priority.index()] += slot.frame.len() as u64;
        }
        for slot in unsent {
            self.flows[slot.token.flow].sequence -= 1;
        }
        let tokens = unsent.iter().rev().map(|slot| slot.token);
        self.pacer.give_back(tokens);
        let full = outcome?.refused;
        if full {
            self.account.waited();
        }
        Ok(Outcome { octets, full })
    }

    /// Counts what left of priorities that were paused meanwhile.
    fn look_back(&mut self, octets: &[u64; Priority::COUNT], before: &Pauses) {
        if octets.iter().all(|&octets| octets == 0) {
            return;
        }
        let after = self.pauses();
        let now = clock::now();
        for (priority, &octets) in octets.iter().enumerate().filter(|&(_, &octets)| octets > 0) {
            self.account
                .after_xoff(priority, octets, &before[priority], &after[priority], now);
        }
    }
}
