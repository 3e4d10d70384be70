//! A packet as the wire parsers want it, in however many fragments it is: read by the kernel's
//! helpers, which check its end.
//!
//! Slower than pointers into the packet, which is no matter here: a requester that waits for its
//! timeout sends little. And right where a driver leaves less than the headers in the first
//! fragment.

use aya_ebpf::bindings::xdp_md;
use aya_ebpf::helpers::generated::{bpf_csum_diff, bpf_xdp_get_buff_len, bpf_xdp_load_bytes};
use aya_ebpf::programs::XdpContext;
use core::ptr;
use pfc_ebpf::bpf::verifier;
use pfc_ebpf::wire::{Octets, fold};

/// The longest header that is summed: IPv4 with all its options.
const MAX_SUMMED: usize = 60;

/// The packet that the program was called for.
pub struct Packet {
    ctx: *mut xdp_md,
    length: usize,
}

impl Packet {
    #[inline(always)]
    pub fn new(ctx: &XdpContext) -> Self {
        Self {
            ctx: ctx.ctx,
            // SAFETY: the program's own context.
            length: unsafe { bpf_xdp_get_buff_len(ctx.ctx) } as usize,
        }
    }

    /// Copies the first `length` octets to `to`; false where the packet has fewer.
    ///
    /// # Safety
    /// `to` has room for them, as the verifier sees.
    #[inline(always)]
    pub unsafe fn copy(&self, to: *mut u8, length: u32) -> bool {
        // SAFETY: as the caller says; the helper checks the packet's end.
        unsafe { bpf_xdp_load_bytes(self.ctx, 0, to.cast(), length) == 0 }
    }
}

impl Octets for Packet {
    type Part<const N: usize> = [u8; N];

    #[inline(always)]
    fn part<const N: usize>(&self, offset: usize) -> Option<[u8; N]> {
        self.get(offset)
    }

    #[inline(always)]
    fn length(&self) -> usize {
        self.length
    }

    #[inline(always)]
    fn get<const N: usize>(&self, offset: usize) -> Option<[u8; N]> {
        let mut octets = [0; N];
        // SAFETY: room for as many; the helper checks the packet's end.
        let result = unsafe {
            bpf_xdp_load_bytes(
                self.ctx,
                offset as u32,
                octets.as_mut_ptr().cast(),
                N as u32,
            )
        };
        if result == 0 { Some(octets) } else { None }
    }

    #[inline(always)]
    fn sum(&self, offset: usize, length: usize) -> Option<u16> {
        if length == 0 || length > MAX_SUMMED {
            return None;
        }
        let length = verifier::count(length, MAX_SUMMED);
        let mut octets = [0u8; MAX_SUMMED];
        let at = octets.as_mut_ptr();
        // SAFETY: room for `length` octets, as was just checked; those behind are zero, which
        // changes no sum.
        let sum = unsafe {
            if bpf_xdp_load_bytes(self.ctx, offset as u32, at.cast(), length) != 0 {
                return None;
            }
            bpf_csum_diff(ptr::null_mut(), 0, at.cast(), MAX_SUMMED as u32, 0)
        };
        Some(fold(sum as u32).to_be())
    }
}
