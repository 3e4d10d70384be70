//! Flows that the port's thread lends to the kernel, and takes back.

use pfc_ebpf::units::{LineRate, Nanos, Priority, SECOND};
use validator_core::engine::queue::Holds;

use super::kernel::{Ended, KernelSender, Run};
use super::{Flows, SenderFlow};
use crate::driver::kernel::clock;

/// Time from one try to the next where the kernel does not send.
const FAILED: Nanos = SECOND;

/// The port's sender in the kernel, if it has one, and what decides what is offloaded to it.
pub struct Fast {
    pub sender: Option<Box<KernelSender>>,
    line_rate: LineRate,
    /// Queues of the flows.
    queues: Vec<Option<Priority>>,
    /// Nothing is to be offloaded before that.
    again: Nanos,
}

impl Fast {
    pub const fn new(line_rate: LineRate) -> Self {
        Self {
            sender: None,
            line_rate,
            queues: Vec::new(),
            again: 0,
        }
    }

    /// These are the flows, on a line of that rate.
    pub fn install(&mut self, flows: &[SenderFlow], line_rate: LineRate) {
        self.line_rate = line_rate;
        self.queues = flows.iter().map(|flow| flow.queue).collect();
    }

    /// Time at which the flows that are offloaded come back, if any are.
    pub fn until(&self) -> Option<Nanos> {
        self.sender.as_ref()?.until()
    }
}

/// A bit for each queue of which that is so.
fn queues(is: impl Fn(usize) -> bool) -> u64 {
    let queues = (0..Priority::COUNT).filter(|queue| is(*queue));
    queues.fold(0, |bits, queue| bits | 1 << queue)
}

impl Flows {
    /// Offloads flows to the kernel, if they want it and it can. The last look found these holds.
    pub fn hand_over(&mut self, now: Nanos, holds: &Holds) {
        let Some(sender) = &mut self.fast.sender else {
            return;
        };
        if sender.until().is_some() || now < self.fast.again || self.stalled.is_some() {
            return;
        }
        let line_rate = self.fast.line_rate;
        let kind = |flow, length| self.frames.kind(flow, length);
        let run = self.schedule.fast(now, line_rate, kind);
        self.fast.again = run.to;
        let flows = run.flows.iter().filter_map(|offloaded| {
            let queue = self.fast.queues[offloaded.flow]?;
            self.frames.fast(*offloaded, queue)
        });
        let flows: Vec<_> = flows.collect();
        if flows.is_empty() {
            return;
        }
        for flow in &flows {
            self.schedule.offload(flow.flow);
        }
        self.frames.offload(flows.iter().map(|flow| flow.queue));
        let holders = self.obeys.holders();
        sender.begin(Run {
            flows,
            line_rate,
            honoured: queues(|queue| holders[queue] != 0),
            held: queues(|queue| holds[queue].until > now),
            to: run.to,
        });
    }

    /// Takes flows back whose run is over, or is to be; returns the time when that is done.
    pub fn look_after(&mut self, now: Nanos) -> Nanos {
        match self.fast.until() {
            Some(until) if until <= now => self.recall(),
            Some(_) => {
                let sender = self.fast.sender.as_mut();
                let ended = sender.and_then(|sender| sender.ended());
                self.take_back(ended);
            }
            None => return now,
        }
        clock::now()
    }

    /// Takes all flows back, for an order; what is offloaded is thought over afterwards.
    pub fn recall(&mut self) {
        self.fast.again = 0;
        let ended = self.fast.sender.as_mut().and_then(|sender| sender.end());
        self.take_back(ended);
    }

    fn take_back(&mut self, ended: Option<Ended>) {
        let Some(ended) = ended else { return };
        let now = clock::now();
        // The time for which the flows were held was taken off what they owe.
        let holds = self.obeys.holds(&self.pauses.read(), now);
        self.schedule.hold(now, &holds);
        self.frames.take_back(now, &holds);
        for back in &ended.flows {
            self.frames.flows[back.flow].skipped += back.skipped;
            self.schedule.take_back(back.flow, back.left, back.due);
            self.frames.publish(back.flow, &self.schedule);
        }
        self.fast.again = if ended.failed { now + FAILED } else { 0 };
    }
}
