//! Frames sorted by the octets that no device on the way changes.
//!
//! A frame is counted first, which leaves a note of it, and sorted in a function of its own:
//! behind all that the parsers tell apart, the verifier would walk this once for each of their
//! paths.

use crate::SKETCH;
use crate::run::{self, Note};
use aya_ebpf::macros::map;
use aya_ebpf::maps::PerCpuArray;
use core::ptr;
use pfc_ebpf::abi::watch::{CLASSES, COMPARED};
use pfc_ebpf::bpf::verifier;
use pfc_ebpf::observe::Observed;
use pfc_ebpf::wire::ip;

/// Buffer for the octets: the stack has no room for them.
#[map]
static OCTETS: PerCpuArray<[u64; COMPARED / 8]> = PerCpuArray::with_max_entries(1, 0);

/// An odd number whose bits look random: 2^64 divided by the golden ratio.
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
/// Beyond any header before that of the network.
const MAX_NETWORK: usize = 64;

/// Leaves the note of a frame.
#[inline(always)]
pub fn note(sketch: u32, observed: &Observed, frames: u64) {
    const OF_UDP: usize = 6;
    const OF_TCP: usize = 16;
    let Some(run) = run::present() else {
        return;
    };
    let checksum = match observed.ip {
        Some(packet) if packet.protocol == ip::UDP => packet.payload + OF_UDP - observed.network,
        Some(packet) if packet.protocol == ip::TCP => packet.payload + OF_TCP - observed.network,
        _ => 0,
    };
    // SAFETY: this CPU's value, which no other run of this program on this CPU interrupts.
    unsafe {
        (*run).note = Note {
            frames,
            sketch: sketch as u64,
            network: observed.network as u64,
            checksum: checksum as u64,
            ip: observed.ip.is_some() as u64,
        };
    }
}

/// Sorts the frame of `length` octets that a note was left of; `load(from, to, count)` copies
/// octets of it.
#[inline(always)]
pub fn sort(length: usize, load: impl FnOnce(u32, *mut u8, u32) -> i64) {
    let Some(run) = run::present() else {
        return;
    };
    // SAFETY: values of this CPU, which no other run of this program on this CPU interrupts;
    // positions in them are bounded.
    unsafe {
        let note = &raw mut (*run).note;
        let frames = (*note).frames;
        (*note).frames = 0;
        let (Some(sketch), Some(octets)) = (
            SKETCH.get_ptr_mut((*note).sketch as u32),
            OCTETS.get_ptr_mut(0),
        ) else {
            return;
        };
        let octets = octets.cast::<u8>();
        ptr::write_bytes(octets, 0, COMPARED);
        if frames != 1 {
            (*sketch).unsorted += frames;
            return;
        }
        let network = verifier::at_most((*note).network as usize, MAX_NETWORK);
        // Right before the use: Linux 6.1 forgets the bound of a register that was spilled.
        let count = verifier::count(length.saturating_sub(network), COMPARED);
        if load(network as u32, octets, count) != 0 {
            (*sketch).unsorted += frames;
            return;
        }
        if (*note).ip != 0 {
            blank(octets);
        }
        let checksum = verifier::at_most((*note).checksum as usize, COMPARED - 2);
        if checksum != 0 {
            *octets.add(checksum) = 0;
            *octets.add(checksum + 1) = 0;
        }
        let hash = hash(octets.cast());
        (*sketch).digest = (*sketch).digest.wrapping_add(hash);
        let class = verifier::at_most((hash >> 32) as usize & (CLASSES - 1), CLASSES - 1);
        *(&raw mut (*sketch).classes).cast::<u64>().add(class) += 1;
    }
}

/// Blanks the fields of an IP header that change on the way: DSCP and ECN, TTL, checksum.
#[inline(always)]
unsafe fn blank(octets: *mut u8) {
    // SAFETY: within the buffer.
    unsafe {
        if *octets >> 4 == 4 {
            *octets.add(1) = 0;
            *octets.add(8) = 0;
            *octets.add(10) = 0;
            *octets.add(11) = 0;
        } else {
            *octets &= 0xf0;
            *octets.add(1) &= 0x0f;
            *octets.add(7) = 0;
        }
    }
}

/// A hash whose every bit depends on every octet.
#[inline(always)]
unsafe fn hash(words: *const u64) -> u64 {
    let mut hash = FACTOR;
    macro_rules! mix {
        ($($word:literal)*) => {$(
            // SAFETY: one of the words of the buffer.
            hash = (hash ^ unsafe { *words.add($word) }).wrapping_mul(FACTOR);
            hash ^= hash >> 32;
        )*};
    }
    mix!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15);
    // Once more, for the last word.
    hash = hash.wrapping_mul(FACTOR);
    hash ^ hash >> 29
}
