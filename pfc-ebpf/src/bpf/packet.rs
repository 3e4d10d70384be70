//! A packet as the wire parsers want it: each access checked against its end, in the form that the
//! verifier follows.

use crate::bpf::verifier::{at_most, opaque};
use crate::filling::{self, Filled};
use crate::wire::{MAX_SUM, Octets, Part, fold};
use aya_ebpf::bindings::xdp_md;
use aya_ebpf::helpers::generated::bpf_csum_diff;
use aya_ebpf::programs::XdpContext;
use core::arch::asm;
use core::hint::assert_unchecked;
use core::ptr;

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
        Self {
            ctx: ctx.ctx,
            data: ctx.data(),
            end: ctx.data_end(),
        }
    }
}

/// `N` octets of the packet, the first at this address.
#[derive(Clone, Copy)]
pub struct At<const N: usize>(usize);

/// Loads a number from wherever it stands, in one instruction. The compiler would put it together
/// octet by octet, because BPF as such knows no unaligned access; the kernel allows it in packets
/// where the machine is good at it.
#[cfg(any(
    bpf_target_arch = "x86_64",
    bpf_target_arch = "aarch64",
    bpf_target_arch = "powerpc64",
    bpf_target_arch = "s390x"
))]
macro_rules! load {
    ($number:ty, $instruction:literal, $at:expr, $offset:ident) => {{
        let found: u64;
        // SAFETY: reads octets of the packet, as the verifier checks. Such a load clears the bits
        // above them.
        unsafe {
            asm!(
                $instruction,
                lateout(reg) found,
                in(reg) $at,
                at = const $offset,
                options(pure, readonly, nostack, preserves_flags)
            );
            assert_unchecked(found <= <$number>::MAX as u64);
        };
        found as $number
    }};
}

#[cfg(not(any(
    bpf_target_arch = "x86_64",
    bpf_target_arch = "aarch64",
    bpf_target_arch = "powerpc64",
    bpf_target_arch = "s390x"
)))]
macro_rules! load {
    ($number:ty, $instruction:literal, $at:expr, $offset:ident) => {{
        // SAFETY: octets of the packet; the verifier checks that they are.
        <$number>::from_ne_bytes(unsafe {
            ptr::read(($at + $offset) as *const [u8; size_of::<$number>()])
        })
    }};
}

impl<const N: usize> Part for At<N> {
    type Inner<const M: usize> = At<M>;

    #[inline(always)]
    fn inner<const AT: usize, const M: usize>(self) -> At<M> {
        const { assert!(AT + M <= N) };
        At(self.0 + AT)
    }

    #[inline(always)]
    fn octet<const AT: usize>(self) -> u8 {
        const { assert!(AT < N) };
        // SAFETY: an octet of the packet, as was checked when the part was made.
        unsafe { ptr::read((self.0 + AT) as *const u8) }
    }

    #[inline(always)]
    fn word<const AT: usize>(self) -> u16 {
        const { assert!(AT + 2 <= N) };
        u16::from_be(load!(u16, "{0} = *(u16 *)({1} + {at})", self.0, AT))
    }

    #[inline(always)]
    fn long<const AT: usize>(self) -> u32 {
        const { assert!(AT + 4 <= N) };
        u32::from_be(load!(u32, "{0} = *(u32 *)({1} + {at})", self.0, AT))
    }

    #[inline(always)]
    fn quad<const AT: usize>(self) -> u64 {
        const { assert!(AT + 8 <= N) };
        u64::from_be(load!(u64, "{0} = *(u64 *)({1} + {at})", self.0, AT))
    }
}

impl Octets for Packet {
    type Part<const N: usize> = At<N>;

    #[inline(always)]
    fn part<const N: usize>(&self, offset: usize) -> Option<At<N>> {
        if offset > MAX_OFFSET {
            return None;
        }
        let at = opaque(self.data + offset);
        if at + N > self.end {
            return None;
        }
        Some(At(at))
    }

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
        // SAFETY: the context that the program was called with.
        match unsafe { packet_sum(self.ctx, offset as u64, length as u64) } {
            NONE => None,
            sum => Some((sum as u16).to_be()),
        }
    }
}

impl Filled for Packet {
    #[inline(always)]
    fn is_filling(&self, offset: usize, length: usize) -> bool {
        // SAFETY: the context that the program was called with.
        unsafe { packet_is_filling(self.ctx, offset as u64, length as u64) != 0 }
    }
}

impl<const N: usize> At<N> {
    /// The eight octets at `AT` as a little-endian number.
    #[inline(always)]
    fn eight<const AT: usize>(self) -> u64 {
        const { assert!(AT + 8 <= N) };
        u64::from_le(load!(u64, "{0} = *(u64 *)({1} + {at})", self.0, AT))
    }
}

/// Adds the `N` octets (a multiple of four) at `at` to `sum`, or returns from the function where
/// the packet ends before them.
macro_rules! add {
    ($sum:ident, $at:expr, $octets:expr, $end:ident) => {{
        let at = opaque($at);
        if at + $octets > $end {
            return NONE;
        }
        // SAFETY: the octets are in the packet, as was just checked.
        $sum = unsafe { bpf_csum_diff(ptr::null_mut(), 0, at as *mut u32, $octets as u32, $sum) }
            as u32;
    }};
}

/// The ones-complement sum of `length` octets from `offset`, in the byte order of the machine;
/// [`NONE`] where there is none.
///
/// A global function, which the verifier walks by itself, once: with a static one, these steps were
/// three quarters of its work for `account`. (It needs the kernel's own BTF, to know the context.)
///
/// The helper wants sizes that the verifier knows, so that what is left after whole chunks is added
/// by halves; below 256 octets a call costs more than it saves. Each position is made anew from
/// `length` and not carried on from the one before, so that the paths into a step look alike and
/// are not walked again.
///
/// # Safety
///
/// `ctx` is the context that the program was called with.
#[inline(never)]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn packet_sum(ctx: *mut xdp_md, offset: u64, length: u64) -> u64 {
    let (offset, length) = (offset as usize, length as usize);
    if offset > MAX_OFFSET || length > MAX_SUM {
        return NONE;
    }
    // SAFETY: the program's own context, as the caller promises.
    let (data, end) = unsafe { ((*ctx).data as usize, (*ctx).data_end as usize) };
    let start = data + offset;
    let mut sum = 0;
    for chunk in 0..MAX_SUM / CHUNK {
        if (chunk + 1) * CHUNK > length {
            break;
        }
        add!(sum, start + chunk * CHUNK, CHUNK, end);
    }
    if length & 256 != 0 {
        add!(sum, start + (length & !511), 256, end);
    }
    let mut sum = sum as u64;
    macro_rules! rest {
        ($octets:literal: $($at:literal)*) => {
            if length & $octets != 0 {
                let at = opaque(start + (length & !(2 * $octets - 1)));
                if at + $octets > end {
                    return NONE;
                }
                let part = At::<$octets>(at);
                sum += 0 $(+ part.summand::<$at>())*;
            }
        };
    }
    rest!(
        128: 0 4 8 12 16 20 24 28 32 36 40 44 48 52 56 60 64 68 72 76 80 84 88 92 96 100 104 108 112
        116 120 124
    );
    rest!(64: 0 4 8 12 16 20 24 28 32 36 40 44 48 52 56 60);
    rest!(32: 0 4 8 12 16 20 24 28);
    rest!(16: 0 4 8 12);
    rest!(8: 0 4);
    rest!(4: 0);
    let mut sum = fold((sum >> 32) as u32 + fold(sum as u32) as u32) as u32;
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

/// 1 if `length` octets from `offset` are the [filling] behind a stamp, else 0.
///
/// A global function with positions made anew from `length`, as [`packet_sum`] and for its reasons.
/// Differences are gathered and looked at once, at the end: a branch for each eight octets would be
/// a path for each.
///
/// # Safety
///
/// `ctx` is the context that the program was called with.
#[inline(never)]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn packet_is_filling(ctx: *mut xdp_md, offset: u64, length: u64) -> u64 {
    const CHUNK: usize = 64;
    let (offset, length) = (offset as usize, length as usize);
    if offset > MAX_OFFSET || length > filling::MAX {
        return 0;
    }
    // SAFETY: the program's own context, as the caller promises.
    let (data, end) = unsafe { ((*ctx).data as usize, (*ctx).data_end as usize) };
    // Linux 6.1 has lost the bound of what was spilled since the check.
    let (start, length) = (
        data + at_most(offset, MAX_OFFSET),
        at_most(length, filling::MAX),
    );
    let mut differs = 0;
    macro_rules! compare {
        ($from:expr, $octets:expr, $eight:expr, $($at:literal)*) => {{
            let at = opaque(start + $from);
            if at + $octets > end {
                return 0;
            }
            let part = At::<{ $octets }>(at);
            let eight = $eight;
            differs |= 0 $(| part.eight::<{ 8 * $at }>()
                ^ eight.wrapping_add(filling::STEP.wrapping_mul($at)))*;
        }};
    }
    let mut eight = filling::eight(0);
    for chunk in 0..filling::MAX / CHUNK {
        if (chunk + 1) * CHUNK > length {
            break;
        }
        compare!(chunk * CHUNK, CHUNK, eight, 0 1 2 3 4 5 6 7);
        eight = eight.wrapping_add(filling::STEP.wrapping_mul(8));
    }
    macro_rules! rest {
        ($octets:literal: $($at:literal)*) => {
            if length & $octets != 0 {
                let from = length & !(2 * $octets - 1);
                compare!(from, $octets, filling::eight(from as u64 / 8), $($at)*);
            }
        };
    }
    rest!(32: 0 1 2 3);
    rest!(16: 0 1);
    rest!(8: 0);
    // The last eight, of which only the first octets are there.
    let eight = filling::eight(length as u64 / 8);
    macro_rules! octets {
        ($octets:literal: $($at:literal)*) => {
            if length & $octets != 0 {
                let from = length & !(2 * $octets - 1);
                let at = opaque(start + from);
                if at + $octets > end {
                    return 0;
                }
                let part = At::<$octets>(at);
                let expected = eight >> (8 * (from & 7));
                differs |= 0 $(| part.octet::<$at>() as u64 ^ expected >> (8 * $at) & 0xff)*;
            }
        };
    }
    octets!(4: 0 1 2 3);
    octets!(2: 0 1);
    octets!(1: 0);
    (differs == 0) as u64
}
