//! A look at the clock, and all that has to be done with time.

use aya_ebpf::bindings::BPF_RB_NO_WAKEUP;
use aya_ebpf::helpers::bpf_ktime_get_ns;
use core::ptr;
use pfc_ebpf::generate::{BATCH, HELD, Lanes, STALL, Settings, Span, Worker, look, words};
use pfc_ebpf::stamp::MASK_48;

use super::{GENERATE, GENERATE_LANES, GENERATE_OFFER, GENERATE_SPANS};
use crate::{PAUSE, atomic};

/// False: the burst is over.
#[inline(always)]
pub fn look(worker: &mut Worker, run: u64) -> bool {
    let Some(settings) = GENERATE.get(0) else { return false };
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
    if now >= worker.window_ends {
        window(worker, settings, now);
    }
    let begins = run % BATCH as u64 == 0;
    if begins {
        worker.batch_from = now;
        worker.octets_before = worker.octets;
        worker.octets = [0; 8];
    }
    if begins || over || worker.look == look::PFC || worker.paused != 0 {
        pfc(worker, over);
    }
    worker.look = look::NONE;
    worker.over = over as u64;
    !over
}

/// Looks at what PFC holds back.
#[inline(always)]
fn pfc(worker: &mut Worker, over: bool) {
    let Some(lanes) = GENERATE_LANES.get_ptr_mut(0) else { return };
    // SAFETY: an entry of the map. Others read it while the worker that leads writes: word by word, each at once.
    let lanes = unsafe { &mut *lanes };
    let paused = paused(worker);
    if paused & !worker.paused != 0 {
        overrun(worker, paused & !worker.paused);
    }
    if worker.leads != 0 && (paused | lanes.held) != 0 {
        stand_still(worker, lanes, paused, over);
    }
    worker.paused = paused;
    worker.lanes_at = worker.now;
    // SAFETY: as above.
    let held = paused | unsafe { ptr::read_volatile(&raw const lanes.held) };
    for priority in 0..8 {
        // SAFETY: as above.
        let behind = unsafe { ptr::read_volatile(&raw const lanes.behind[priority]) };
        worker.behind[priority] = if held & (1 << priority) != 0 { HELD } else { behind };
    }
}

/// The priorities that PFC pauses now, as a bit mask.
#[inline(always)]
fn paused(worker: &Worker) -> u64 {
    let mut paused = 0;
    for priority in 0..8 {
        if let Some(state) = PAUSE.get_ptr(priority) {
            // SAFETY: an entry of the map; the word is read at once.
            paused |= ((unsafe { ptr::read_volatile(&raw const (*state).until) } > worker.now) as u64) << priority;
        }
    }
    paused & worker.honoured
}

/// Keeps the clocks of the priorities. Those held back at either end of the time since the last look stood still all along, for
/// it is not known when that changed.
#[inline(always)]
fn stand_still(worker: &mut Worker, lanes: &mut Lanes, paused: u64, over: bool) {
    let stood = lanes.held | paused;
    for priority in 0..8 {
        let bit = 1 << priority;
        if stood & bit != 0 {
            lanes.behind[priority] += worker.now - worker.lanes_at;
        }
        if paused & !lanes.held & bit != 0 {
            lanes.since[priority] = worker.lanes_at;
        }
    }
    let ended = if over { stood } else { stood & !paused };
    if ended != 0 {
        close(worker, lanes, ended);
    }
    lanes.held = paused;
}

/// Records for how long these priorities were held back.
#[inline(always)]
fn close(worker: &mut Worker, lanes: &Lanes, priorities: u64) {
    for priority in 0..8 {
        if priorities & (1 << priority) != 0 {
            record(worker, Span { what: priority, from: lanes.since[priority as usize], to: worker.now });
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

/// Hands the counts of a window that has ended over.
#[inline(always)]
fn window(worker: &mut Worker, settings: &Settings, now: u64) {
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
