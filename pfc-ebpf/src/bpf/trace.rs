//! Lines about single frames, in the traced variants of the objects alone. Userspace spells out the
//! numbers of phases, reasons and verdicts.

use aya_ebpf::helpers::bpf_ktime_get_ns;
use aya_ebpf::macros::map;
use aya_ebpf::maps::PerCpuArray;
use aya_log_ebpf::info;

use crate::stamp::Stamp;
use crate::units::SECOND;
use crate::wire::Malformed;
use crate::wire::mac_control::MacControl;

/// Lines that a CPU may write in a second, so that a traced program keeps up with its port.
const LINES: u64 = 100;

#[map]
static TRACE_BUDGET: PerCpuArray<Budget> = PerCpuArray::with_max_entries(1, 0);

/// The lines that a CPU has written in the present second.
#[repr(C)]
struct Budget {
    begin: u64,
    lines: u64,
}

/// The action of a program on a frame.
#[derive(Clone, Copy)]
pub enum Verdict {
    /// The stack gets it.
    Pass = 0,
    /// The frame ends here.
    Drop = 1,
}

#[inline(always)]
fn is_permitted() -> bool {
    let Some(budget) = TRACE_BUDGET.get_ptr_mut(0) else {
        return false;
    };
    // SAFETY: this CPU's value, which no other run of a program on this CPU interrupts.
    let budget = unsafe { &mut *budget };
    // SAFETY: the helper has no preconditions.
    let now = unsafe { bpf_ktime_get_ns() };
    if now - budget.begin >= SECOND {
        budget.begin = now;
        budget.lines = 0;
    }
    budget.lines += 1;
    budget.lines <= LINES
}

/// A test frame.
#[inline(always)]
pub fn test(stamp: &Stamp, verdict: Verdict) {
    test_line(
        stamp.run.into(),
        stamp.flow.into(),
        stamp.phase as u64,
        stamp.sequence,
        verdict as u64,
    );
}

// Functions of their own, to have their code once and a stack of their own.
#[inline(never)]
fn test_line(run: u64, flow: u64, phase: u64, sequence: u64, verdict: u64) {
    if is_permitted() {
        info!(
            (),
            "test frame: run {} flow {} phase={} sequence {}: verdict={}",
            run,
            flow,
            phase,
            sequence,
            verdict
        );
    }
}

/// A PAUSE or PFC frame.
#[inline(always)]
pub fn control(control: &MacControl, verdict: Verdict) {
    match *control {
        MacControl::Pause { quanta } => pause(quanta, verdict),
        MacControl::Pfc { vector, quanta } => pfc(vector, &quanta, verdict),
    }
}

/// A PAUSE frame.
#[inline(always)]
pub fn pause(quanta: u16, verdict: Verdict) {
    pause_line(quanta.into(), verdict as u64);
}

#[inline(never)]
fn pause_line(quanta: u64, verdict: u64) {
    if is_permitted() {
        info!((), "PAUSE: time {}: verdict={}", quanta, verdict);
    }
}

/// A PFC frame.
#[inline(always)]
pub fn pfc(vector: u16, quanta: &[u16; 8], verdict: Verdict) {
    let [a, b, c, d, e, f, g, h] = quanta.map(u64::from);
    pfc_line(
        vector.into(),
        a << 48 | b << 32 | c << 16 | d,
        e << 48 | f << 32 | g << 16 | h,
        verdict as u64,
    );
}

#[inline(never)]
fn pfc_line(vector: u64, low: u64, high: u64, verdict: u64) {
    if is_permitted() {
        info!(
            (),
            "PFC: vector 0x{:x} times {} {} {} {} {} {} {} {}: verdict={}",
            vector,
            low >> 48,
            low >> 32 & 0xffff,
            low >> 16 & 0xffff,
            low & 0xffff,
            high >> 48,
            high >> 32 & 0xffff,
            high >> 16 & 0xffff,
            high & 0xffff,
            verdict
        );
    }
}

/// A frame that is none of the test.
#[inline(always)]
pub fn other(dscp: Option<u8>, pcp: Option<u8>, verdict: Verdict) {
    let or_none = |mark: Option<u8>| match mark {
        Some(mark) => mark as i64,
        None => -1,
    };
    other_line(or_none(dscp), or_none(pcp), verdict as u64);
}

#[inline(never)]
fn other_line(dscp: i64, pcp: i64, verdict: u64) {
    if is_permitted() {
        info!(
            (),
            "other frame: DSCP={} PCP={}: verdict={}", dscp, pcp, verdict
        );
    }
}

/// A frame that could not be read.
#[inline(always)]
pub fn malformed(reason: Malformed, verdict: Verdict) {
    malformed_line(reason as u64, verdict as u64);
}

#[inline(never)]
fn malformed_line(reason: u64, verdict: u64) {
    if is_permitted() {
        info!(
            (),
            "malformed frame: reason={}: verdict={}", reason, verdict
        );
    }
}
