//! Parts that `flow` adds to the generator: pause frames that hold queues, and how fast that was
//! obeyed, an exact number of frames, and a line that carries one frame after the other.

use aya_ebpf::bindings::BPF_F_MMAPABLE;
use aya_ebpf::macros::map;
use aya_ebpf::maps::Array;
use core::ptr;
use pfc_ebpf::abi::generate::{Flow, HELD, QUEUE, Settings, Worker, batch};
use pfc_ebpf::abi::watch::PauseClock;
use pfc_ebpf::bpf::verifier;

use crate::PAUSE;
use crate::generate::{GENERATE_FLOWS, Look, Sending};

// The loader sets the number of entries.
#[map]
static GENERATE_LOST: Array<u64> = Array::with_max_entries(1, BPF_F_MMAPABLE);

/// The generator of this object.
pub struct Own;

impl Sending for Own {
    // All that a frame of [`pfc_ebpf::abi::generate::LONGEST`] octets has.
    const STAMP_AT: usize = 4095;
    const BEYOND_BLOCK: bool = true;

    #[inline(always)]
    fn has_room(worker: &Worker) -> bool {
        worker.excess.level() < worker.most
    }

    #[inline(always)]
    fn let_go(worker: &mut Worker, flow: &mut Flow, place: u64) {
        worker.queue[worker.let_go as usize % QUEUE] = place;
        worker.let_go += 1;
        worker.batch[flow.priority as usize & 7] += batch::frame(flow.length);
        if flow.sequence >= flow.own {
            flow.bucket.suspend();
        }
    }

    #[inline(always)]
    fn looked(worker: &mut Worker, _: &Settings, look: &Look) {
        // As a remainder: a division would have to show that it is not by 0.
        if look.run & worker.batch_runs.wrapping_sub(1) == 0 {
            next_batch(worker);
        }
        if look.over || worker.paused != 0 || latest_hold() > look.before {
            hold(worker, look.before);
        }
    }

    #[inline(always)]
    fn settled(worker: &mut Worker, taken: u64, dropped: u64) {
        let first = worker.let_go - worker.pending + taken;
        for number in 0..QUEUE as u64 {
            if number >= dropped {
                break;
            }
            give_back(worker.queue[(first + number) as usize % QUEUE]);
        }
    }

    #[inline(always)]
    fn refused(worker: &mut Worker) {
        worker.let_go -= 1;
        give_back(worker.queue[worker.let_go as usize % QUEUE]);
    }
}

/// A frame of the flow at that place did not leave: another is due for it, with the next number.
#[inline(always)]
fn give_back(place: u64) {
    let (Some(flow), Some(lost)) = (
        GENERATE_FLOWS.get_ptr_mut(place as u32),
        GENERATE_LOST.get_ptr_mut(place as u32),
    ) else {
        return;
    };
    // SAFETY: entries of the maps that belong to this worker, whose program does not run now.
    unsafe {
        *lost += 1;
        // The greatest number stands for no limit.
        (*flow).own = (*flow).own.saturating_add(1);
        (*flow).bucket.give_back();
    }
}

/// End of the longest hold of any queue.
#[inline(always)]
fn latest_hold() -> u64 {
    let Some(pauses) = PAUSE.get_ptr(0) else {
        return u64::MAX;
    };
    let mut latest = 0;
    for queue in 0..8 {
        // SAFETY: an entry of the map's value; the word is read at once.
        let until = unsafe { ptr::read_volatile(&raw const (*pauses).queues[queue].until) };
        if until > latest {
            latest = until;
        }
    }
    latest
}

/// The frames of the batch before have all left.
#[inline(always)]
fn next_batch(worker: &mut Worker) {
    for queue in 0..8 {
        if worker.stopping & (1 << queue) != 0 {
            let longest = &mut worker.responses[queue].longest;
            *longest = (*longest).max(worker.now - worker.held_since[queue]);
        }
        worker.batch_before[queue] = worker.batch[queue];
        // SAFETY: a place in a value at hand. Word by word, for the compiler would call a function
        // that does it octet by octet.
        unsafe { ptr::write_volatile(&raw mut worker.batch[queue], 0) };
    }
    worker.stopping = 0;
    worker.batch_from = worker.now;
}

/// Sets the clocks of the queues, which stand still while pause frames hold them: what they asked
/// not to send is not owed afterwards. The look before was at `previous`.
#[inline(always)]
fn hold(worker: &mut Worker, previous: u64) {
    let Some(pauses) = PAUSE.get_ptr(0) else {
        return;
    };
    worker.paused = 0;
    verifier::each_priority(|queue| {
        if worker.honoured & (1 << queue) == 0 {
            return;
        }
        // SAFETY: an entry of the map's value, each word of which is read at once. Where a pause
        // frame is counted meanwhile, the next look finds it whole.
        let clock = unsafe {
            let clock = &raw const (*pauses).queues[queue];
            PauseClock {
                paused: ptr::read_volatile(&raw const (*clock).paused),
                at: ptr::read_volatile(&raw const (*clock).at),
                until: ptr::read_volatile(&raw const (*clock).until),
            }
        };
        let before = worker.behind[queue];
        let held = clock
            .paused(worker.now)
            .saturating_sub(worker.held_before[queue]);
        let is_held = clock.until > worker.now;
        if is_held {
            worker.paused |= 1 << queue;
            worker.behind[queue] = HELD;
        } else {
            worker.behind[queue] = held;
        }
        let time = held.saturating_sub(before);
        if before != HELD && (is_held || time > 0) {
            // A hold that is over began at an unknown time.
            let since = if is_held { worker.now - time } else { previous };
            answer(worker, queue as u64, since, time);
        }
    });
}

/// Notes that a queue that was free has been held since `since`, for `time`.
#[inline(never)]
fn answer(worker: &mut Worker, queue: u64, since: u64, time: u64) {
    let queue = queue as usize & 7;
    if worker.answers & (1 << queue) == 0 {
        return;
    }
    worker.responses[queue].holds += 1;
    // Frames of the whole batch count, for they wait up to its end.
    let mut left = worker.batch[queue];
    if since < worker.batch_from {
        left += worker.batch_before[queue];
    }
    if left == 0 {
        return;
    }
    worker.responses[queue].frames += batch::frames(left);
    worker.responses[queue].octets += batch::octets(left);
    if worker.behind[queue] == HELD {
        worker.held_since[queue] = since;
        worker.stopping |= 1 << queue;
    } else {
        // After its end it is free to leave.
        let longest = &mut worker.responses[queue].longest;
        *longest = (*longest).max(time);
    }
}
