//! A packet as the wire parsers want it: each access checked against its end, in the form that the verifier follows.

use aya_ebpf::bindings::xdp_md;
use aya_ebpf::helpers::generated::bpf_csum_diff;
use aya_ebpf::programs::XdpContext;
use core::arch::asm;
use core::ptr;
use pfc_ebpf::wire::{MAX_SUM, Octets, fold};

/// Offsets that the verifier may have to consider; headers end well before.
const MAX_OFFSET: usize = 255;
/// Octets that `bpf_csum_diff` takes at once on every kernel.
const CHUNK: usize = 512;
/// No sum: no sum of 16-bit words folded to 16 bits looks like it.
const NONE: u64 = u64::MAX;

/// A packet between its first octet and the one after its last.
pub struct Packet {
    ctx: *mut xdp_md,
    data: usize,
    end: usize,
}

impl Packet {
    /// The packet that a program was called for.
    #[inline(always)]
    pub fn new(ctx: &XdpContext) -> Self {
        Self { ctx: ctx.ctx, data: ctx.data(), end: ctx.data_end() }
    }
}

/// Hides from the compiler how `address` was made. It would leave out a check that an earlier one implies, which the
/// verifier does not see where both positions vary.
#[inline(always)]
fn opaque(address: usize) -> usize {
    let same;
    // SAFETY: copies a register. (Without any instruction two line numbers would go to one place, which the kernel refuses.)
    unsafe { asm!("{0} = {1}", lateout(reg) same, in(reg) address, options(pure, nomem, nostack, preserves_flags)) };
    same
}

impl Octets for Packet {
    #[inline(always)]
    fn length(&self) -> usize {
        self.end - self.data
    }

    #[inline(always)]
    fn get<const N: usize>(&self, offset: usize) -> Option<[u8; N]> {
        if offset > MAX_OFFSET {
            return None;
        }
        let at = opaque(self.data + offset);
        if at + N > self.end {
            return None;
        }
        // SAFETY: the octets are in the packet, as was just checked.
        Some(unsafe { ptr::read(at as *const [u8; N]) })
    }

    #[inline(always)]
    fn sum(&self, offset: usize, length: usize) -> Option<u16> {
        match sum(self.ctx, offset, length) {
            NONE => None,
            sum => Some((sum as u16).to_be()),
        }
    }
}

/// Adds the `N` octets (a multiple of four) at `at` to `sum`, or returns from the function where the packet ends before them.
macro_rules! add {
    ($sum:ident, $at:expr, $octets:expr, $end:ident) => {{
        let at = opaque($at);
        if at + $octets > $end {
            return NONE;
        }
        // SAFETY: the octets are in the packet, as was just checked.
        $sum = unsafe { bpf_csum_diff(ptr::null_mut(), 0, at as *mut u32, $octets as u32, $sum) } as u32;
    }};
}

/// The ones-complement sum of `length` octets from `offset`, in the byte order of the machine; [`NONE`] where there is none.
///
/// A function of its own, for the verifier to walk once a call and not once a path. The helper wants sizes that the
/// verifier knows, so that what is left after whole chunks is added by halves. Each position is made anew from `length` and
/// not carried on from the one before, so that the paths into a step look alike and are not walked again.
#[inline(never)]
fn sum(ctx: *mut xdp_md, offset: usize, length: usize) -> u64 {
    if offset > MAX_OFFSET || length > MAX_SUM {
        return NONE;
    }
    // SAFETY: the program's own context.
    let (data, end) = unsafe { ((*ctx).data as usize, (*ctx).data_end as usize) };
    let start = data + offset;
    let mut sum = 0;
    for chunk in 0..MAX_SUM / CHUNK {
        if (chunk + 1) * CHUNK > length {
            break;
        }
        add!(sum, start + chunk * CHUNK, CHUNK, end);
    }
    macro_rules! rest {
        ($($octets:literal)*) => {$(
            if length & $octets != 0 {
                add!(sum, start + (length & !(2 * $octets - 1)), $octets, end);
            }
        )*};
    }
    rest!(256 128 64 32 16 8 4);
    let mut sum = fold(sum) as u32;
    if length & 2 != 0 {
        let at = opaque(start + (length & !3));
        if at + 2 > end {
            return NONE;
        }
        // SAFETY: the octets are in the packet, as was just checked.
        sum += u16::from_ne_bytes(unsafe { ptr::read(at as *const [u8; 2]) }) as u32;
    }
    if length & 1 != 0 {
        let at = opaque(start + (length & !1));
        if at + 1 > end {
            return NONE;
        }
        // SAFETY: the octet is in the packet, as was just checked.
        sum += u16::from_ne_bytes([unsafe { ptr::read(at as *const u8) }, 0]) as u32;
    }
    fold(sum) as u64
}
