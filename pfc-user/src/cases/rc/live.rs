//! A repetition on real packets: the bench of drivers and agent, and the evidence that it collects.

use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;
use std::time::Duration;

use anyhow::Result;

use super::stimulate::{self, Bench, Losses, Stop, Surroundings};
use crate::agent::client::{Agent, AgentError};
use crate::agent::protocol::{self, Channel, Failure, OpenChannel, QueuePair, Read};
use crate::case::Event;
use crate::driver::bpf::responder::Responder;
use crate::driver::kernel::packet::{self, PacketSocket};
use crate::driver::kernel::{clock, link};
use crate::driver::storm::PATIENCE;
use crate::evidence::pfc::DropCounter;
use crate::evidence::rc::{Packet, RcEvidence};
use crate::plan::Nanos;
use crate::plan::rc::RcPlan;
use crate::roce::build;

/// Counters of frames that the tester's side of the link lost, by name.
pub type Counters = Vec<(String, u64)>;

/// Everything that a repetition needs beside its plan.
pub struct Live<'l> {
    /// What the testbed says of Automatic Path Migration.
    pub apm: Option<bool>,
    /// The tester's address.
    pub address: IpAddr,
    /// The DUT's agent.
    pub agent: &'l mut Agent,
    /// The XDP program on the tester's port.
    pub responder: &'l mut Responder,
    /// Sends the answers.
    pub socket: &'l PacketSocket,
    /// The counter in which the link's driver counts what the XDP program drops on purpose, where it does.
    pub own_drops: Option<&'static str>,
    /// Reads the counters of frames that were lost.
    pub counters: &'l mut dyn FnMut() -> Result<Counters>,
    /// The tester's port, for people: interface, and how the XDP program is attached.
    pub port: String,
    /// Whether the user wishes to stop; asked at each wait.
    pub interrupted: &'l mut dyn FnMut() -> bool,
    /// Where events go.
    pub events: &'l mut dyn FnMut(Event),
}

/// Runs one repetition; the evidence says whether it was interrupted. Whatever happens, the DUT's queue pair is given back.
///
/// # Errors
/// When the tester or the DUT's agent fails. A tester that the DUT cannot reach is no error: the evidence says so.
pub fn run(live: &mut Live<'_>, plan: &RcPlan) -> Result<RcEvidence> {
    let surroundings = Surroundings {
        device: live.agent.device().clone(),
        apm: live.apm,
        port: live.port.clone(),
        tester: live.address,
        // Another one in each process, and unpredictable.
        seed: RandomState::new().hash_one(clock::now()),
    };
    stimulate::run(
        &mut LiveBench {
            live,
            before: Vec::new(),
        },
        plan,
        surroundings,
    )
}

struct LiveBench<'b, 'l> {
    live: &'b mut Live<'l>,
    /// The counters when it began to listen.
    before: Counters,
}

/// What the agent itself says can be evidence; a connection that fails cannot.
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

impl Bench for LiveBench<'_, '_> {
    fn now(&self) -> Nanos {
        clock::now()
    }

    fn listen(&mut self, queue_pair: u32) -> Result<(), Stop> {
        self.before = (self.live.counters)()?;
        self.live.responder.configure(queue_pair).map_err(of_driver)
    }

    fn packets(&mut self) -> Result<Vec<Packet>, Stop> {
        let frames = self.live.responder.records().map_err(of_driver)?;
        Ok(frames
            .into_iter()
            .map(|frame| Packet::new(frame.time, frame.length, &frame.octets))
            .collect())
    }

    fn losses(&mut self) -> Result<Losses, Stop> {
        let own = self.live.responder.counters().map_err(of_driver)?;
        let records = own.lost;
        let after = (self.live.counters)()?;
        let on_purpose = |name: &str| {
            if self.live.own_drops == Some(name) {
                own.dropped
            } else {
                0
            }
        };
        let drops = link::drop_rises(&self.live.port, &self.before, &after)
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
            self.live.socket.send(&answer)?;
            Ok(time)
        });
        let (time, _) = sent.map_err(of_driver)?;
        Ok(Some(Packet::new(time, answer.len() as u32, &answer)))
    }

    fn open(&mut self, channel: &OpenChannel) -> Result<Channel, Stop> {
        self.live.agent.open(channel).map_err(of_agent)
    }

    fn post_read(&mut self, read: &Read) -> Result<(), Stop> {
        self.live.agent.post_read(read).map_err(of_agent)
    }

    fn poll(&mut self, wait: Nanos) -> Result<Vec<protocol::Completion>, Stop> {
        if (self.live.interrupted)() {
            return Err(Stop::Interrupted);
        }
        self.live
            .agent
            .poll(Duration::from_nanos(wait))
            .map_err(of_agent)
    }

    fn query(&mut self) -> Result<QueuePair, Stop> {
        self.live.agent.query().map_err(of_agent)
    }

    fn close(&mut self) -> Result<(), Stop> {
        self.live.agent.close().map_err(of_agent)
    }

    fn announce(&mut self, phase: &'static str) {
        (self.live.events)(Event::PhaseBegins { phase });
    }
}

/// The frame that answers `request`; `None` where it is no READ request that one packet answers.
pub fn answer_to(request: &Packet, queue_pair: u32) -> Option<Vec<u8>> {
    let frame = request.frame()?;
    let length = pfc_ebpf::wire::roce::parse(&*frame)?.reth(&*frame)?.length;
    if length > MAX_ANSWER {
        return None;
    }
    build::read_response(&frame, queue_pair, &vec![PAYLOAD; length as usize]).ok()
}

/// Largest path MTU.
const MAX_ANSWER: u32 = 4096;
/// What the answers carry.
const PAYLOAD: u8 = 0x5a;
