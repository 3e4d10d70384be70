//! Records of single frames, for userspace to take after the repetition. What does not fit is
//! counted.

use crate::{ARRIVALS, CONTROLS, Frame, OFFENCES, Port};
use aya_ebpf::bindings::{BPF_RB_AVAIL_DATA, BPF_RB_NO_WAKEUP, xdp_md};
use aya_ebpf::helpers::generated::bpf_xdp_load_bytes;
use aya_ebpf::maps::RingBuf;
use core::arch::asm;
use core::ptr;
use pfc_ebpf::abi::account::{Arrival, Control, Offence, OffenceKind, SNAP_LEN};
use pfc_ebpf::bpf::verifier;
use pfc_ebpf::stamp::Stamp;

/// Octets of OFFENCES beyond which nothing is kept that has a log of its own: arrivals of a probe,
/// which are no offence, come first and are many, and so are PAUSE/PFC frames of another form.
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
pub fn arrival(now: u64, port: &mut Port, stamp: &Stamp) {
    let record = Arrival {
        time: now,
        sequence: stamp.sequence,
        latency: stamp.latency(now).min(u32::MAX as u64) as u32,
        flow: stamp.flow,
        phase: stamp.phase as u8,
        _pad: 0,
    };
    put(&ARRIVALS, &mut port.counters.arrivals_lost, record);
}

/// The place in the log for the next PAUSE or PFC frame; `None`: there is none left, which is
/// counted.
#[inline(always)]
pub fn place(port: &mut Port) -> Option<*mut Control> {
    let place = port.local.log_next;
    if place >= port.local.log_end {
        port.counters.controls_lost += 1;
        return None;
    }
    let record = CONTROLS.get_ptr_mut(place)?;
    port.local.log_next = place + 1;
    Some(record)
}

/// Records a PAUSE or PFC frame. `quanta` are as the record has them.
#[inline(always)]
pub fn control(place: Option<*mut Control>, now: u64, opcode: u16, vector: u16, quanta: [u64; 2]) {
    let Some(record) = place else { return };
    // SAFETY: an entry of the map that this CPU alone writes, once. Userspace, which may be
    // looking, takes the record for whole when it sees the time.
    unsafe {
        (*record).opcode = opcode;
        (*record).vector = vector;
        (*record).quanta = quanta;
        publish(&raw mut (*record).time, now);
    }
}

/// Stores `*at = value` after all stores before it, as other CPUs see them.
///
/// # Safety
/// `at` points to an aligned value of a map.
#[inline(always)]
unsafe fn publish(at: *mut u64, value: u64) {
    if cfg!(bpf_target_arch = "x86_64") {
        // Its stores are seen in the order of the program.
        // SAFETY: as the caller says.
        unsafe { ptr::write_volatile(at, value) }
    } else {
        // SAFETY: as the caller says. An exchange is a full barrier.
        unsafe { asm!("{1} = xchg_64({0} + 0, {1})", in(reg) at, inlateout(reg) value => _) }
    }
}

/// Keeps the first octets of an offending frame.
#[inline(always)]
pub fn offence(frame: &Frame, now: u64, port: &mut Port, kind: OffenceKind, detail: u8) {
    if !keep(frame.ctx, now, frame.length, kind as u8, detail) {
        port.counters.offences_lost += 1;
    }
}

/// False: it did not fit. A function of its own, to have its code once.
#[inline(never)]
fn keep(ctx: *mut xdp_md, now: u64, length: usize, kind: u8, detail: u8) -> bool {
    let is_logged = kind == OffenceKind::Logged as u8 || kind == OffenceKind::Deviation as u8;
    if is_logged && OFFENCES.query(BPF_RB_AVAIL_DATA as u64) >= LOGGED_SHARE {
        // ARRIVALS or CONTROLS has it.
        return true;
    }
    let Some(mut entry) = OFFENCES.reserve::<Offence>(0) else {
        return false;
    };
    let record = entry.as_mut_ptr();
    let kept = verifier::count(length, SNAP_LEN);
    // SAFETY: the entry is ours until it is submitted, and as long as its type; the helper checks
    // the packet's end.
    unsafe {
        zero(record);
        (*record).time = now;
        (*record).length = length as u16;
        (*record).kept = kept as u16;
        (*record).kind = kind;
        (*record).detail = detail;
        bpf_xdp_load_bytes(ctx, 0, (&raw mut (*record).snap).cast(), kept);
    }
    entry.submit(BPF_RB_NO_WAKEUP as u64);
    true
}

/// Zeroes a record by words: as a memset, which the linker has as a loop of octets, it would be
/// most of what the verifier walks.
///
/// # Safety
/// `record` is valid for writes.
#[inline(always)]
unsafe fn zero(record: *mut Offence) {
    for word in 0..size_of::<Offence>() / size_of::<u64>() {
        // SAFETY: as the caller says. Volatile, or the compiler makes a memset of it.
        unsafe { ptr::write_volatile(record.cast::<u64>().add(word), 0) };
    }
}
