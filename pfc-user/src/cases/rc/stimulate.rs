//! The steps of a repetition, in time. Does no I/O of its own, so that a virtual bench can run it too.

use std::net::IpAddr;

use pfc_ebpf::wire::roce;

use super::transmission;
use crate::agent::protocol::{
    self, Channel, Device, Failure, FailureKind, OpenChannel, QueuePair, Read, State,
};
use crate::evidence::rc::{Completion, Packet, Phase, RcEvidence, Shown};
use crate::plan::Nanos;
use crate::plan::rc::RcPlan;

/// The READ of the control and of the test.
pub(super) const READ: u64 = 1;
/// The READ that is posted to the queue pair in error.
pub(super) const FLUSHED: u64 = 2;
/// A DUT retries or completes within so many T_tr (9.7.6.1.3).
pub(super) const LONGEST: Nanos = 4;
/// Longest wait in one question to the agent: an interruption is noticed after it.
const LONGEST_POLL: Nanos = 50_000_000;
/// Parts of T_tr that one such wait may take: what is heard after it is known this closely, which is less than the ticks that a
/// kernel's timer may cut off.
const POLLS: Nanos = 64;
/// The agent counts its waits in whole ones.
const MILLISECOND: Nanos = 1_000_000;
/// Shortest wait for a completion that needs no timer.
const PROMPT: Nanos = 1_000_000_000;

/// Why a repetition ended before its time.
#[derive(Debug)]
pub enum Stop {
    /// The user's wish.
    Interrupted,
    /// The DUT's agent could not do what was asked.
    Refused(Failure),
    /// The tester or its surroundings failed.
    Failed(anyhow::Error),
}

impl From<anyhow::Error> for Stop {
    fn from(error: anyhow::Error) -> Self {
        Self::Failed(error)
    }
}

/// What was lost on the tester's side since it listens.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// Packets without a record.
    pub records: u64,
    /// Frames, by counter.
    pub drops: Vec<(String, u64)>,
}

/// What the steps need: time, the DUT's agent, and the silent responder.
pub trait Bench {
    /// Now.
    fn now(&self) -> Nanos;
    /// Records and drops packets for that queue pair of the tester from now on.
    fn listen(&mut self, queue_pair: u32) -> Result<(), Stop>;
    /// Packets since the last call, in their order.
    fn packets(&mut self) -> Result<Vec<Packet>, Stop>;
    /// What was lost since [`Bench::listen`].
    fn losses(&mut self) -> Result<Losses, Stop>;
    /// Answers a READ request for the DUT's queue pair; the packet that left, or `None` where the packet is no READ request.
    fn answer(&mut self, request: &Packet, queue_pair: u32) -> Result<Option<Packet>, Stop>;
    /// Opens a queue pair of the DUT.
    fn open(&mut self, channel: &OpenChannel) -> Result<Channel, Stop>;
    /// Posts a READ to it.
    fn post_read(&mut self, read: &Read) -> Result<(), Stop>;
    /// Waits that long at the most for completions. Lets time pass; ends early with the first completion, or by the user's wish.
    fn poll(&mut self, wait: Nanos) -> Result<Vec<protocol::Completion>, Stop>;
    /// Reads the queue pair's attributes.
    fn query(&mut self) -> Result<QueuePair, Stop>;
    /// Gives the queue pair back.
    fn close(&mut self) -> Result<(), Stop>;
    /// Says what goes on.
    fn announce(&mut self, phase: &'static str);
}

/// What is known before the first step.
#[derive(Clone, Debug)]
pub struct Surroundings {
    /// The DUT's adapter, by its agent.
    pub device: Device,
    /// What the testbed says of Automatic Path Migration.
    pub apm: Option<bool>,
    /// The tester's port, for people.
    pub port: String,
    /// The tester's address.
    pub tester: IpAddr,
    /// Where queue pair numbers and PSNs come from: another in each run, so that what is left of an earlier one is told apart.
    pub seed: u64,
}

/// Runs the steps of `plan`; the evidence says whether they were interrupted.
///
/// # Errors
/// When the tester or the DUT's agent fails. A tester that the DUT cannot reach is no error: the evidence says so.
pub fn run(
    bench: &mut impl Bench,
    plan: &RcPlan,
    surroundings: Surroundings,
) -> anyhow::Result<RcEvidence> {
    let Surroundings {
        device,
        apm,
        port,
        tester,
        seed,
    } = surroundings;
    // Where the document does not apply, or nobody says whether it does, nothing would be decided.
    let applies = apm.or(device.apm) == Some(false);
    let mut evidence = RcEvidence {
        plan: plan.clone(),
        device,
        apm,
        port,
        control: None,
        test: None,
        flush: None,
        unreachable: None,
        interrupted: false,
    };
    if !applies {
        return Ok(evidence);
    }
    match (Steps {
        bench,
        plan,
        tester,
    })
    .run(&mut Numbers(seed), &mut evidence)
    {
        Ok(()) => {}
        Err(Stop::Interrupted) => evidence.interrupted = true,
        Err(Stop::Refused(failure)) => {
            return Err(anyhow::Error::new(failure).context("the DUT's side failed"));
        }
        Err(Stop::Failed(error)) => return Err(error),
    }
    Ok(evidence)
}

/// Queue pair of the tester and first PSN of the DUT.
type Numbered = (u32, u32);

/// Numbers of 24 bits (SplitMix64).
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u32 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed >> 40) as u32
    }

    /// A queue pair that is neither of those, nor one that has a meaning of its own (0, 1, 0xffffff), and a PSN.
    fn next_channel(&mut self, taken: &[Numbered]) -> Numbered {
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

fn phase((queue_pair, psn): Numbered, channel: Channel) -> Phase {
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

struct Steps<'s, B> {
    bench: &'s mut B,
    plan: &'s RcPlan,
    tester: IpAddr,
}

impl<B: Bench> Steps<'_, B> {
    fn run(&mut self, numbers: &mut Numbers, done: &mut RcEvidence) -> Result<(), Stop> {
        self.bench.announce("positive control");
        let first = numbers.next_channel(&[]);
        let Some(channel) = self.open(first, done)? else {
            return Ok(());
        };
        let outcome = self.control(done.control.insert(phase(first, channel)));
        self.close(outcome)?;
        // Without a packet nothing shows that the DUT is at the other end, and the test could show no more.
        if done
            .control
            .as_ref()
            .is_some_and(|control| control.packets.is_empty())
        {
            return Ok(());
        }
        self.bench.announce("test");
        let second = numbers.next_channel(&[first]);
        let Some(channel) = self.open(second, done)? else {
            return Ok(());
        };
        let outcome = self.test_and_flush(second, channel, done);
        self.close(outcome)
    }

    /// Initialisation 1 to 3; `None` if the DUT does not reach the tester.
    fn open(
        &mut self,
        (queue_pair, psn): Numbered,
        done: &mut RcEvidence,
    ) -> Result<Option<Channel>, Stop> {
        self.bench.listen(queue_pair)?;
        let channel = OpenChannel {
            path_mtu: self.plan.path_mtu,
            retry_count: self.plan.retry_count,
            timeout: self.plan.timeout,
            remote: self.tester,
            remote_queue_pair: queue_pair,
            psn,
            // The tester sends nothing but answers, which have the PSN of what they answer.
            remote_psn: psn,
        };
        match self.bench.open(&channel) {
            Ok(channel) => Ok(Some(channel)),
            Err(Stop::Refused(failure)) if failure.kind == FailureKind::Neighbour => {
                done.unreachable = Some(failure.message);
                Ok(None)
            }
            Err(stop) => Err(stop),
        }
    }

    /// Step 13. Whatever else went wrong, the DUT's queue pair is given back.
    fn close(&mut self, outcome: Result<(), Stop>) -> Result<(), Stop> {
        let closed = self.bench.close();
        outcome.and(closed)
    }

    /// Drops some requests, then answers.
    fn control(&mut self, phase: &mut Phase) -> Result<(), Stop> {
        let mut watch = Watch::new(self.plan, phase, self.bench.now());
        let posted = watch.post(self.bench, READ)?;
        let idle = 2 * LONGEST * watch.t_tr;
        let longest = phase_end(posted, idle * self.plan.requests() as Nanos);
        loop {
            for (transmission, packet) in watch.take(self.bench)? {
                if transmission > usize::from(self.plan.control_drops) {
                    let answer = self.bench.answer(&packet, watch.phase.channel.queue_pair)?;
                    watch.phase.answers.extend(answer);
                }
            }
            let end = longest.min(phase_end(watch.last.unwrap_or(posted), idle));
            if !watch.phase.completions.is_empty() || watch.asked >= end {
                break;
            }
            watch.poll(self.bench)?;
        }
        watch.finish(self.bench)
    }

    fn test_and_flush(
        &mut self,
        numbered: Numbered,
        channel: Channel,
        done: &mut RcEvidence,
    ) -> Result<(), Stop> {
        let test = done.test.insert(phase(numbered, channel.clone()));
        let empty = self.test(test)?;
        if test.after.is_none_or(|after| after.state != State::Error) {
            // On a queue pair that is not in error a READ is not flushed.
            return Ok(());
        }
        self.bench.announce("flush");
        self.flush(done.flush.insert(phase(numbered, channel)), empty)
    }

    /// Steps 5 to 12: drops all requests. Until when there was no completion that has not been taken.
    fn test(&mut self, phase: &mut Phase) -> Result<Nanos, Stop> {
        let requests = self.plan.requests();
        let mut watch = Watch::new(self.plan, phase, self.bench.now());
        let shows = watch.phase.channel.attributes.retries_left.is_some();
        let posted = watch.post(self.bench, READ)?;
        let t_tr = watch.t_tr;
        let longest = phase_end(posted, (requests as Nanos + 1) * LONGEST * t_tr);
        loop {
            let packets = watch.take(self.bench)?;
            if shows && !packets.is_empty() {
                watch.show(self.bench)?;
            }
            let (asked, latest) = (watch.asked, watch.last.unwrap_or(posted));
            let over = match watch.phase.completions.first() {
                // Time for one more request, and for one more completion.
                Some(first) => {
                    asked >= phase_end(latest, LONGEST * t_tr).max(phase_end(first.time, t_tr))
                }
                None => asked >= longest && asked >= phase_end(latest, 2 * LONGEST * t_tr),
            };
            let too_many = watch.transmissions > requests && asked >= longest;
            if over || too_many {
                break;
            }
            watch.poll(self.bench)?;
        }
        let empty = watch.empty;
        watch.finish(self.bench)?;
        Ok(empty)
    }

    /// The remark of step 13. What is left of the test may complete only now, but since `empty`.
    fn flush(&mut self, phase: &mut Phase, empty: Nanos) -> Result<(), Stop> {
        let mut watch = Watch::new(self.plan, phase, empty);
        match watch.post(self.bench, FLUSHED) {
            Ok(posted) => {
                let end = phase_end(posted, watch.t_tr.max(PROMPT));
                let flushed = |phase: &Phase| {
                    phase
                        .completions
                        .iter()
                        .any(|completion| completion.work_request == FLUSHED)
                };
                while watch.asked < end && !flushed(watch.phase) {
                    watch.poll(self.bench)?;
                }
            }
            Err(Stop::Refused(failure)) => watch.phase.refused = Some(failure.message),
            Err(stop) => return Err(stop),
        }
        watch.finish(self.bench)
    }
}

fn phase_end(from: Nanos, span: Nanos) -> Nanos {
    from.saturating_add(span)
}

/// A phase under way: what comes in is put into it at once, so that it is there also if it is interrupted.
struct Watch<'w> {
    plan: &'w RcPlan,
    phase: &'w mut Phase,
    t_tr: Nanos,
    transmissions: usize,
    /// When the last packet came.
    last: Option<Nanos>,
    /// When the agent was last asked for completions, of what it has answered. A phase ends by this time rather than by the clock: what
    /// came while the tester or the agent stood still is heard by the next question.
    asked: Nanos,
    /// Until when there was no completion that has not been taken.
    empty: Nanos,
}

impl<'w> Watch<'w> {
    fn new(plan: &'w RcPlan, phase: &'w mut Phase, empty: Nanos) -> Self {
        let t_tr = t_tr(&phase.channel.attributes).unwrap_or(RcPlan::transport_timer(plan.timeout));
        Self {
            plan,
            phase,
            t_tr,
            transmissions: 0,
            last: None,
            asked: 0,
            empty,
        }
    }

    /// Until when the DUT took to have the READ at the latest.
    fn post(&mut self, bench: &mut impl Bench, work_request: u64) -> Result<Nanos, Stop> {
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
    fn poll(&mut self, bench: &mut impl Bench) -> Result<(), Stop> {
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
            phase_end(asked, wait).min(time)
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

    /// Takes the packets that came in, each with the number of its transmission, from 1. Each processor of the tester has its own
    /// records, so that they may not come in the order of time, and one of an earlier queue pair may still come.
    fn take(&mut self, bench: &mut impl Bench) -> Result<Vec<(usize, Packet)>, Stop> {
        let mut taken = Vec::new();
        for packet in bench.packets()? {
            let destination = packet
                .frame()
                .and_then(|frame| roce::parse(&*frame))
                .map(|packet| packet.bth.destination);
            if destination.is_some_and(|destination| destination != self.phase.queue_pair) {
                self.phase.foreign += 1;
                continue;
            }
            self.transmissions +=
                usize::from(transmission::begins(self.last, packet.time, self.t_tr));
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
    fn show(&mut self, bench: &mut impl Bench) -> Result<(), Stop> {
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

    fn finish(mut self, bench: &mut impl Bench) -> Result<(), Stop> {
        self.phase.until = bench.now();
        self.take(bench)?;
        let Losses { records, drops } = bench.losses()?;
        self.phase.lost = records;
        self.phase.drops = drops;
        self.phase.after = Some(bench.query()?);
        Ok(())
    }
}

/// T_tr by the attributes that the DUT shows; `None` where its timer never ends (time-out 0) or there is no such time-out.
pub(super) fn t_tr(attributes: &QueuePair) -> Option<Nanos> {
    (1..=31)
        .contains(&attributes.timeout)
        .then(|| RcPlan::transport_timer(attributes.timeout))
}
