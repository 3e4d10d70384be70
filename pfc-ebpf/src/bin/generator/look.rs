//! A look at the clock.

use aya_ebpf::helpers::bpf_ktime_get_ns;
use core::ptr;
use pfc_ebpf::abi::generate::{Worker, words};
use pfc_ebpf::stamp::MASK_40;

use super::{GENERATE, Look, Sending};
use crate::sending::Own;

/// False: the burst is over.
#[inline(always)]
pub fn look(worker: &mut Worker, run: u64) -> bool {
    if worker.over != 0 {
        return false;
    }
    let Some(settings) = GENERATE.get(0) else {
        return false;
    };
    // SAFETY: the helper has no preconditions; userspace writes the word at any time.
    let (now, stop) = unsafe {
        (
            bpf_ktime_get_ns(),
            ptr::read_volatile(&raw const settings.stop),
        )
    };
    let over = now >= settings.to || stop != 0;
    // Never before the burst, nor behind what was.
    let now = now.min(settings.to).max(worker.now);
    let before = worker.now;
    worker.now = now;
    worker.now_sum = words(now & MASK_40);
    worker.excess.pass(now - before);
    Own::looked(worker, settings, &Look { run, before, over });
    worker.over = over as u64;
    worker.look = worker.over;
    !over
}
