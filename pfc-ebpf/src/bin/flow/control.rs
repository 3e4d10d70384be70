//! PAUSE and PFC frames.

use core::ptr;

use pfc_ebpf::abi::flow::{CLASSES, Pauses, Port, WHOLE_LINK, latest};
use pfc_ebpf::abi::watch::PauseClock;
use pfc_ebpf::bpf::atomic;
use pfc_ebpf::bpf::packet::Packet;
use pfc_ebpf::units::Quanta;
use pfc_ebpf::wire::mac_control::MacControl;
use pfc_ebpf::wire::{Octets, Part, ethernet};

use crate::{Frame, OWN, PAUSE, now};

/// Counts a MAC control frame, and publishes whom it pauses. Frames of this tester's own, which
/// come back from a device or over a cable between two of its ports, pause as any other would; they
/// are counted apart, as they say nothing of a device.
#[inline(always)]
pub fn account(frame: &Frame, port: &mut Port, packet: &Packet) {
    let Some(pauses) = PAUSE.get_ptr_mut(0) else {
        return;
    };
    let whose = whose(packet);
    match MacControl::parse(packet) {
        Ok(MacControl::Pause { quanta }) => {
            match whose {
                Whose::Own => port.own_pause += 1,
                Whose::Nobodys => port.nobodys_pause += 1,
                Whose::Others => port.pause += 1,
            }
            let now = now();
            // SAFETY: an entry of the map's value.
            unsafe { set_end(pauses, WHOLE_LINK, end(frame, now, quanta)) };
            hold(frame, pauses, 1 << WHOLE_LINK, now);
        }
        Ok(MacControl::Pfc { vector, quanta }) => {
            let by_class = match whose {
                Whose::Own => {
                    port.own_pfc += 1;
                    &mut port.own_pfc_by_class
                }
                Whose::Nobodys => {
                    port.nobodys_pfc += 1;
                    &mut port.nobodys_pfc_by_class
                }
                Whose::Others => {
                    port.pfc += 1;
                    &mut port.pfc_by_class
                }
            };
            let now = now();
            macro_rules! classes {
                ($($class:literal)*) => {$(
                    if vector & 1 << $class != 0 {
                        by_class[$class] += 1;
                        // SAFETY: an entry of the map's value.
                        unsafe { set_end(pauses, $class, end(frame, now, quanta[$class])) };
                    }
                )*};
            }
            classes!(0 1 2 3 4 5 6 7);
            hold(frame, pauses, vector as u64 & 0xff, now);
        }
        Err(_) => port.other_control += 1,
    }
}

/// Sender of a frame, by its source address.
#[derive(Clone, Copy)]
enum Whose {
    /// A flow of this tester's.
    Own,
    /// An address of zeros: a device and a flow may both have it.
    Nobodys,
    Others,
}

#[inline(always)]
fn whose(packet: &Packet) -> Whose {
    // Eight octets, of which six are the address: a frame of a MAC has more than those two behind
    // it.
    let Some(part) = packet.part::<8>(ethernet::SOURCE) else {
        return Whose::Others;
    };
    let source = part.high_48::<0>();
    if source == 0 {
        return Whose::Nobodys;
    }
    // SAFETY: whether the key is there is all that is asked for.
    match unsafe { OWN.get(source) } {
        Some(_) => Whose::Own,
        None => Whose::Others,
    }
}

/// Returns when a pause of `quanta` from now on ends; 0 for a time of 0, which pauses nobody. A
/// sender that read its clock before the frame came would take an end at `now` for a pause.
#[inline(always)]
fn end(frame: &Frame, now: u64, quanta: u16) -> u64 {
    if quanta == 0 {
        return 0;
    }
    now + Quanta(quanta).nanos_by(frame.quantum)
}

/// A class is paused until then.
///
/// # Safety
/// `pauses` points to the value of [`PAUSE`], and there is such a class.
#[inline(always)]
unsafe fn set_end(pauses: *mut Pauses, class: usize, end: u64) {
    // SAFETY: as the caller says. Userspace reads until nothing changes.
    unsafe { ptr::write_volatile((&raw mut (*pauses).until).cast::<u64>().add(class), end) };
}

/// Holds each queue of the classes that were addressed until the last of all its classes lets go.
#[inline(always)]
fn hold(frame: &Frame, pauses: *mut Pauses, addressed: u64, now: u64) {
    let mut until = [0; CLASSES];
    for (class, end) in until.iter_mut().enumerate() {
        // SAFETY: a word of the map's value.
        *end = unsafe { ptr::read_volatile((&raw const (*pauses).until).cast::<u64>().add(class)) };
    }
    macro_rules! queues {
        ($($queue:literal)*) => {$(
            // SAFETY: words of the maps' values, which userspace writes and reads meanwhile.
            unsafe {
                let holders = ptr::read_volatile(&raw const (*frame.config).holders[$queue]);
                if holders & addressed != 0 {
                    let clock = &raw mut (*pauses).queues[$queue];
                    pause(clock, now, latest(holders, &until));
                }
            }
        )*};
    }
    queues!(0 1 2 3 4 5 6 7);
}

/// A queue is held from now on until then. What of its hold before had run is added up.
///
/// # Safety
/// `clock` points to an entry of [`PAUSE`].
#[inline(always)]
unsafe fn pause(clock: *mut PauseClock, now: u64, until: u64) {
    // SAFETY: as the caller says. MAC control frames of a port come through one queue, so that one
    // CPU writes at a time; where a driver moves them to another queue, only one of the two adds up
    // the same hold. Userspace reads until nothing changes.
    unsafe {
        let before = PauseClock {
            paused: 0,
            at: ptr::read_volatile(&raw const (*clock).at),
            until: ptr::read_volatile(&raw const (*clock).until),
        };
        if atomic::compare_exchange(&raw mut (*clock).at, before.at, now) == before.at {
            atomic::add(&raw mut (*clock).paused, before.paused(now));
            ptr::write_volatile(&raw mut (*clock).until, until);
        }
    }
}
