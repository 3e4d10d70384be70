//! PAUSE and PFC frames.

use core::ptr;

use pfc_ebpf::abi::flow::{Port, WHOLE_LINK};
use pfc_ebpf::abi::watch::PauseClock;
use pfc_ebpf::bpf::atomic;
use pfc_ebpf::bpf::packet::Packet;
use pfc_ebpf::units::Quanta;
use pfc_ebpf::wire::mac_control::MacControl;

use crate::{Frame, PAUSE, now};

/// Counts a MAC control frame, and publishes whom it pauses.
#[inline(always)]
pub fn account(frame: &Frame, port: &mut Port, packet: &Packet) {
    let Some(clocks) = PAUSE.get_ptr_mut(0) else {
        return;
    };
    match MacControl::parse(packet) {
        Ok(MacControl::Pause { quanta }) => {
            port.pause += 1;
            // SAFETY: an entry of the map's value.
            unsafe {
                pause(&raw mut (*clocks)[WHOLE_LINK], now(), quanta, frame.quantum);
            }
        }
        Ok(MacControl::Pfc { vector, quanta }) => {
            port.pfc += 1;
            let now = now();
            macro_rules! classes {
                ($($class:literal)*) => {$(
                    if vector & 1 << $class != 0 {
                        port.pfc_by_class[$class] += 1;
                        // SAFETY: an entry of the map's value.
                        unsafe {
                            pause(&raw mut (*clocks)[$class], now, quanta[$class], frame.quantum);
                        }
                    }
                )*};
            }
            classes!(0 1 2 3 4 5 6 7);
        }
        Err(_) => port.other_control += 1,
    }
}

/// A class is paused from now on for so long; 0 ends its pause. What of its pause before had run is
/// added up.
///
/// # Safety
/// `clock` points to an entry of [`PAUSE`].
#[inline(always)]
unsafe fn pause(clock: *mut PauseClock, now: u64, quanta: u16, quantum: u64) {
    // SAFETY: as the caller says. MAC control frames of a port come through one queue, so that one
    // CPU writes at a time; where a driver moves them to another queue, only one of the two adds up
    // the same pause. Userspace reads until nothing changes.
    unsafe {
        let before = PauseClock {
            paused: 0,
            at: ptr::read_volatile(&raw const (*clock).at),
            until: ptr::read_volatile(&raw const (*clock).until),
        };
        if atomic::compare_exchange(&raw mut (*clock).at, before.at, now) == before.at {
            atomic::add(&raw mut (*clock).paused, before.paused(now));
            ptr::write_volatile(
                &raw mut (*clock).until,
                now + Quanta(quanta).nanos_by(quantum),
            );
        }
    }
}
