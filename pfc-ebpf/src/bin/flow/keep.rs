//! Whole frames for userspace, from however many pieces they are in.

use aya_ebpf::bindings::{BPF_RB_NO_WAKEUP, xdp_md};
use aya_ebpf::helpers::generated::bpf_xdp_load_bytes;
use aya_ebpf::macros::map;
use aya_ebpf::maps::PerCpuArray;
use core::slice;
use pfc_ebpf::abi::flow::{LONGEST, RecordHead};
use pfc_ebpf::bpf::verifier;

use crate::{CAPTURE, NEIGHBOURS};

const HEAD: usize = size_of::<RecordHead>();

/// A record before it is put into a ring: rings take records of unknown length from memory alone.
#[repr(C)]
struct Record {
    head: RecordHead,
    octets: [u8; LONGEST],
}

#[map]
static SCRATCH: PerCpuArray<Record> = PerCpuArray::with_max_entries(1, 0);

/// Copies a frame to the capture, or to the ring of ARP and ND; false: there was no room. A
/// function of its own, to have its code once.
#[inline(never)]
pub fn keep(ctx: *mut xdp_md, length: usize, now: u64, capture: bool) -> bool {
    let Some(record) = SCRATCH.get_ptr_mut(0) else {
        return false;
    };
    let kept = verifier::count(length, LONGEST);
    // SAFETY: this CPU's value, which no other run of the program on this CPU interrupts; the
    // helper checks the frame's end.
    let loaded = unsafe {
        (*record).head = RecordHead {
            time: now,
            length: length as u64,
        };
        bpf_xdp_load_bytes(ctx, 0, (&raw mut (*record).octets).cast(), kept)
    };
    if loaded != 0 {
        return false;
    }
    // SAFETY: within the value.
    let octets = unsafe {
        slice::from_raw_parts(
            record.cast::<u8>(),
            HEAD + verifier::count(length, LONGEST) as usize,
        )
    };
    // The reader of captures looks at times of its own: a wake-up a frame would cost more than the
    // frame. Whoever asks for an address waits for the answer.
    if capture {
        CAPTURE
            .output::<[u8]>(octets, BPF_RB_NO_WAKEUP as u64)
            .is_ok()
    } else {
        NEIGHBOURS.output::<[u8]>(octets, 0).is_ok()
    }
}
