//! A repetition on real packets: the bench of drivers and agent, and the evidence that it collects.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use anyhow::Result;
use validator_core::cases::rc::RcCase;
use validator_core::cases::rc::stimulate::{self, Bench, Losses, PortContext, Stop, answer_to};
use validator_core::evidence::pfc::DropCounter;
use validator_core::evidence::rc::{Packet, RcEvidence};
use validator_core::plan::Nanos;
use validator_core::plan::rc::RcPlan;
use validator_core::verdict::Event;

use crate::agent::client::AgentError;
use crate::agent::protocol::{self, Channel, Failure, OpenChannel, QueuePair, Read};
use crate::config::{RcDut, RcTestbed};
use crate::driver::bringup::rc::RcPort;
use crate::driver::kernel::interrupt::Interrupt;
use crate::driver::kernel::{clock, link, packet};
use crate::driver::storm::PATIENCE;

/// Counters of frames that the tester's side of the link lost, by name.
pub type Counters = Vec<(String, u64)>;

/// The DUT, for people.
pub fn way(testbed: &RcTestbed) -> String {
    match &testbed.dut {
        RcDut::Sim { .. } => "the simulated requester".to_owned(),
        RcDut::Agent { agent, port, .. } => format!(
            "the agent at {agent}; its packets come in by {}",
            port.interface
        ),
    }
}

/// Runs one repetition of `case`; `apm` is the testbed's word on Automatic Path Migration. The
/// evidence says if it was interrupted. Whatever happens, the DUT's queue pair is given back.
///
/// # Errors
/// If the tester or the DUT's agent fails. A tester that the DUT cannot reach is no error, as the
/// evidence records it.
pub fn run(
    port: &mut RcPort,
    apm: Option<bool>,
    case: &RcCase,
    plan: &RcPlan,
    interrupt: &mut Interrupt,
    events: &mut dyn FnMut(Event),
) -> Result<RcEvidence> {
    let mut counters = port.loss_counters()?;
    let context = PortContext {
        device: port.agent.device().clone(),
        apm,
        port: port.name.clone(),
        tester: port.address,
        // The seed differs in each process, and is unpredictable.
        seed: RandomState::new().hash_one(clock::now()),
    };
    let mut bench = LiveBench {
        port,
        counters: &mut counters,
        interrupt,
        events,
        before: Vec::new(),
    };
    let done = stimulate::run(&mut bench, case, plan, context);
    done.map(|evidence| RcEvidence {
        stalls: bench.port.stalls(),
        ..evidence
    })
}

struct LiveBench<'b> {
    port: &'b mut RcPort,
    /// Reads the counters of frames that were lost.
    counters: &'b mut dyn FnMut() -> Result<Counters>,
    interrupt: &'b mut Interrupt,
    events: &'b mut dyn FnMut(Event),
    /// The counters when it began to listen.
    before: Counters,
}

/// A refusal by the agent can be evidence; a connection that fails cannot.
fn of_agent(error: AgentError) -> Stop {
    match error.failure() {
        Some(&Failure { kind, .. }) => Stop::Refused(Failure {
            kind,
            message: error.to_string(),
        }),
        None => Stop::Failed(error.into()),
    }
}

fn of_driver(error: impl Into<anyhow::Error>) -> Stop {
    Stop::Failed(error.into().context("the tester's side failed"))
}

impl Bench for LiveBench<'_> {
    fn now(&self) -> Nanos {
        clock::now()
    }

    fn listen(&mut self, queue_pair: u32) -> Result<(), Stop> {
        self.before = (self.counters)()?;
        self.port.responder.configure(queue_pair).map_err(of_driver)
    }

    fn packets(&mut self) -> Result<Vec<Packet>, Stop> {
        let frames = self.port.responder.records().map_err(of_driver)?;
        Ok(frames
            .into_iter()
            .map(|frame| Packet::new(frame.time, frame.length, &frame.octets))
            .collect())
    }

    fn losses(&mut self) -> Result<Losses, Stop> {
        let own = self.port.responder.counters().map_err(of_driver)?;
        let records = own.lost;
        let after = (self.counters)()?;
        let on_purpose = |name: &str| {
            if self.port.own_drops == Some(name) {
                own.dropped
            } else {
                0
            }
        };
        let drops = link::drop_rises(&self.port.name, &self.before, &after)
            .into_iter()
            .map(|DropCounter { counter, rise, .. }| {
                let rise = rise.saturating_sub(on_purpose(&counter));
                (counter, rise)
            })
            .filter(|(_, rise)| *rise > 0)
            .collect();
        Ok(Losses { records, drops })
    }

    fn answer(&mut self, request: &Packet, queue_pair: u32) -> Result<Option<Packet>, Stop> {
        let Some(answer) = answer_to(request, queue_pair) else {
            return Ok(None);
        };
        let sent = packet::when_there_is_room(PATIENCE, || {
            let time = clock::now();
            self.port.socket.send(&answer)?;
            Ok(time)
        });
        let (time, waits) = sent.map_err(of_driver)?;
        if waits > 0 {
            (self.events)(Event::Note(packet::waited(
                &self.port.name,
                "an answer",
                waits,
            )));
        }
        Ok(Some(Packet::new(time, answer.len() as u32, &answer)))
    }

    fn open(&mut self, channel: &OpenChannel) -> Result<Channel, Stop> {
        self.port.agent.open(channel).map_err(of_agent)
    }

    fn post_read(&mut self, read: &Read) -> Result<(), Stop> {
        self.port.agent.post_read(read).map_err(of_agent)
    }

    fn poll(&mut self, wait: Nanos) -> Result<Vec<protocol::Completion>, Stop> {
        if self.interrupt.seen() {
            return Err(Stop::Interrupted);
        }
        self.port
            .agent
            .poll(Duration::from_nanos(wait))
            .map_err(of_agent)
    }

    fn query(&mut self) -> Result<QueuePair, Stop> {
        self.port.agent.query().map_err(of_agent)
    }

    fn close(&mut self) -> Result<(), Stop> {
        self.port.agent.close().map_err(of_agent)
    }

    fn announce(&mut self, phase: &'static str) {
        (self.events)(Event::PhaseBegins { phase });
    }
}
