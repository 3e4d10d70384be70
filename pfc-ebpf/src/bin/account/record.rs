//! Records of single frames, for userspace to take after the repetition. What does not fit is counted.

use crate::{ARRIVALS, CONTROLS, Frame, OFFENCES};
use aya_ebpf::bindings::{BPF_RB_AVAIL_DATA, BPF_RB_NO_WAKEUP, xdp_md};
use aya_ebpf::helpers::generated::bpf_xdp_load_bytes;
use aya_ebpf::maps::RingBuf;
use core::ptr;
use pfc_ebpf::maps::{Arrival, Control, Offence, OffenceKind, PortCounters, SNAP_LEN};
use pfc_ebpf::stamp::Stamp;
use pfc_ebpf::wire::mac_control::MacControl;

/// Octets of OFFENCES that logged arrivals may fill: those of a probe are no offence, come first and are many.
const LOGGED_SHARE: u64 = 64 << 10;

#[inline(always)]
fn put<T: 'static>(ring: &RingBuf, lost: &mut u64, value: T) {
    match ring.reserve::<T>(0) {
        Some(mut entry) => {
            entry.write(value);
            entry.submit(BPF_RB_NO_WAKEUP as u64);
        }
        None => *lost += 1,
    }
}

/// Records the arrival of a test frame.
#[inline(always)]
pub fn arrival(frame: &Frame, port: &mut PortCounters, stamp: &Stamp) {
    let record = Arrival {
        time: frame.now,
        sequence: stamp.sequence,
        latency: stamp.latency(frame.now).min(u32::MAX as u64) as u32,
        flow: stamp.flow,
        phase: stamp.phase as u8,
        _pad: 0,
    };
    put(&ARRIVALS, &mut port.arrivals_lost, record);
}

/// Records a PAUSE or PFC frame.
#[inline(always)]
pub fn control(frame: &Frame, port: &mut PortCounters, control: &MacControl, source: [u8; 6]) {
    let (vector, quanta) = match *control {
        MacControl::Pause { quanta } => (0, [quanta, 0, 0, 0, 0, 0, 0, 0]),
        MacControl::Pfc { vector, quanta } => (vector, quanta),
    };
    let record = Control { time: frame.now, opcode: control.opcode(), vector, quanta, source, _pad: [0; 6] };
    put(&CONTROLS, &mut port.controls_lost, record);
}

/// Keeps the first octets of an offending frame.
#[inline(always)]
pub fn offence(frame: &Frame, port: &mut PortCounters, kind: OffenceKind, detail: u8) {
    if !keep(frame.ctx, frame.now, frame.length, kind as u8, detail) {
        port.offences_lost += 1;
    }
}

/// False: it did not fit. A function of its own, to have its code once.
#[inline(never)]
fn keep(ctx: *mut xdp_md, now: u64, length: usize, kind: u8, detail: u8) -> bool {
    if kind == OffenceKind::Logged as u8 && OFFENCES.query(BPF_RB_AVAIL_DATA as u64) >= LOGGED_SHARE {
        // ARRIVALS has it.
        return true;
    }
    let Some(mut entry) = OFFENCES.reserve::<Offence>(0) else { return false };
    let record = entry.as_mut_ptr();
    let kept = if length < SNAP_LEN { length } else { SNAP_LEN };
    // SAFETY: the entry is ours until it is submitted, and as long as its type; the helper checks the packet's end.
    unsafe {
        ptr::write_bytes(record, 0, 1);
        (*record).time = now;
        (*record).length = length as u16;
        (*record).kept = kept as u16;
        (*record).kind = kind;
        (*record).detail = detail;
        if kept > 0 {
            bpf_xdp_load_bytes(ctx, 0, (&raw mut (*record).snap).cast(), kept as u32);
        }
    }
    entry.submit(BPF_RB_NO_WAKEUP as u64);
    true
}
