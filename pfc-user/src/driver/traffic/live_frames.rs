//! Traffic made in the kernel: an XDP program of ours, run on live frames, writes, paces and counts
//! the frames.
//!
//! A worker is a thread on a CPU of its own, which the program keeps busy for the whole of a burst;
//! the flows are dealt out to the workers. It is no SCHED_FIFO thread: one that does not sleep is
//! stopped for 50 ms a second. The storm's threads, which are, get the CPU between two batches.

mod ledger;
mod prepared;
mod worker;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use pfc_ebpf::abi::generate::LONGEST;
use pfc_ebpf::units::Nanos;

use self::ledger::Ledger;
use self::prepared::Prepared;
use self::worker::{Job, Worker};
use super::{Burst, Sent, Source, TrafficError, TrafficPlan};
use crate::driver::bpf::CaseGenerator;
use crate::driver::kernel::clock;
use crate::driver::kernel::link;
use crate::driver::kernel::netns::Namespace;
use crate::driver::kernel::packet::PacketError;
use crate::driver::sender::Died;

/// Octets of the Ethernet header and a tag: what a frame may have beyond the MTU.
const BEYOND_MTU: usize = 18;

/// A [`Source`] on interfaces that take frames of XDP. Its threads end when it is dropped.
pub struct LiveFrames {
    generator: Arc<CaseGenerator>,
    prepared: Prepared,
    workers: Vec<Worker>,
    ended: Receiver<Result<(), TrafficError>>,
    stop: Arc<AtomicBool>,
    /// The burst, and how many workers are still at it.
    running: Option<(Burst, usize)>,
    /// The error that ended the burst early.
    failed: Option<TrafficError>,
    ledger: Ledger,
}

/// Longest frame that leaves on an interface of that MTU, without FCS.
pub fn longest(mtu: u32) -> usize {
    LONGEST.min(mtu as usize + BEYOND_MTU)
}

/// Index and MTU of an interface that is up.
fn usable_port(interface: &str) -> Result<(u32, u32), TrafficError> {
    let namespace = Namespace::current().map_err(link::LinkError::from)?;
    let state = link::state(&namespace, interface)?;
    if !state.up {
        return Err(PacketError::Down {
            interface: interface.to_owned(),
        }
        .into());
    }
    Ok((state.index, state.mtu))
}

/// An error where the maps of the generator are too small for the plan.
fn check_room(plan: &TrafficPlan<'_>, generator: &CaseGenerator) -> Result<(), TrafficError> {
    let room = |what, found, max| {
        if found <= max {
            Ok(())
        } else {
            Err(TrafficError::Room { what, max, found })
        }
    };
    room("flows", plan.flows.len(), generator.flows.entries())?;
    room("windows", plan.windows, generator.own.offered.entries())
}

impl LiveFrames {
    /// Starts a thread on each of `cpus`; nothing is sent yet. To be called in the network
    /// namespace of the tx port, whose program `generator` is of. PFC that the port receives is
    /// honoured unless `unaware` says why not.
    pub fn open(
        plan: &TrafficPlan<'_>,
        generator: Arc<CaseGenerator>,
        cpus: &[usize],
        unaware: Option<String>,
    ) -> Result<Self, TrafficError> {
        let interface = plan.interface.to_owned();
        let (port, mtu) = usable_port(plan.interface)?;
        check_room(plan, &generator)?;
        // A worker without a flow would have nothing to send.
        let cpus = &cpus[..cpus.len().min(plan.flows.len().max(1))];
        let prepared = Prepared::new(plan, cpus, unaware.is_none())?;
        if prepared.frame.len() > longest(mtu) {
            return Err(PacketError::TooLong {
                interface,
                length: prepared.frame.len(),
            }
            .into());
        }
        let ledger = Ledger::new(plan, &generator, unaware);
        let stop = Arc::new(AtomicBool::new(false));
        let (outbox, ended) = channel();
        let start = |(index, &cpu): (usize, &usize)| {
            let job = Job {
                generator: generator.clone(),
                interface: interface.clone(),
                port,
                cpu,
                leads: index == 0,
                batch: prepared.shares[index].batch,
                frame: prepared.frame.clone(),
                stop: stop.clone(),
                history: ledger.history(),
                ended: outbox.clone(),
            };
            worker::start(job)
        };
        let workers = cpus
            .iter()
            .enumerate()
            .map(start)
            .collect::<Result<_, _>>()?;
        Ok(Self {
            generator,
            prepared,
            workers,
            ended,
            stop,
            running: None,
            failed: None,
            ledger,
        })
    }

    /// Readies the program for a burst that nobody sends: for benchmarks, which run it themselves.
    pub fn prepare(&mut self, burst: Burst) {
        self.prepared.begin(burst, &self.generator);
    }

    /// Waits for the workers, for `deadline` at the longest; `false` where that came first.
    fn join(&mut self, deadline: Option<Nanos>) -> Result<bool, TrafficError> {
        while let Some((burst, workers)) = self.running {
            let result = match deadline {
                None => self
                    .ended
                    .recv()
                    .map_err(|_| RecvTimeoutError::Disconnected),
                Some(deadline) => self
                    .ended
                    .recv_timeout(Duration::from_nanos(deadline.saturating_sub(clock::now()))),
            };
            match result {
                Err(RecvTimeoutError::Timeout) => return Ok(false),
                Err(RecvTimeoutError::Disconnected) => return Err(TrafficError::Died),
                Ok(Ok(())) => {}
                Ok(Err(error)) => {
                    self.halt();
                    self.failed.get_or_insert(error);
                }
            }
            self.running = (workers > 1).then_some((burst, workers - 1));
            if self.running.is_none() {
                self.ledger
                    .add(burst, &self.generator, &mut self.prepared)?;
            }
        }
        self.failed.take().map_or(Ok(true), Err)
    }

    /// Has the program let nothing more go, and the workers end.
    fn halt(&self) {
        self.generator.stop();
        self.stop.store(true, Ordering::Release);
        self.workers.iter().for_each(Worker::unpark);
    }
}

impl Source for LiveFrames {
    fn start(&mut self, burst: Burst) -> Result<(), TrafficError> {
        if self.running.is_some() {
            return Err(TrafficError::Running);
        }
        self.stop.store(false, Ordering::Release);
        self.prepared.begin(burst, &self.generator);
        for worker in &self.workers {
            // Its end is told elsewhere.
            worker.give(burst).map_err(|Died| TrafficError::Died)?;
        }
        self.running = Some((burst, self.workers.len()));
        Ok(())
    }

    fn wait(&mut self, deadline: Nanos) -> Result<bool, TrafficError> {
        self.join(Some(deadline))
    }

    fn stop(&mut self) -> Result<(), TrafficError> {
        if self.running.is_some() {
            self.halt();
        }
        self.join(None).map(drop)
    }

    fn report(&mut self) -> Result<Sent, TrafficError> {
        self.join(None)?;
        Ok(self.ledger.sent(&self.generator, self.workers.len()))
    }
}

impl Drop for LiveFrames {
    fn drop(&mut self) {
        self.halt();
    }
}
