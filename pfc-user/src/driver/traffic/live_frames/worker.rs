//! The thread of a worker.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex};

use pfc_ebpf::abi::generate::BATCH;
use pfc_ebpf::units::Nanos;
use validator_core::pacing::history::History;

use super::super::{Burst, TrafficError};
use super::ledger::take_spans;
use crate::driver::bpf::CaseGenerator;
use crate::driver::kernel::clock;
use crate::driver::kernel::packet::PacketError;
use crate::driver::sender::{Next, SenderThread, Setup, Work};

/// Runs of the program in a system call: some ten milliseconds of sending, or three of waiting. How
/// soon a burst ends by order, and how often the records of the program are taken.
const RUNS: u32 = 2048 * BATCH;
/// Time from the end of sleep to the burst.
const WAKE: Nanos = 200_000;

/// A worker: the thread of its [`Job`].
pub type Worker = SenderThread<Job>;

/// The task of a worker, with all that it needs. An order is a burst, whose end it tells.
pub struct Job {
    pub generator: Arc<CaseGenerator>,
    pub interface: String,
    pub port: u32,
    pub cpu: usize,
    pub leads: bool,
    /// Runs in a batch.
    pub batch: u32,
    pub frame: Vec<u8>,
    pub stop: Arc<AtomicBool>,
    pub history: Arc<Mutex<History>>,
    pub ended: Sender<Result<(), TrafficError>>,
}

/// Starts the thread in the network namespace of the calling one.
pub fn start(job: Job) -> Result<Worker, TrafficError> {
    let cpu = job.cpu;
    let setup = Setup {
        name: format!("traffic {cpu}"),
        // The program keeps the CPU busy, so that the thread cannot sleep. Where it is not
        // preferred frames may leave late, which the program records.
        priority: None,
        cpu: Some(cpu),
    };
    let worker = Worker::start(setup, job).map_err(TrafficError::Spawn)?;
    match worker.placed().cpu {
        Some(_) => Ok(worker),
        None => Err(TrafficError::Cpu { cpu }),
    }
}

impl Work for Job {
    type Order = Burst;

    fn obey(&mut self, burst: Burst) {
        let mut end = End {
            outbox: &self.ended,
            result: Err(TrafficError::Died),
        };
        end.result = self.run(burst);
    }

    fn round(&mut self, _: Nanos) -> Next {
        Next::Order
    }
}

/// Reports the end of a burst, even if the thread panics. Otherwise the sender would wait for this
/// thread for ever.
struct End<'a> {
    outbox: &'a Sender<Result<(), TrafficError>>,
    result: Result<(), TrafficError>,
}

impl Drop for End<'_> {
    fn drop(&mut self) {
        // The receiver is gone only when it no longer wants to know.
        let _ = self
            .outbox
            .send(std::mem::replace(&mut self.result, Ok(())));
    }
}

impl Job {
    /// Runs the program until it has seen the end of the burst, so that all is recorded.
    fn run(&self, burst: Burst) -> Result<(), TrafficError> {
        let wake = burst.from.saturating_sub(WAKE);
        while clock::now() < wake && !self.stop.load(Ordering::Acquire) {
            clock::park_until(wake);
        }
        loop {
            self.generator
                .run(self.port, &self.frame, RUNS, self.batch)?;
            if self.leads {
                take_spans(&self.history, &self.generator, burst.phase);
            }
            let state = self.generator.workers.get(self.cpu);
            if state.refused > 0 {
                return Err(self.refused(state.error).into());
            }
            if state.over != 0 {
                return Ok(());
            }
        }
    }

    /// The reason why the kernel did not hand a frame to the device.
    fn refused(&self, error: u64) -> PacketError {
        let interface = self.interface.clone();
        match error as i32 {
            libc::ENETDOWN => PacketError::Down { interface },
            libc::EMSGSIZE => PacketError::TooLong {
                interface,
                length: self.frame.len(),
            },
            error => PacketError::Send {
                interface,
                source: std::io::Error::from_raw_os_error(error),
            },
        }
    }
}
