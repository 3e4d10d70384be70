//! Parts that `account` adds to the generator: PFC of priorities, and the counts by window and
//! priority that verdicts rest on. And the program of the benchmarks.

use aya_ebpf::bindings::{BPF_F_MMAPABLE, BPF_RB_NO_WAKEUP, xdp_action};
use aya_ebpf::helpers::bpf_ktime_get_ns;
use aya_ebpf::macros::{map, xdp};
use aya_ebpf::maps::{Array, RingBuf};
use aya_ebpf::programs::XdpContext;
use core::ptr;
use pfc_ebpf::abi::account::PauseState;
use pfc_ebpf::abi::generate::{Flow, HELD, Lanes, STALL, Settings, Span, Worker, batch, words};
use pfc_ebpf::bpf::{atomic, verifier};
use pfc_ebpf::pacing::withheld;
use pfc_ebpf::stamp::MASK_40;

use crate::PAUSE;
use crate::generate::{GENERATE_FLOWS, Look, Sending, frame, worker};

// The loader sets the number of entries.
#[map]
static GENERATE_OFFER: Array<[u64; 8]> = Array::with_max_entries(1, BPF_F_MMAPABLE);
#[map]
static GENERATE_LANES: Array<Lanes> = Array::with_max_entries(1, BPF_F_MMAPABLE);
#[map]
static GENERATE_SPANS: RingBuf = RingBuf::with_byte_size(256 << 10, 0);

/// The generator of this object.
pub struct Own;

impl Sending for Own {
    // Within the block.
    const STAMP_AT: usize = 127;
    const BEYOND_BLOCK: bool = false;

    #[inline(always)]
    fn has_room(_: &Worker) -> bool {
        // Rates are within the line's, and bursts what `max_lateness` leaves.
        true
    }

    #[inline(always)]
    fn let_go(worker: &mut Worker, flow: &mut Flow, _: u64) {
        worker.batch[flow.priority as usize & 7] += batch::frame(flow.length);
    }

    #[inline(always)]
    fn looked(worker: &mut Worker, settings: &Settings, look: &Look) {
        let (now, before) = (worker.now, look.before);
        if now - before > STALL {
            record(
                worker,
                Span {
                    what: Span::STALL,
                    from: before,
                    to: now,
                },
            );
        }
        // As a remainder: a division would have to show that it is not by 0.
        let begins = look.run & worker.batch_runs.wrapping_sub(1) == 0;
        let window_ends = now >= worker.window_ends;
        if begins || window_ends {
            sum_up(worker, begins);
        }
        if window_ends {
            window(worker, settings, now);
        }
        // The leading worker's word on an earlier pause may have changed.
        let follows = begins && worker.leads == 0;
        if follows || look.over || worker.paused != 0 || latest_pause() > before {
            pfc(worker, before, look.over);
        }
    }

    // Frames are told apart by where they arrive: what the device did not take is counted for all.
    #[inline(always)]
    fn settled(_: &mut Worker, _: u64, _: u64) {}

    #[inline(always)]
    fn refused(_: &mut Worker) {}
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
    // SAFETY: an entry of the map that belongs to this worker.
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

/// Adds what left of the present batch to the window. Word by word, for the compiler would call a
/// function that does it octet by octet.
#[inline(always)]
fn sum_up(worker: &mut Worker, begins: bool) {
    for priority in 0..8 {
        let sum = worker.batch[priority];
        worker.offered[priority] += batch::frames(sum);
        // The octets stay until the batch is over.
        let left = if begins {
            0
        } else {
            sum & !batch::frames(u64::MAX)
        };
        // SAFETY: a place in a value at hand.
        unsafe { ptr::write_volatile(&raw mut worker.batch[priority], left) };
        if begins {
            worker.batch_before[priority] = sum;
        }
    }
    if begins {
        worker.batch_from = worker.now;
    }
}

/// Looks at what PFC holds back, and at what it has held back since the `previous` look.
#[inline(always)]
fn pfc(worker: &mut Worker, previous: u64, over: bool) {
    let Some(lanes) = GENERATE_LANES.get_ptr_mut(0) else {
        return;
    };
    let (before, mut since) = (worker.paused, 0);
    worker.paused = 0;
    verifier::each_priority(|priority| {
        if worker.honoured & (1 << priority) == 0 {
            // SAFETY: an entry of the map, which others write word by word, each at once.
            worker.behind[priority] =
                unsafe { ptr::read_volatile(&raw const (*lanes).behind[priority]) };
            return;
        }
        let found = generate_pause(priority as u64, previous, over as u64);
        worker.paused |= ((found & PAUSED != 0) as u64) << priority;
        since |= ((found & PAUSED_SINCE != 0) as u64) << priority;
    });
    if worker.leads != 0 {
        // SAFETY: the entry, which this worker leads.
        unsafe { ptr::write_volatile(&raw mut (*lanes).at, worker.now) };
    }
    // Also of a pause that is over already.
    if since & !before != 0 {
        overrun(worker, since & !before);
    }
}

/// Bits of what [`generate_pause`] finds. The priority is paused.
const PAUSED: u64 = 1;
/// The priority is paused, or was after the look before.
const PAUSED_SINCE: u64 = 2;

/// Looks at the pause of a priority for which PFC is honoured, and sets its clock; not 0 in `over`:
/// the burst is over. Returns [`PAUSED`] and [`PAUSED_SINCE`].
///
/// A global function, which the verifier walks by itself, once. Else it would walk each priority
/// again for all that the ones before it may have left, which was most of its work for the program.
#[inline(never)]
#[unsafe(no_mangle)]
pub extern "C" fn generate_pause(priority: u64, previous: u64, over: u64) -> u64 {
    let (Some(worker), Some(lanes)) = (worker(), GENERATE_LANES.get_ptr_mut(0)) else {
        return 0;
    };
    let priority = priority as usize & 7;
    let Some(pause) = pause(priority as u32) else {
        return 0;
    };
    // SAFETY: an entry of the map. Others read it while the worker that leads writes: word by word,
    // each at once.
    let (at, behind) = unsafe {
        (
            ptr::read_volatile(&raw const (*lanes).at),
            ptr::read_volatile(&raw const (*lanes).behind[priority]),
        )
    };
    let (from, to) = withheld(&pause, at, worker.now);
    let pauses = pause.until > worker.now;
    if worker.leads != 0 {
        // SAFETY: the entry, which this worker leads.
        unsafe { keep(worker, lanes, priority, (from, to), pauses && over == 0) };
    }
    worker.behind[priority] = if pauses { HELD } else { behind + to - from };
    (pauses as u64 * PAUSED) | ((pause.until > previous) as u64 * PAUSED_SINCE)
}

/// End of the longest pause of any priority.
#[inline(always)]
fn latest_pause() -> u64 {
    let Some(pauses) = PAUSE.all() else {
        return u64::MAX;
    };
    let mut latest = 0;
    for priority in 0..8 {
        // SAFETY: an entry of the map; the word is read at once.
        let until = unsafe { ptr::read_volatile(&raw const (*pauses)[priority].until) };
        if until > latest {
            latest = until;
        }
    }
    latest
}

/// Pause state of a priority.
#[inline(always)]
fn pause(priority: u32) -> Option<PauseState> {
    let state = PAUSE.get_ptr(priority)?;
    // SAFETY: an entry of the map; each word is read at once, and in the order opposite to that in
    // which they are written: who sees the end of a pause sees its beginning.
    unsafe {
        let until = ptr::read_volatile(&raw const (*state).until);
        Some(PauseState {
            until,
            since: ptr::read_volatile(&raw const (*state).since),
        })
    }
}

/// Keeps the clock of a priority, which stood still `from` one time `to` the other, if these
/// differ; `on`: it goes on to do so.
///
/// # Safety
/// `lanes` points to the entry of the map; the worker is the one that leads.
#[inline(always)]
unsafe fn keep(
    worker: &mut Worker,
    lanes: *mut Lanes,
    priority: usize,
    (from, to): (u64, u64),
    on: bool,
) {
    // SAFETY: as the caller says; nobody else writes, and nobody else reads what is open.
    let (mut open, at) = unsafe { ((*lanes).open[priority], (*lanes).at) };
    if to == from && open == 0 {
        return;
    }
    if open != 0 && (to == from || from != at) {
        // The pause had ended soon after the last look.
        record(
            worker,
            Span {
                what: priority as u64,
                from: open,
                to: at,
            },
        );
        open = 0;
    }
    if to > from {
        // SAFETY: as above. Others read the word, which is written at once.
        unsafe {
            ptr::write_volatile(
                &raw mut (*lanes).behind[priority],
                (*lanes).behind[priority] + to - from,
            )
        };
        if open == 0 {
            open = from;
        }
    }
    if open != 0 && !on {
        record(
            worker,
            Span {
                what: priority as u64,
                from: open,
                to,
            },
        );
        open = 0;
    }
    // SAFETY: as above.
    unsafe { (*lanes).open[priority] = open };
}

#[inline(never)]
fn record(worker: &mut Worker, span: Span) {
    match GENERATE_SPANS.reserve::<Span>(0) {
        Some(mut entry) => {
            entry.write(span);
            entry.submit(BPF_RB_NO_WAKEUP as u64);
        }
        None => worker.spans_lost += 1,
    }
}

/// Counts octets of priorities that were seen to be paused, or to have been since the look before.
/// The whole present batch may have left after the pause began, as frames wait for the end of their
/// batch at the longest. So may the batch before, if the pause began before the present one.
#[inline(always)]
fn overrun(worker: &mut Worker, priorities: u64) {
    for priority in 0..8 {
        if priorities & (1 << priority) == 0 {
            continue;
        }
        let Some(PauseState { since, .. }) = pause(priority as u32) else {
            continue;
        };
        let mut octets = batch::octets(worker.batch[priority]);
        if since < worker.batch_from {
            octets += batch::octets(worker.batch_before[priority]);
        }
        if worker.overrun_since[priority] != since {
            worker.overrun_since[priority] = since;
            worker.overrun[priority] = 0;
        }
        worker.overrun[priority] += octets;
        worker.overrun_largest[priority] =
            worker.overrun_largest[priority].max(worker.overrun[priority]);
    }
}

/// Hands the counts of a window that has ended over.
#[inline(always)]
fn window(worker: &mut Worker, settings: &Settings, now: u64) {
    if let Some(offered) = GENERATE_OFFER.get_ptr_mut(worker.window as u32) {
        for priority in 0..8 {
            // SAFETY: an entry of the map.
            unsafe { atomic::add(&raw mut (*offered)[priority], worker.offered[priority]) };
        }
    }
    for frames in &mut worker.offered {
        // SAFETY: a place in a value at hand; as in `sum_up`.
        unsafe { ptr::write_volatile(frames, 0) };
    }
    let window = now
        .saturating_sub(settings.epoch)
        .checked_div(settings.width)
        .unwrap_or(0);
    let last = settings.windows.saturating_sub(1);
    (worker.window, worker.window_ends) = if window < last {
        (window, settings.epoch + (window + 1) * settings.width)
    } else {
        (last, u64::MAX)
    };
}
