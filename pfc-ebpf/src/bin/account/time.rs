//! The time of frames: a reading of the clock costs more than all else that is done for a frame.

use crate::Frame;
use aya_ebpf::helpers::bpf_ktime_get_ns;
use aya_ebpf::helpers::generated::bpf_jiffies64;
use pfc_ebpf::abi::account::{BATCH, Clock, Local, SPACING};
use pfc_ebpf::stamp::Stamp;

/// The clock's reading.
#[inline(always)]
pub fn now() -> u64 {
    // SAFETY: the helper has no preconditions.
    unsafe { bpf_ktime_get_ns() }
}

/// The time of a test frame that is not logged.
#[inline(always)]
pub fn of_frame(frame: &Frame, local: &mut Local, stamp: &Stamp) -> u64 {
    if frame.config.clock == Clock::Exact as u8 {
        return now();
    }
    // SAFETY: the helper has no preconditions; the kernel puts a load in its place.
    let tick = unsafe { bpf_jiffies64() };
    if local.left > 0 && tick == local.tick && stamp.is_sent_by(local.now) {
        local.left -= 1;
        return local.now;
    }
    let now = now();
    let served = local.serves - local.left;
    local.serves = if now - local.now <= SPACING * served {
        BATCH
    } else {
        1
    };
    local.left = local.serves - 1;
    local.tick = tick;
    local.now = now;
    now
}
