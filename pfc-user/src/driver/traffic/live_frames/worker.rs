//! The thread of a worker.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle, Thread};

use pfc_ebpf::abi::generate::BATCH;
use pfc_ebpf::units::Nanos;

use super::super::{Burst, TrafficError};
use super::ledger::take_spans;
use crate::driver::bpf::CaseGenerator;
use crate::driver::kernel::packet::PacketError;
use crate::driver::kernel::{clock, realtime};
use crate::pacing::history::History;

/// Runs of the program in a system call: some ten milliseconds of sending, or three of waiting. How
/// soon a burst ends by order, and how often the records of the program are taken.
const RUNS: u32 = 2048 * BATCH;
/// Time from the end of sleep to the burst.
const WAKE: Nanos = 200_000;

/// The task of a worker, with all that it needs.
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
}

/// A worker; dropping it waits for the end of its thread.
pub struct Worker {
    orders: Option<Sender<Burst>>,
    thread: Option<JoinHandle<()>>,
}

impl Worker {
    /// Starts the thread in the network namespace of the calling one. It tells each burst's end.
    pub fn start(job: Job, ended: Sender<Result<(), TrafficError>>) -> Result<Self, TrafficError> {
        let (orders, inbox) = channel();
        let (outbox, pinned) = channel();
        let cpu = job.cpu;
        let serve = move || {
            // Where it is not permitted frames may leave late, which the program records.
            realtime::be_preferred();
            // The receiver is gone only when it no longer wants to know.
            let _ = outbox.send(realtime::pin(job.cpu));
            for burst in inbox {
                let mut end = End {
                    outbox: &ended,
                    result: Err(TrafficError::Died),
                };
                end.result = job.run(burst);
            }
        };
        let thread = thread::Builder::new()
            .name(format!("traffic {cpu}"))
            .spawn(serve)
            .map_err(TrafficError::Spawn)?;
        let worker = Self {
            orders: Some(orders),
            thread: Some(thread),
        };
        if pinned.recv() != Ok(true) {
            return Err(TrafficError::Cpu { cpu });
        }
        Ok(worker)
    }

    /// Orders a burst.
    pub fn run(&self, burst: Burst) -> Result<(), TrafficError> {
        self.orders
            .as_ref()
            .and_then(|orders| orders.send(burst).ok())
            .ok_or(TrafficError::Died)
    }

    /// Ends its sleep.
    pub fn unpark(&self) {
        self.thread
            .as_ref()
            .map(JoinHandle::thread)
            .map(Thread::unpark);
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

impl Drop for Worker {
    fn drop(&mut self) {
        self.orders = None;
        self.unpark();
        // A panic there has been reported on stderr by the thread itself.
        let _ = self.thread.take().map(JoinHandle::join);
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
