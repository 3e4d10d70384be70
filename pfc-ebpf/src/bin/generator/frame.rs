//! Writes into the frame at hand. Every octet that could differ is written every time, for pages
//! come back from whoever received them: the block, and the stamp.
//!
//! BPF stores a word at any address, but the compiler, which does not know that, would store it
//! octet by octet: so the stores are written out.

use aya_ebpf::bindings::xdp_action;
use aya_ebpf::helpers::generated::bpf_xdp_adjust_tail;
use aya_ebpf::programs::XdpContext;
use core::arch::asm;
use pfc_ebpf::abi::generate::{BLOCK, Flow, SHORT, SHORTEST, VARIABLE, variable};
use pfc_ebpf::flow_stamp::{SHORT_LEN, short_stamp};
use pfc_ebpf::stamp::LEN;

use super::Sending;
use crate::sending::Own;

/// Stores eight octets, `AT` octets behind `base`.
///
/// # Safety
/// The octets lie in the packet, by a check that the verifier has seen.
#[inline(always)]
unsafe fn store<const AT: usize>(base: usize, value: u64) {
    // SAFETY: as the caller says.
    unsafe {
        asm!(
            "*(u64 *)({0} + {at}) = {1}",
            in(reg) base,
            in(reg) value,
            at = const AT,
            options(nostack, preserves_flags)
        )
    }
}

/// Stores four octets.
///
/// # Safety
/// The conditions are those of [`store`].
#[inline(always)]
unsafe fn store_half(at: usize, value: u32) {
    // SAFETY: as the caller says.
    unsafe {
        asm!(
            "*(u32 *)({0} + 0) = {1}",
            in(reg) at,
            in(reg) value,
            options(nostack, preserves_flags)
        )
    }
}

/// Stores a word of a stamp in network order, `AT` octets behind `base`.
///
/// # Safety
/// The conditions are those of [`store`].
#[inline(always)]
unsafe fn store_word<const AT: usize>(base: usize, value: u16) {
    // SAFETY: as the caller says.
    unsafe {
        asm!(
            "*(u16 *)({0} + {at}) = {1}",
            in(reg) base,
            in(reg) value.to_be() as u64,
            at = const AT,
            options(nostack, preserves_flags)
        )
    }
}

/// Stores words of `$block` where they belong behind `$base`.
macro_rules! store_words {
    ($base:expr, $block:expr, $($word:literal)*) => {{
        $(store::<{ 8 * $word }>($base, $block[$word]);)*
    }};
}

/// Makes the frame the next one of `flow`; false where it is too short, which userspace sees to
/// that it is not.
#[inline(always)]
pub fn write(ctx: &XdpContext, flow: &Flow, now: u64, now_sum: u64) -> bool {
    let (data, end) = (ctx.data(), ctx.data_end());
    if data + BLOCK <= end {
        const { assert!(BLOCK == 11 * 8) };
        // SAFETY: checked just now.
        unsafe { store_words!(data, flow.block, 0 1 2 3 4 5 6 7 8 9 10) };
    } else {
        // Then headers and stamp end at a multiple of four, and all flows have frames of that
        // length.
        if data + SHORTEST > end {
            return false;
        }
        const { assert!(SHORTEST == 7 * 8 + 4) };
        // SAFETY: checked just now.
        unsafe { store_words!(data, flow.block, 0 1 2 3 4 5 6) };
        for half in SHORTEST / 4 - 1..BLOCK / 4 {
            if data + 4 * half + 4 > end {
                break;
            }
            let value = flow.block[half / 2].to_le() >> (32 * (half % 2));
            // SAFETY: checked just now.
            unsafe { store_half(data + 4 * half, value as u32) };
        }
    }
    let at = data + (flow.stamp_at as usize & Own::STAMP_AT);
    if Own::BEYOND_BLOCK && flow.stamp_at & SHORT != 0 {
        if at + SHORT_LEN > end {
            return false;
        }
        let [head, middle, check] = short_stamp(flow.sum as u16, flow.sequence as u16);
        // SAFETY: checked just now.
        unsafe {
            store_word::<0>(at, head);
            store_word::<2>(at, middle);
            store_word::<4>(at, check);
        }
        return true;
    }
    let [head, tail] = variable(flow.sum, flow.sequence, now, now_sum);
    if at + LEN > end {
        return false;
    }
    // SAFETY: checked just now.
    unsafe {
        if Own::BEYOND_BLOCK {
            store::<0>(at, flow.head);
        }
        store::<{ LEN - VARIABLE }>(at, head);
        store::<{ LEN - 8 }>(at, tail);
    }
    true
}

/// Gives the frame its length and sends it.
#[inline(always)]
pub fn trim(ctx: &XdpContext, flow: &Flow) -> u32 {
    if flow.trim > 0 {
        // SAFETY: the program's own context. It cannot fail: the frame is as long as the longest
        // flow's.
        unsafe { bpf_xdp_adjust_tail(ctx.ctx, -(flow.trim as i32)) };
    }
    xdp_action::XDP_TX
}
