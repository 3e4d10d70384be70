//! The first octets of a frame, copied by the kernel's helpers from however many fragments it is
//! in: one copy, whatever the driver or the stack left where.

use aya_ebpf::helpers::generated::bpf_csum_diff;
use aya_ebpf::macros::map;
use aya_ebpf::maps::PerCpuArray;
use core::ptr;
use pfc_ebpf::abi::watch::HEADERS;
use pfc_ebpf::bpf::verifier;
use pfc_ebpf::wire::{Octets, fold};

/// The longest header that is summed: IPv4 with all its options.
const MAX_SUMMED: usize = 60;

/// Buffer for the headers: the stack has no room for them.
#[map]
static SCRATCH: PerCpuArray<[u8; HEADERS]> = PerCpuArray::with_max_entries(1, 0);

/// The first [`HEADERS`] octets of a frame.
pub struct Headers {
    /// This CPU's copy, valid until the next frame.
    octets: *mut u8,
    /// Octets of the whole frame.
    length: usize,
    /// True where the frame was merged from several.
    merged: bool,
}

impl Headers {
    /// Loads the headers of a frame of `length` octets, which `load(to, count)` copies; `None`
    /// where that fails.
    #[inline(always)]
    pub fn load(length: usize, load: impl FnOnce(*mut u8, u32) -> i64) -> Option<Self> {
        let octets: *mut u8 = SCRATCH.get_ptr_mut(0)?.cast();
        if load(octets, verifier::count(length, HEADERS)) != 0 {
            return None;
        }
        Some(Self {
            octets,
            length,
            merged: false,
        })
    }

    /// Returns the headers, of a frame that was `merged` from several.
    #[inline(always)]
    pub fn merged(self, merged: bool) -> Self {
        Self { merged, ..self }
    }

    /// Returns the headers of a frame of `length` octets that were copied last.
    #[cfg(feature = "trace")]
    pub fn loaded(length: usize) -> Option<Self> {
        let octets = SCRATCH.get_ptr_mut(0)?.cast();
        Some(Self {
            octets,
            length,
            merged: false,
        })
    }
}

impl Octets for Headers {
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
    fn is_merged(&self) -> bool {
        self.merged
    }

    #[inline(always)]
    fn get<const N: usize>(&self, offset: usize) -> Option<[u8; N]> {
        if offset > HEADERS - N || offset + N > self.length {
            return None;
        }
        let offset = verifier::at_most(offset, HEADERS - N);
        // SAFETY: within the array, as was just checked; no other program run on this CPU
        // interrupts.
        Some(unsafe { ptr::read(self.octets.add(offset).cast()) })
    }

    #[inline(always)]
    fn sum(&self, offset: usize, length: usize) -> Option<u16> {
        if length > MAX_SUMMED || offset > HEADERS - MAX_SUMMED || offset + length > self.length {
            return None;
        }
        let offset = verifier::at_most(offset, HEADERS - MAX_SUMMED);
        let length = verifier::at_most(length, MAX_SUMMED) as u32;
        // SAFETY: within the array, as was just checked; no other program run on this CPU
        // interrupts.
        let sum = unsafe {
            let at = self.octets.add(offset).cast();
            bpf_csum_diff(ptr::null_mut(), 0, at, length, 0)
        };
        Some(fold(sum as u32).to_be())
    }
}
