//! Flows of a port that the kernel sends: the program `generate` of the port's object, run by a
//! thread on a CPU of its own.
//!
//! The kernel takes over flows for a run, and gives them back when the run ends: by its time, by an
//! order, or because all their frames have left. The count of what left is exact: the program knows
//! of each frame whether the device took it.

mod prepared;
mod refusals;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread::{self, JoinHandle, Thread};

use nix::net::if_::if_nametoindex;
use pfc_ebpf::abi::generate::BATCH;
use pfc_ebpf::units::{LineRate, Nanos};
use validator_core::engine::flow::Fine;

use self::prepared::Prepared;
pub use self::prepared::{FastFlow, Kind};
use self::refusals::{Next, Refusals};
use crate::driver::bpf::flow::{FlowGenerator, PauseClocks};
use crate::driver::kernel::{clock, realtime};
use crate::engine::published::PortState;

/// Runs of the program in a system call: a millisecond or two. How soon an order is carried out,
/// and how fresh the counts are.
const RUNS: u32 = 256 * BATCH;
/// Runs in a system call after frames were refused.
const FEW_RUNS: u32 = 16 * BATCH;

/// A run of the program.
pub struct Run {
    /// Its flows, all of one kind.
    pub flows: Vec<FastFlow>,
    /// Their line.
    pub line_rate: LineRate,
    /// Queues that pause frames hold, a bit for each.
    pub honoured: u64,
    /// Queues among them whose present hold has been counted.
    pub held: u64,
    /// No frame leaves at or after that time.
    pub to: Nanos,
}

/// A flow that comes back from a run.
pub struct Back {
    /// Its place among those of the port.
    pub flow: usize,
    /// Frames that left in the run.
    pub left: u64,
    /// Sequence numbers that no frame has: their frames did not leave.
    pub skipped: u64,
    /// Time at which its next frame is due.
    pub due: Fine,
}

/// The end of a run.
pub struct Ended {
    /// Its flows.
    pub flows: Vec<Back>,
    /// Nothing leaves in this way at present.
    pub failed: bool,
}

/// The sender in the kernel of a port. Its thread ends when this is dropped.
pub struct KernelSender {
    runs: Option<Sender<(Run, Thread)>>,
    ended: Receiver<Ended>,
    thread: Option<JoinHandle<()>>,
    generator: Arc<FlowGenerator>,
    stop: Arc<AtomicBool>,
    /// A run is under way, and is to end then.
    until: Option<Nanos>,
}

impl KernelSender {
    /// Starts the thread, in the port's network namespace, which has to be the caller's.
    pub fn start(
        interface: &str,
        generator: Arc<FlowGenerator>,
        pauses: PauseClocks,
        state: Arc<PortState>,
    ) -> io::Result<Self> {
        let port = if_nametoindex(interface)?;
        let cpus = realtime::allowed_cpus();
        // Ports are dealt out to the CPUs.
        let cpu = cpus.get(port as usize % cpus.len().max(1)).copied();
        let (runs, inbox) = channel::<(Run, Thread)>();
        let (outbox, ended) = channel();
        let stop = Arc::new(AtomicBool::new(false));
        let worker = Worker {
            generator: generator.clone(),
            pauses,
            port,
            cpu: cpu.unwrap_or_default(),
            state,
            stop: stop.clone(),
        };
        let serve = move || {
            // Where it is not permitted frames may leave late, which counts tell.
            realtime::be_preferred();
            let pinned = realtime::pin(worker.cpu);
            for (run, owner) in inbox {
                let ended = worker.run(run, pinned);
                // The receiver is gone only when it no longer wants to know.
                let _ = outbox.send(ended);
                owner.unpark();
            }
        };
        let thread = thread::Builder::new()
            .name("fast flows".into())
            .spawn(serve)?;
        Ok(Self {
            runs: Some(runs),
            ended,
            thread: Some(thread),
            generator,
            stop,
            until: None,
        })
    }

    /// Begins a run. The calling thread is unparked when it is over.
    pub fn begin(&mut self, run: Run) {
        self.stop.store(false, Ordering::Release);
        self.until = Some(run.to);
        if let Some(runs) = &self.runs {
            // A thread that is gone is noticed when the run is to end.
            let _ = runs.send((run, thread::current()));
        }
    }

    /// Time at which the run that is under way is to end.
    pub const fn until(&self) -> Option<Nanos> {
        self.until
    }

    /// Returns the outcome of the run, if it has ended by itself.
    pub fn ended(&mut self) -> Option<Ended> {
        self.until?;
        match self.ended.try_recv() {
            Err(TryRecvError::Empty) => None,
            ended => Some(self.over(ended.ok())),
        }
    }

    /// Ends the run that is under way, if there is one.
    pub fn end(&mut self) -> Option<Ended> {
        self.until?;
        self.stop.store(true, Ordering::Release);
        self.generator.stop();
        let ended = self.ended.recv().ok();
        Some(self.over(ended))
    }

    /// # Panics
    /// Panics where the thread is gone: what left is unknown then.
    fn over(&mut self, ended: Option<Ended>) -> Ended {
        self.until = None;
        ended.expect("the thread `fast flows` has ended; its last words are above")
    }
}

impl Drop for KernelSender {
    fn drop(&mut self) {
        self.runs = None;
        self.stop.store(true, Ordering::Release);
        self.generator.stop();
        // A panic there has been reported on stderr by the thread itself.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// The thread.
struct Worker {
    generator: Arc<FlowGenerator>,
    pauses: PauseClocks,
    port: u32,
    cpu: usize,
    state: Arc<PortState>,
    stop: Arc<AtomicBool>,
}

impl Worker {
    fn run(&self, run: Run, pinned: bool) -> Ended {
        let from = clock::now();
        let held_before = self.pauses.read().queues.map(|queue| queue.paused(from));
        let mut prepared = Prepared::new(run, self.cpu, from, held_before, &self.state);
        prepared.begin(&self.generator);
        // An order may have come before the program could see it.
        if self.stop.load(Ordering::Acquire) {
            self.generator.stop();
        }
        let failed = !pinned || self.serve(&mut prepared);
        let now = clock::now();
        let queues = self.pauses.read().queues;
        let held = std::array::from_fn(|queue| queues[queue].paused(now) - held_before[queue]);
        Ended {
            flows: prepared.end(&self.generator, &self.state, now, &held),
            failed,
        }
    }

    /// Runs the program until the run is over; true: nothing leaves.
    fn serve(&self, prepared: &mut Prepared) -> bool {
        let mut refusals = Refusals::default();
        let mut runs = RUNS;
        loop {
            let (frame, batch) = (&prepared.frame, prepared.batch);
            let ran = self.generator.run(self.port, frame, runs, batch);
            let worker = self.generator.workers.get(self.cpu);
            let all_left = prepared.publish(&self.generator, &worker, &self.state);
            if ran.is_err() || worker.refused > 0 {
                return true;
            }
            if all_left || worker.over != 0 {
                return false;
            }
            runs = match refusals.after(worker.delivered, worker.dropped, clock::now()) {
                Next::Send => RUNS,
                Next::Pause(pause) => {
                    prepared.rest(&self.generator, &self.state, clock::now());
                    thread::sleep(pause);
                    FEW_RUNS
                }
                Next::GiveUp => return true,
            };
        }
    }
}
