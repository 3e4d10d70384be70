//! PAUSE and PFC frames.

use crate::{Frame, PAUSE, atomic, record};
use core::ptr;
use pfc_ebpf::maps::{ClassCounters, Config, OffenceKind, PauseState, PortCounters};
use pfc_ebpf::units::Quanta;
use pfc_ebpf::wire::mac_control::MacControl;
use pfc_ebpf::wire::{Octets, ethernet};

use crate::packet::Packet;

/// The entry of PAUSE for 802.3x.
const WHOLE_LINK: usize = 8;

/// Counts a well-formed PAUSE or PFC frame.
#[inline(always)]
pub fn account(frame: &Frame, port: &mut PortCounters, packet: &Packet, control: &MacControl) {
    match *control {
        MacControl::Pause { quanta } => class(frame, &mut port.pause, WHOLE_LINK, quanta),
        MacControl::Pfc { vector, quanta } => {
            port.pfc_frames += 1;
            port.pfc_empty += (vector & 0xff == 0) as u64;
            for priority in 0..8 {
                if vector & (1 << priority) != 0 {
                    class(frame, &mut port.pfc[priority], priority, quanta[priority]);
                }
            }
        }
    }
    let source = packet.get(ethernet::SOURCE).unwrap_or([0; 6]);
    record::control(frame, port, control, source);
    if is_own(frame, packet) {
        port.own_control += 1;
        record::offence(frame, port, OffenceKind::OwnControl, 0);
    }
}

/// Whether the tester's own storm sent the frame.
#[inline(always)]
pub fn is_own(frame: &Frame, packet: &Packet) -> bool {
    packet.get(ethernet::SOURCE) == Some(frame.config.storm_source)
}

/// Nanoseconds that `quanta` last; exact up to the longest pause time, and without the division of 128 bits that BPF lacks.
#[inline(always)]
fn nanos(quanta: u16, config: &Config) -> u64 {
    (quanta as u64 * Quanta::BITS * 1_000_000_000).checked_div(config.line_rate).unwrap_or(0)
}

#[inline(always)]
fn class(frame: &Frame, counts: &mut ClassCounters, class: usize, quanta: u16) {
    counts.frames += 1;
    counts.last_quanta = quanta as u64;
    counts.last = frame.now;
    if quanta > 0 {
        counts.xoff += 1;
    } else {
        counts.xon += 1;
    }
    if let Some(state) = PAUSE.get_ptr_mut(class as u32) {
        // SAFETY: an entry of the map. Userspace reads it while it changes: each word is written at once, and the beginning
        // of a pause before its end, so that whoever sees the pause sees its beginning.
        unsafe { pause(state, frame.now, nanos(quanta, frame.config), quanta > 0) };
    }
}

/// # Safety
/// `state` points to an entry of PAUSE.
#[inline(always)]
unsafe fn pause(state: *mut PauseState, now: u64, lasts: u64, xoff: bool) {
    // SAFETY: as the caller says.
    unsafe {
        if ptr::read_volatile(&raw const (*state).until) <= now {
            ptr::write_volatile(&raw mut (*state).since, now);
        }
        ptr::write_volatile(&raw mut (*state).until, now + lasts);
        atomic::add(if xoff { &raw mut (*state).xoff } else { &raw mut (*state).xon }, 1);
    }
}
