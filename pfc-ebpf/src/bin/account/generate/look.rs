//! A look at the clock, and all that has to be done with time.

use aya_ebpf::bindings::BPF_RB_NO_WAKEUP;
use aya_ebpf::helpers::bpf_ktime_get_ns;
use core::ptr;
use pfc_ebpf::generate::{BATCH, Lanes, STALL, Settings, Span, Worker, words};
use pfc_ebpf::stamp::MASK_48;

use super::{GENERATE, GENERATE_LANES, GENERATE_OFFER, GENERATE_SPANS};
use crate::{PAUSE, atomic};

/// False: the burst is over.
#[inline(always)]
pub fn look(worker: &mut Worker, run: u64) -> bool {
    let (Some(settings), Some(lanes)) = (GENERATE.get(0), GENERATE_LANES.get_ptr_mut(0)) else { return false };
    // SAFETY: an entry of the map. Others read it while the worker that leads writes: word by word, each at once.
    let lanes = unsafe { &mut *lanes };
    // SAFETY: the helper has no preconditions; userspace writes the word at any time.
    let (now, stop) = unsafe { (bpf_ktime_get_ns(), ptr::read_volatile(&raw const settings.stop)) };
    let over = now >= settings.to || stop != 0;
    // Never before the burst, nor behind what was.
    let now = now.min(settings.to).max(worker.now);
    let before = worker.now;
    worker.now = now;
    worker.now_sum = words(now & MASK_48);
    worker.excess.pass(now - before);
    if now - before > STALL {
        record(worker, Span { what: Span::STALL, from: before, to: now });
    }
    if run % BATCH as u64 == 0 {
        worker.batch_from = now;
        worker.octets_before = worker.octets;
        worker.octets = [0; 8];
    }
    window(worker, settings, now);

    let paused = paused(settings, now);
    if paused & !worker.paused != 0 {
        overrun(worker, paused & !worker.paused);
    }
    worker.paused = paused;
    if worker.leads != 0 && (paused | lanes.held) != 0 {
        stand_still(worker, lanes, paused, before, now);
    }
    // SAFETY: as above.
    let held = paused | unsafe { ptr::read_volatile(&raw const lanes.held) };
    for priority in 0..8 {
        // SAFETY: as above.
        let behind = unsafe { ptr::read_volatile(&raw const lanes.behind[priority]) };
        worker.clock[priority] = if held & (1 << priority) != 0 { 0 } else { now - behind };
    }
    if over {
        worker.over = 1;
        if worker.leads != 0 && lanes.held != 0 {
            close(worker, lanes, lanes.held, now);
        }
    }
    !over
}

/// The priorities that PFC pauses at `now`, as a bit mask.
#[inline(always)]
fn paused(settings: &Settings, now: u64) -> u64 {
    let mut paused = 0;
    for priority in 0..8 {
        if let Some(state) = PAUSE.get_ptr(priority) {
            // SAFETY: an entry of the map; the word is read at once.
            paused |= ((unsafe { ptr::read_volatile(&raw const (*state).until) } > now) as u64) << priority;
        }
    }
    paused & settings.honoured
}

/// Keeps the clocks of the priorities. Those held back at either end stood still in between, for it is not known when that changed.
#[inline(always)]
fn stand_still(worker: &mut Worker, lanes: &mut Lanes, paused: u64, before: u64, now: u64) {
    let stood = lanes.held | paused;
    for priority in 0..8 {
        let bit = 1 << priority;
        if stood & bit != 0 {
            lanes.behind[priority] += now - before;
        }
        if paused & !lanes.held & bit != 0 {
            lanes.since[priority] = before;
        }
    }
    close(worker, lanes, lanes.held & !paused, now);
    lanes.held = paused;
}

/// Records for how long these priorities were held back.
#[inline(always)]
fn close(worker: &mut Worker, lanes: &Lanes, priorities: u64, now: u64) {
    for priority in 0..8 {
        if priorities & (1 << priority) != 0 {
            record(worker, Span { what: priority, from: lanes.since[priority as usize], to: now });
        }
    }
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

/// Counts octets of priorities that were just seen to be paused. Of the present batch all may have left after the pause had
/// begun, since what is let go waits for its end at the longest; of the one before, if it began before the present one.
#[inline(always)]
fn overrun(worker: &mut Worker, priorities: u64) {
    for priority in 0..8 {
        if priorities & (1 << priority) == 0 {
            continue;
        }
        let Some(state) = PAUSE.get_ptr(priority as u32) else { continue };
        // SAFETY: an entry of the map; the word is read at once.
        let since = unsafe { ptr::read_volatile(&raw const (*state).since) };
        let mut octets = worker.octets[priority];
        if since < worker.batch_from {
            octets += worker.octets_before[priority];
        }
        if worker.overrun_since[priority] != since {
            worker.overrun_since[priority] = since;
            worker.overrun[priority] = 0;
        }
        worker.overrun[priority] += octets;
        worker.overrun_largest[priority] = worker.overrun_largest[priority].max(worker.overrun[priority]);
    }
}

/// Hands the counts of a window over when it has ended.
#[inline(always)]
fn window(worker: &mut Worker, settings: &Settings, now: u64) {
    if now < worker.window_ends {
        return;
    }
    if let Some(offered) = GENERATE_OFFER.get_ptr_mut(worker.window as u32) {
        for priority in 0..8 {
            // SAFETY: an entry of the map.
            unsafe { atomic::add(&raw mut (*offered)[priority], worker.offered[priority]) };
        }
    }
    worker.offered = [0; 8];
    let window = now.saturating_sub(settings.epoch).checked_div(settings.width).unwrap_or(0);
    let last = settings.windows.saturating_sub(1);
    (worker.window, worker.window_ends) =
        if window < last { (window, settings.epoch + (window + 1) * settings.width) } else { (last, u64::MAX) };
}
