//! The XDP program `generate`: test traffic made in the kernel, a part of each object whose ports
//! send. It runs on frames of BPF_PROG_RUN (live frames, Linux 5.18), writes headers and stamp into
//! each that is due, and sends it out of the port that the frame is said to have come in by.
//!
//! The object decides what pauses its flows, and what is counted beside their frames: [`Sending`].

mod delivery;
pub mod frame;
mod look;

use aya_ebpf::bindings::{BPF_F_MMAPABLE, xdp_action};
use aya_ebpf::helpers::generated::bpf_get_smp_processor_id;
use aya_ebpf::macros::{map, xdp};
use aya_ebpf::maps::Array;
use aya_ebpf::programs::XdpContext;
use pfc_ebpf::abi::generate::{Flow, LOOK, SCAN, Settings, Worker};

use crate::sending::Own;

// The loader sets the number of entries of those that go by flow or CPU.
#[map]
static GENERATE: Array<Settings> = Array::with_max_entries(1, BPF_F_MMAPABLE);
#[map]
pub static GENERATE_FLOWS: Array<Flow> = Array::with_max_entries(1, BPF_F_MMAPABLE);
#[map]
static GENERATE_CPUS: Array<Worker> = Array::with_max_entries(1, BPF_F_MMAPABLE);

/// Parts that an object adds to the generator. All of them are compiled into the program.
pub trait Sending {
    /// A mask of the offsets at which a stamp may begin.
    const STAMP_AT: usize;
    /// A stamp may reach beyond the block, so that what is constant in it is written by itself.
    const BEYOND_BLOCK: bool;

    /// True if the line takes a frame now.
    fn has_room(worker: &Worker) -> bool;

    /// A frame of the flow at that place was let go, and counted.
    fn let_go(worker: &mut Worker, flow: &mut Flow, place: u64);

    /// The worker has looked at the clock. The settings are those of all workers.
    fn looked(worker: &mut Worker, settings: &Settings, look: &Look);

    /// The device took the first of the frames that were let go, and did not take as many after
    /// them. To be called before these are no longer pending.
    fn settled(worker: &mut Worker, taken: u64, dropped: u64);

    /// The kernel did not hand the last frame that was let go to the device.
    fn refused(worker: &mut Worker);
}

/// A look at the clock.
pub struct Look {
    /// The run that looks, by its number.
    pub run: u64,
    /// Time of the look before.
    pub before: u64,
    /// The burst is over.
    pub over: bool,
}

/// The worker that this CPU is.
#[inline(always)]
pub fn worker() -> Option<&'static mut Worker> {
    // SAFETY: the helper has no preconditions.
    let cpu = unsafe { bpf_get_smp_processor_id() };
    let worker = GENERATE_CPUS.get_ptr_mut(cpu)?;
    // SAFETY: an entry of the map that only this CPU works with, and only with softirqs off;
    // userspace while nothing runs.
    let worker = unsafe { &mut *worker };
    if worker.end == 0 { None } else { Some(worker) }
}

/// Sends the next frame that is due; drops the frame where none is.
#[xdp]
pub fn generate(ctx: XdpContext) -> u32 {
    let Some(worker) = worker() else {
        return xdp_action::XDP_DROP;
    };
    let run = worker.runs;
    worker.runs = run + 1;
    if (run % LOOK == 0 || worker.look != 0) && !look::look(worker, run) {
        return xdp_action::XDP_DROP;
    }
    let Some(Due { flow, place, at }) = due(worker) else {
        worker.look = 1;
        return xdp_action::XDP_DROP;
    };
    if !frame::write(&ctx, flow, worker.now, worker.now_sum) {
        return xdp_action::XDP_DROP;
    }
    release(worker, flow, at);
    Own::let_go(worker, flow, place);
    frame::trim(&ctx, flow)
}

/// A frame that is due.
struct Due {
    flow: &'static mut Flow,
    /// The flow's place in the map.
    place: u64,
    /// The time by the clock of its priority.
    at: u64,
}

/// The next flow in turn that has a frame due.
#[inline(always)]
fn due(worker: &mut Worker) -> Option<Due> {
    if !Own::has_room(worker) {
        return None;
    }
    let mut cursor = worker.cursor;
    let mut left = SCAN;
    loop {
        let place = cursor;
        let flow = GENERATE_FLOWS.get_ptr_mut(cursor as u32)?;
        cursor += 1;
        if cursor >= worker.end {
            cursor = worker.first;
        }
        // SAFETY: an entry of the map that belongs to this worker.
        let flow = unsafe { &mut *flow };
        // For a priority that is paused, `at` is long ago.
        let at = worker
            .now
            .wrapping_sub(worker.behind[flow.priority as usize & 7]);
        if flow.bucket.ready() as i64 <= at as i64 {
            worker.cursor = cursor;
            return Some(Due { flow, place, at });
        }
        left -= 1;
        if left == 0 {
            worker.cursor = cursor;
            return None;
        }
    }
}

/// Accounts for a frame that leaves, `at` that time by the clock of its priority.
#[inline(always)]
fn release(worker: &mut Worker, flow: &mut Flow, at: u64) {
    let now = worker.now;
    flow.bucket.take(at, worker.max_lateness);
    flow.sequence += 1;
    if flow.first == 0 {
        flow.first = now;
    }
    flow.last = now;
    worker.excess.add(flow.cost);
    worker.pending += 1;
}
