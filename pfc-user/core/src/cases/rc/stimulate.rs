//! The steps of a repetition, in time. Does no I/O of its own, so that a virtual bench can run it
//! too.

use std::net::IpAddr;

use pfc_ebpf::wire::roce;

use super::RcCase;
use super::transmission::Transmissions;
use crate::agent::protocol::{self, Channel, Device, Failure, OpenChannel, QueuePair, Read};
use crate::evidence::rc::{Completion, Packet, Phase, RcEvidence, Shown};
use crate::plan::Nanos;
use crate::plan::rc::RcPlan;
use crate::roce::build;

/// The READ of the control and of the test.
pub(super) const READ: u64 = 1;
/// The READ that is posted to the queue pair in error.
pub(super) const FLUSHED: u64 = 2;
/// Multiple of T_tr within which a DUT retries or completes (9.7.6.1.3).
pub(super) const LONGEST: Nanos = 4;
/// Longest wait in one question to the agent: an interruption is noticed after it.
const LONGEST_POLL: Nanos = 50_000_000;
/// Parts of T_tr that one such wait may take. It is the precision to which the time of an event is
/// known, and finer than the ticks that a kernel's timer may cut off.
const POLLS: Nanos = 64;
/// The agent counts its waits in whole ones.
const MILLISECOND: Nanos = 1_000_000;
/// Shortest wait for a completion that needs no timer.
pub(super) const PROMPT: Nanos = 1_000_000_000;

/// Reason why a repetition ended before its time.
#[derive(Debug)]
pub enum Stop {
    /// The user's wish.
    Interrupted,
    /// The DUT's agent could not do what was asked.
    Refused(Failure),
    /// The tester or its port failed.
    Failed(anyhow::Error),
}

impl From<anyhow::Error> for Stop {
    fn from(error: anyhow::Error) -> Self {
        Self::Failed(error)
    }
}

/// Losses on the tester's side since it began to listen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// Packets without a record.
    pub records: u64,
    /// Frames, by counter.
    pub drops: Vec<(String, u64)>,
}

/// The surroundings of the steps: time, the DUT's agent, and the silent responder.
pub trait Bench {
    /// Now.
    fn now(&self) -> Nanos;
    /// Records and drops packets for that queue pair of the tester from now on.
    fn listen(&mut self, queue_pair: u32) -> Result<(), Stop>;
    /// Packets since the last call, in their order.
    fn packets(&mut self) -> Result<Vec<Packet>, Stop>;
    /// Losses since [`Bench::listen`].
    fn losses(&mut self) -> Result<Losses, Stop>;
    /// Answers a READ request for the DUT's queue pair; the packet that left, or `None` where the
    /// packet is no READ request.
    fn answer(&mut self, request: &Packet, queue_pair: u32) -> Result<Option<Packet>, Stop>;
    /// Opens a queue pair of the DUT.
    fn open(&mut self, channel: &OpenChannel) -> Result<Channel, Stop>;
    /// Posts a READ to it.
    fn post_read(&mut self, read: &Read) -> Result<(), Stop>;
    /// Waits that long at the most for completions. Lets time pass; ends early with the first
    /// completion, or by the user's wish.
    fn poll(&mut self, wait: Nanos) -> Result<Vec<protocol::Completion>, Stop>;
    /// Reads the queue pair's attributes.
    fn query(&mut self) -> Result<QueuePair, Stop>;
    /// Gives the queue pair back.
    fn close(&mut self) -> Result<(), Stop>;
    /// Says what goes on.
    fn announce(&mut self, phase: &'static str);
}

/// The tester's port and the DUT's adapter, as they are known before the first step.
#[derive(Clone, Debug)]
pub struct PortContext {
    /// The DUT's adapter, by its agent.
    pub device: Device,
    /// The testbed's word on Automatic Path Migration.
    pub apm: Option<bool>,
    /// The tester's port, for people.
    pub port: String,
    /// The tester's address.
    pub tester: IpAddr,
    /// Seed of queue pair numbers and PSNs. It differs in each run, so that packets of an earlier
    /// run are told apart.
    pub seed: u64,
}

/// Runs one repetition of `case`; the evidence says if it was interrupted.
///
/// # Errors
/// If the tester or the DUT's agent fails. A tester that the DUT cannot reach is no error, as the
/// evidence records it.
pub fn run(
    bench: &mut dyn Bench,
    case: &RcCase,
    plan: &RcPlan,
    port: PortContext,
) -> anyhow::Result<RcEvidence> {
    let mut evidence = RcEvidence {
        plan: plan.clone(),
        device: port.device,
        apm: port.apm,
        port: port.port,
        control: None,
        test: None,
        flush: None,
        unreachable: None,
        interrupted: false,
        stalls: Vec::new(),
    };
    let mut steps = Steps {
        bench,
        plan,
        tester: port.tester,
        numbers: Numbers(port.seed),
    };
    match (case.stimulate)(&mut steps, &mut evidence) {
        Ok(()) => {}
        Err(Stop::Interrupted) => evidence.interrupted = true,
        Err(Stop::Refused(failure)) => {
            return Err(anyhow::Error::new(failure).context("the DUT's side failed"));
        }
        Err(Stop::Failed(error)) => return Err(error),
    }
    Ok(evidence)
}

/// A repetition under way.
pub(super) struct Steps<'s> {
    pub(super) bench: &'s mut dyn Bench,
    pub(super) plan: &'s RcPlan,
    pub(super) tester: IpAddr,
    pub(super) numbers: Numbers,
}

/// Queue pair of the tester and first PSN of the DUT.
pub(super) type Numbered = (u32, u32);

/// Numbers of 24 bits (SplitMix64).
pub(super) struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u32 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed >> 40) as u32
    }

    /// A queue pair that is neither of those, nor one that has a meaning of its own (0, 1,
    /// 0xffffff), and a PSN.
    pub(super) fn next_channel(&mut self, taken: &[Numbered]) -> Numbered {
        loop {
            let (queue_pair, psn) = (self.next(), self.next());
            if (2..0xff_ffff).contains(&queue_pair)
                && taken
                    .iter()
                    .all(|other| other.0 != queue_pair && other.1 != psn)
            {
                return (queue_pair, psn);
            }
        }
    }
}

/// A phase in which nothing has happened yet.
pub(super) fn phase((queue_pair, psn): Numbered, channel: Channel) -> Phase {
    Phase {
        channel,
        queue_pair,
        psn,
        posted: 0,
        refused: None,
        packets: Vec::new(),
        answers: Vec::new(),
        shown: Vec::new(),
        foreign: 0,
        lost: 0,
        drops: Vec::new(),
        completions: Vec::new(),
        until: 0,
        after: None,
    }
}

/// A phase under way. Every packet is added to it on arrival, so that an interrupted phase has them
/// too.
pub(super) struct Watch<'w> {
    pub(super) plan: &'w RcPlan,
    pub(super) phase: &'w mut Phase,
    pub(super) t_tr: Nanos,
    pub(super) transmissions: usize,
    sorted: Transmissions,
    /// Time of the last packet.
    pub(super) last: Option<Nanos>,
    /// Time of the last question for completions that the agent has answered. A phase ends by this
    /// time rather than by the clock: the next question brings everything that came while the
    /// tester or the agent stood still.
    pub(super) asked: Nanos,
    /// Until when there was no completion that has not been taken.
    pub(super) empty: Nanos,
}

impl<'w> Watch<'w> {
    pub(super) fn new(plan: &'w RcPlan, phase: &'w mut Phase, empty: Nanos) -> Self {
        let t_tr = t_tr(&phase.channel.attributes).unwrap_or(RcPlan::transport_timer(plan.timeout));
        Self {
            plan,
            phase,
            t_tr,
            transmissions: 0,
            sorted: Transmissions::default(),
            last: None,
            asked: 0,
            empty,
        }
    }

    /// Until when the DUT took to have the READ at the latest.
    pub(super) fn post(&mut self, bench: &mut dyn Bench, work_request: u64) -> Result<Nanos, Stop> {
        self.phase.posted = bench.now();
        let RcPlan {
            address,
            r_key,
            path_mtu,
            ..
        } = *self.plan;
        bench.post_read(&Read {
            work_request,
            address,
            r_key,
            length: path_mtu.into(),
        })?;
        Ok(bench.now())
    }

    /// Waits a little for completions.
    pub(super) fn poll(&mut self, bench: &mut dyn Bench) -> Result<(), Stop> {
        let wait = (self.t_tr / POLLS).clamp(1, LONGEST_POLL);
        let wait = if wait > MILLISECOND {
            wait - wait % MILLISECOND
        } else {
            wait
        };
        let asked = bench.now();
        let completions = bench.poll(wait)?;
        let (since, time) = (self.empty, bench.now());
        self.asked = asked;
        // An answer without completions comes when the wait is over.
        self.empty = if completions.is_empty() {
            asked.saturating_add(wait).min(time)
        } else {
            asked
        };
        self.phase
            .completions
            .extend(completions.into_iter().map(|completion| Completion {
                since,
                time,
                work_request: completion.work_request,
                status: completion.status,
                vendor_error: completion.vendor_error,
            }));
        self.phase.until = time;
        Ok(())
    }

    /// Takes the packets that came in, each with the number of its transmission, from 1. Each
    /// processor of the tester has its own records, so that they may not come in the order of time,
    /// and one of an earlier queue pair may still come.
    pub(super) fn take(&mut self, bench: &mut dyn Bench) -> Result<Vec<(usize, Packet)>, Stop> {
        let mut taken = Vec::new();
        for packet in bench.packets()? {
            let found = packet.frame().and_then(|frame| roce::parse(&*frame));
            let destination = found.map(|packet| packet.bth.destination);
            if destination.is_some_and(|destination| destination != self.phase.queue_pair) {
                self.phase.foreign += 1;
                continue;
            }
            let begins = self.sorted.begins(packet.time, found.as_ref(), self.t_tr);
            self.transmissions += usize::from(begins);
            self.last = self.last.max(Some(packet.time));
            let at = self
                .phase
                .packets
                .partition_point(|other| other.time <= packet.time);
            self.phase.packets.insert(at, packet.clone());
            taken.push((self.transmissions, packet));
        }
        Ok(taken)
    }

    /// Asks for the retry counter.
    pub(super) fn show(&mut self, bench: &mut dyn Bench) -> Result<(), Stop> {
        let asked = bench.now();
        if let Some(retries_left) = bench.query()?.retries_left {
            self.phase.shown.push(Shown {
                asked,
                answered: bench.now(),
                retries_left,
            });
        }
        Ok(())
    }

    pub(super) fn finish(mut self, bench: &mut dyn Bench) -> Result<(), Stop> {
        self.phase.until = bench.now();
        self.take(bench)?;
        let Losses { records, drops } = bench.losses()?;
        self.phase.lost = records;
        self.phase.drops = drops;
        self.phase.after = Some(bench.query()?);
        Ok(())
    }
}

/// T_tr by the attributes that the DUT shows; `None` where its timer never ends (time-out 0) or
/// there is no such time-out.
pub(super) fn t_tr(attributes: &QueuePair) -> Option<Nanos> {
    (1..=31)
        .contains(&attributes.timeout)
        .then(|| RcPlan::transport_timer(attributes.timeout))
}

/// The frame that answers `request`; `None` where it is no READ request that one packet answers.
pub fn answer_to(request: &Packet, queue_pair: u32) -> Option<Vec<u8>> {
    let frame = request.frame()?;
    let length = roce::parse(&*frame)?.reth(&*frame)?.length as usize;
    (length <= build::MAX_PAYLOAD)
        .then(|| build::read_response(&frame, queue_pair, &vec![PAYLOAD; length]))?
}

/// Payload of the answers.
const PAYLOAD: u8 = 0x5a;
