//! The frame that is being counted on this CPU.

use aya_ebpf::macros::map;
use aya_ebpf::maps::PerCpuArray;
use pfc_ebpf::abi::watch::{Untold, Volume};
use pfc_ebpf::wire::segment::Walk;

#[map]
static RUN: PerCpuArray<Run> = PerCpuArray::with_max_entries(1, 0);

/// A run of the programs on one frame.
#[repr(C)]
pub struct Run {
    /// The port, as its entry says.
    pub port: u64,
    /// Fields by which it is sorted.
    pub note: Note,
    /// Place in the headers of a merged packet.
    pub walk: Walk,
    /// Frames of which it is made.
    pub volume: Volume,
    /// Reason why the frames are unknown, where they are.
    pub untold: Option<Untold>,
}

/// Fields of a frame that is to be sorted.
#[repr(C)]
pub struct Note {
    /// Frames that were merged into this one, or 1; 0: it is not to be sorted.
    pub frames: u64,
    /// The entry of SKETCH.
    pub sketch: u64,
    /// Offset of the network header.
    pub network: u64,
    /// Offset of the payload's checksum from there; 0 where it has none that an offload fills in.
    pub checksum: u64,
    /// 1: the network header is one of IP.
    pub ip: u64,
}

/// This CPU's slot; no other program run interrupts it: programs run with softirqs off, each to its
/// end before the stack hands the frame to another port.
#[inline(always)]
pub fn present() -> Option<*mut Run> {
    RUN.get_ptr_mut(0)
}
