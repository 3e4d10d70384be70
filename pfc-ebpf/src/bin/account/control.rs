//! PAUSE and PFC frames.

use crate::{Frame, PAUSE, Port, record, time};
use core::ptr;
use pfc_ebpf::maps::{ClassCounters, OffenceKind};
use pfc_ebpf::units::Quanta;
use pfc_ebpf::wire::mac_control::{self, MacControl, number};
use pfc_ebpf::wire::{Octets, Part, ethernet};

use crate::packet::Packet;

/// The entry of PAUSE for 802.3x.
const WHOLE_LINK: u32 = 8;

/// Counts a well-formed PAUSE or PFC frame.
///
/// The times are read again where they are used: eight of them at once are more than there are registers.
#[inline(always)]
pub fn account(frame: &Frame, port: &mut Port, packet: &Packet, control: &MacControl) {
    let now = time::now();
    let source = packet.part::<8>(ethernet::SOURCE).map_or(0, |part| part.high_48::<0>());
    match *control {
        MacControl::Pause { quanta } => {
            record::control(now, port, control.opcode(), 0, [u16::to_be(quanta) as u64, 0], source);
            class(frame, now, &mut port.counters.pause, WHOLE_LINK, quanta);
        }
        MacControl::Pfc { vector, .. } => {
            let Some(times) = packet.part::<16>(mac_control::TIMES) else { return };
            let raw = [times.quad::<0>().to_be(), times.quad::<8>().to_be()];
            record::control(now, port, control.opcode(), vector, raw, source);
            port.counters.pfc_frames += 1;
            port.counters.pfc_empty += (vector & 0xff == 0) as u64;
            macro_rules! classes {
                ($($priority:literal)*) => {$(
                    if vector & 1 << $priority != 0 {
                        class(frame, now, &mut port.counters.pfc[$priority], $priority, times.word::<{ 2 * $priority }>());
                    }
                )*};
            }
            classes!(0 1 2 3 4 5 6 7);
        }
    }
    if source == number(frame.config.storm_source) {
        port.counters.own_control += 1;
        record::offence(frame, now, port, OffenceKind::OwnControl, 0);
    }
}

/// Whether the tester's own storm sent the frame.
#[inline(always)]
pub fn is_own(frame: &Frame, packet: &Packet) -> bool {
    // Eight octets, of which six are the address: what is no frame of a MAC has no more than those two behind it.
    let source = packet.part::<8>(ethernet::SOURCE).map(|part| part.high_48::<0>());
    source == Some(number(frame.config.storm_source))
}

#[inline(always)]
fn class(frame: &Frame, now: u64, counts: &mut ClassCounters, class: u32, quanta: u16) {
    counts.last_quanta = quanta as u64;
    counts.last = now;
    let Some(state) = PAUSE.get_ptr_mut(class) else { return };
    // SAFETY: an entry of the map. Userspace reads it while it changes: each word is written at once, and the beginning of a
    // pause before its end, so that whoever sees the pause sees its beginning.
    unsafe {
        let until = &raw mut (*state).until;
        if quanta == 0 {
            counts.xon += 1;
            if ptr::read_volatile(until) > now {
                ptr::write_volatile(until, now);
            }
            return;
        }
        counts.xoff += 1;
        if ptr::read_volatile(until) <= now {
            ptr::write_volatile(&raw mut (*state).since, now);
        }
        ptr::write_volatile(until, now + Quanta(quanta).nanos_by(frame.config.quantum));
    }
}
