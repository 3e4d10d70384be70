//! Writes into the frame at hand. Every octet that could differ is written every time, for pages come back from whoever
//! received them.
//!
//! BPF stores a word at any address, but the compiler, which does not know that, would store it octet by octet: so the stores
//! are written out.

use aya_ebpf::bindings::xdp_action;
use aya_ebpf::helpers::generated::bpf_xdp_adjust_tail;
use aya_ebpf::programs::XdpContext;
use core::arch::asm;
use pfc_ebpf::generate::{BLOCK, Flow, SHORTEST, VARIABLE, variable};

/// Stores eight octets.
///
/// # Safety
/// `at` to `at + 8` lies in the packet, by a check that the verifier has seen.
#[inline(always)]
unsafe fn store(at: usize, value: u64) {
    // SAFETY: as the caller says.
    unsafe { asm!("*(u64 *)({0} + 0) = {1}", in(reg) at, in(reg) value, options(nostack, preserves_flags)) }
}

/// Stores four octets.
///
/// # Safety
/// As of [`store`].
#[inline(always)]
unsafe fn store_half(at: usize, value: u32) {
    // SAFETY: as the caller says.
    unsafe { asm!("*(u32 *)({0} + 0) = {1}", in(reg) at, in(reg) value, options(nostack, preserves_flags)) }
}

/// Makes the frame the next one of `flow`; false where it is too short, which userspace sees to that it is not.
#[inline(always)]
pub fn write(ctx: &XdpContext, flow: &Flow, now: u64, now_sum: u64) -> bool {
    let (data, end) = (ctx.data(), ctx.data_end());
    if data + BLOCK <= end {
        for word in 0..BLOCK / 8 {
            // SAFETY: checked just now.
            unsafe { store(data + 8 * word, flow.block[word]) };
        }
    } else {
        // Then headers and stamp end at a multiple of four, and all flows have frames of that length.
        if data + SHORTEST > end {
            return false;
        }
        for word in 0..SHORTEST / 8 {
            // SAFETY: checked just now.
            unsafe { store(data + 8 * word, flow.block[word]) };
        }
        for half in SHORTEST / 4..BLOCK / 4 {
            if data + 4 * half + 4 > end {
                break;
            }
            let value = flow.block[half / 2].to_le() >> (32 * (half % 2));
            // SAFETY: checked just now.
            unsafe { store_half(data + 4 * half, value as u32) };
        }
    }
    let [head, tail] = variable(flow.sum, flow.sequence, now, now_sum);
    let at = data + (flow.variable_at as usize & 127);
    if at + VARIABLE > end {
        return false;
    }
    // SAFETY: checked just now.
    unsafe {
        store(at, head);
        store(at + VARIABLE - 8, tail);
    }
    true
}

/// Gives the frame its length and sends it.
#[inline(always)]
pub fn trim(ctx: &XdpContext, flow: &Flow) -> u32 {
    if flow.trim > 0 {
        // SAFETY: the program's own context. It cannot fail: the frame is as long as the longest flow's.
        unsafe { bpf_xdp_adjust_tail(ctx.ctx, -(flow.trim as i32)) };
    }
    xdp_action::XDP_TX
}
