//! The XDP program `generate`: test traffic made in the kernel. It runs on frames of BPF_PROG_RUN
//! (live frames, Linux 5.18), writes headers and stamp into each that is due, and sends it out of
//! the port that the frame is said to have come in by.

mod delivery;
mod frame;
mod tick;

use aya_ebpf::bindings::{BPF_F_MMAPABLE, xdp_action};
use aya_ebpf::helpers::bpf_ktime_get_ns;
use aya_ebpf::helpers::generated::bpf_get_smp_processor_id;
use aya_ebpf::macros::{map, xdp};
use aya_ebpf::maps::{Array, RingBuf};
use aya_ebpf::programs::XdpContext;
use pfc_ebpf::abi::generate::{Flow, LOOK, Lanes, SCAN, Settings, Worker, words};
use pfc_ebpf::stamp::MASK_40;

// The loader sets the number of entries of those that go by flow, CPU or window.
#[map]
static GENERATE: Array<Settings> = Array::with_max_entries(1, BPF_F_MMAPABLE);
#[map]
static GENERATE_FLOWS: Array<Flow> = Array::with_max_entries(1, BPF_F_MMAPABLE);
#[map]
static GENERATE_CPUS: Array<Worker> = Array::with_max_entries(1, BPF_F_MMAPABLE);
#[map]
static GENERATE_LANES: Array<Lanes> = Array::with_max_entries(1, BPF_F_MMAPABLE);
#[map]
static GENERATE_OFFER: Array<[u64; 8]> = Array::with_max_entries(1, BPF_F_MMAPABLE);
#[map]
static GENERATE_SPANS: RingBuf = RingBuf::with_byte_size(256 << 10, 0);

/// The worker that this CPU is.
#[inline(always)]
fn worker() -> Option<&'static mut Worker> {
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
    if (run % LOOK == 0 || worker.look != 0) && !tick::look(worker, run) {
        return xdp_action::XDP_DROP;
    }
    let Some((flow, now)) = due(worker) else {
        worker.look = 1;
        return xdp_action::XDP_DROP;
    };
    if !frame::write(&ctx, flow, worker.now, worker.now_sum) {
        return xdp_action::XDP_DROP;
    }
    release(worker, flow, now);
    frame::trim(&ctx, flow)
}

/// The next flow in turn that has a frame due, and the time by the clock of its priority.
#[inline(always)]
fn due(worker: &mut Worker) -> Option<(&'static mut Flow, u64)> {
    let mut cursor = worker.cursor;
    let mut left = SCAN;
    loop {
        let flow = GENERATE_FLOWS.get_ptr_mut(cursor as u32)?;
        cursor += 1;
        if cursor >= worker.end {
            cursor = worker.first;
        }
        // SAFETY: an entry of the map that belongs to this worker.
        let flow = unsafe { &mut *flow };
        // Of a priority that is paused, long ago.
        let now = worker
            .now
            .wrapping_sub(worker.behind[flow.priority as usize & 7]);
        if flow.bucket.ready() as i64 <= now as i64 {
            worker.cursor = cursor;
            return Some((flow, now));
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
    let (now, priority) = (worker.now, flow.priority as usize & 7);
    flow.bucket.take(at, worker.max_lateness);
    flow.sequence += 1;
    if flow.first == 0 {
        flow.first = now;
    }
    flow.last = now;
    flow.window_sum += worker.window;
    worker.excess.add(flow.cost);
    worker.batch[priority] += flow.share;
    worker.pending += 1;
}

/// The reference of the benchmarks: a constant frame with sequence number and time, and nothing
/// else that `generate` does. The flow of the worker says what is sent; its `sequence` counts.
#[xdp]
pub fn generate_constant(ctx: XdpContext) -> u32 {
    let Some(worker) = worker() else {
        return xdp_action::XDP_DROP;
    };
    let Some(flow) = GENERATE_FLOWS.get_ptr_mut(worker.first as u32) else {
        return xdp_action::XDP_DROP;
    };
    // SAFETY: as in `due`.
    let flow = unsafe { &mut *flow };
    let run = worker.runs;
    worker.runs = run + 1;
    // `look` is a mask here: 0 reads the clock for every frame, 7 for every eighth.
    if run & worker.look == 0 {
        // SAFETY: the helper has no preconditions.
        worker.now = unsafe { bpf_ktime_get_ns() };
        worker.now_sum = words(worker.now & MASK_40);
    }
    if !frame::write(&ctx, flow, worker.now, worker.now_sum) {
        return xdp_action::XDP_DROP;
    }
    flow.sequence += 1;
    xdp_action::XDP_TX
}
