//! PAUSE and PFC frames: how long they pause whom, and their octets.

use crate::{CONTROLS, PAUSE};
use aya_ebpf::bindings::BPF_RB_NO_WAKEUP;
use aya_ebpf::helpers::bpf_ktime_get_ns;
use core::ptr;
use pfc_ebpf::abi::watch::{Config, Control, Counters, HEADERS, PAUSED, PauseClock, WHOLE_LINK};
use pfc_ebpf::bpf::{atomic, verifier};
use pfc_ebpf::observe::{Pauses, Tag};
use pfc_ebpf::units::Quanta;

/// Accounts for a MAC control frame; `None`: one that is malformed, and pauses nothing.
#[inline(always)]
pub fn account(
    port: u32,
    config: &Config,
    counters: &mut Counters,
    length: usize,
    tag: Option<Tag>,
    control: Option<&Pauses>,
    load: impl FnOnce(*mut u8, u32) -> i64,
) {
    // SAFETY: the helper has no preconditions.
    let now = unsafe { bpf_ktime_get_ns() };
    if let Some(control) = control {
        if !control.pfc {
            pause(port, config, WHOLE_LINK as u32, now, control.quanta[0]);
        }
        for priority in 0..8 {
            if control.vector & (1 << priority) != 0 {
                pause(
                    port,
                    config,
                    priority,
                    now,
                    control.quanta[priority as usize & 7],
                );
            }
        }
    }
    if config.capture != 0 && !record(port, length, tag, now, load) {
        counters.controls_lost += 1;
    }
}

/// A class is paused from now on for as long as `quanta` say; what of its former pause had run is
/// added up.
#[inline(always)]
fn pause(port: u32, config: &Config, class: u32, now: u64, quanta: u16) {
    let Some(clock) = PAUSE.get_ptr_mut(port * PAUSED as u32 + class) else {
        return;
    };
    // Exact up to the longest pause time, and without the division of 128 bits that BPF lacks.
    let lasts = (quanta as u64 * Quanta::BITS * 1_000_000_000)
        .checked_div(config.line_rate)
        .unwrap_or(0);
    // SAFETY: an entry of the map. MAC control frames of a port come through one queue, so that one
    // CPU writes at a time; where a driver moves them to another queue, only one of the two
    // adds up the same pause. Userspace reads until nothing changes.
    unsafe {
        let at = ptr::read_volatile(&raw const (*clock).at);
        let until = ptr::read_volatile(&raw const (*clock).until);
        if atomic::compare_exchange(&raw mut (*clock).at, at, now) == at {
            atomic::add(
                &raw mut (*clock).paused,
                PauseClock {
                    paused: 0,
                    at,
                    until,
                }
                .paused(now),
            );
            ptr::write_volatile(&raw mut (*clock).until, now + lasts);
        }
    }
}

/// Keeps the octets; false: they did not fit.
#[inline(always)]
fn record(
    port: u32,
    length: usize,
    tag: Option<Tag>,
    now: u64,
    load: impl FnOnce(*mut u8, u32) -> i64,
) -> bool {
    let Some(mut entry) = CONTROLS.reserve::<Control>(0) else {
        return false;
    };
    let record = entry.as_mut_ptr();
    let Tag { tpid, tci } = tag.unwrap_or(Tag { tpid: 0, tci: 0 });
    let kept = verifier::count(length, HEADERS);
    // SAFETY: the entry is ours until it is submitted, and as long as its type.
    let whole = unsafe {
        ptr::write_bytes(record, 0, 1);
        (*record).time = now;
        (*record).length = length as u32;
        (*record).tpid = tpid;
        (*record).tci = tci;
        (*record).port = port;
        load((&raw mut (*record).octets).cast(), kept) == 0
    };
    // Userspace looks at times of its own.
    if whole {
        entry.submit(BPF_RB_NO_WAKEUP as u64);
    } else {
        entry.discard(BPF_RB_NO_WAKEUP as u64);
    }
    whole
}
