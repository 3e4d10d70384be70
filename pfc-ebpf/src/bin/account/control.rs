//! PAUSE and PFC frames.

use crate::{Frame, PAUSE, Port, record, time};
use aya_ebpf::bindings::xdp_md;
use aya_ebpf::programs::XdpContext;
use core::ptr;
use pfc_ebpf::abi::account::{Config, OffenceKind, PauseState, WHOLE_LINK};
use pfc_ebpf::units::Quanta;
use pfc_ebpf::wire::mac_control::{self, MacControl};
use pfc_ebpf::wire::{Octets, Part, ethernet};

use pfc_ebpf::bpf::packet::Packet;
use pfc_ebpf::bpf::verifier::opaque;

/// Counts a PAUSE or PFC frame that can be read, and its departures from the standard's form.
///
/// All map lookups come before the reading of the clock; after it the code runs straight on. The
/// times are read again where they are used: eight of them at once are more than there are
/// registers.
#[inline(always)]
pub fn account(frame: &Frame, port: &mut Port, packet: &Packet, control: &MacControl) {
    if is_own(frame, packet) {
        return forwarded(frame, port);
    }
    let Some(pauses) = PAUSE.all() else { return };
    let place = record::place(port);
    let now = time::now();
    let quantum = frame.config.quantum;
    match *control {
        MacControl::Pause { quanta } => {
            record::control(
                place,
                now,
                control.opcode(),
                0,
                [u16::to_be(quanta) as u64, 0],
            );
            let counts = &mut port.counters.pause;
            (counts.last.quanta, counts.last.at) = (quanta as u64, now);
            if quanta == 0 {
                counts.xon += 1
            } else {
                counts.xoff += 1
            }
            // SAFETY: the map's value, of which this is an entry.
            unsafe { pause(&raw mut (*pauses)[WHOLE_LINK], now, quanta, quantum) };
        }
        MacControl::Pfc { vector, .. } => {
            let Some(times) = packet.part::<16>(mac_control::TIMES) else {
                return;
            };
            let raw = [times.quad::<0>().to_be(), times.quad::<8>().to_be()];
            record::control(place, now, control.opcode(), vector, raw);
            let counts = &mut port.counters.pfc;
            let mut xon = 0;
            macro_rules! classes {
                ($($priority:literal)*) => {$(
                    if vector & 1 << $priority != 0 {
                        let quanta = times.word::<{ 2 * $priority }>();
                        (counts.last[$priority].quanta, counts.last[$priority].at) =
                            (quanta as u64, now);
                        // SAFETY: as above.
                        unsafe { pause(&raw mut (*pauses)[$priority], now, quanta, quantum) };
                        if quanta == 0 {
                            xon |= 1 << $priority;
                        }
                    }
                )*};
            }
            classes!(0 1 2 3 4 5 6 7);
            let addressed = vector as usize & 255;
            counts.by_xoff[addressed & !xon] += 1;
            counts.empty += (addressed == 0) as u64;
            if xon != 0 {
                counts.by_xon[xon & 255] += 1;
            }
        }
    }
    if deviates(frame.ctx, port, control.opcode()) {
        record::offence(frame, now, port, OffenceKind::Deviation, 0);
    }
}

/// Counts a frame's departures from the standard's form; false: there is none. A function of its
/// own, whose loads leave the caller's registers alone.
#[inline(never)]
fn deviates(ctx: *mut xdp_md, port: &mut Port, opcode: u16) -> bool {
    // Opaque, for the compiler would have the caller read the packet's bounds and pass them on as
    // numbers of 32 bits.
    let ctx = opaque(ctx as usize) as *mut xdp_md;
    let found = MacControl::deviations(&Packet::new(&XdpContext::new(ctx)), opcode);
    for (deviation, count) in port.counters.deviations.iter_mut().enumerate() {
        *count += (found >> deviation & 1) as u64;
    }
    found != 0
}

/// Counts and records a frame of the tester's own storm. Nothing else may notice it: a device that
/// forwards the storm would stop the sender and have its pauses taken for the device's own.
#[inline(always)]
pub fn forwarded(frame: &Frame, port: &mut Port) {
    port.counters.own_control += 1;
    record::offence(frame, time::now(), port, OffenceKind::OwnControl, 0);
}

/// True if the tester's own storm sent the frame.
#[inline(always)]
pub fn is_own(frame: &Frame, packet: &Packet) -> bool {
    // Eight octets, of which six are the address: what is no frame of a MAC has no more than those
    // two behind it.
    let source = packet
        .part::<8>(ethernet::SOURCE)
        .map(|part| part.high_48::<0>());
    source == Some(storm_source(frame.config))
}

/// The tester's own address as a 48-bit number: read at once, with the two octets behind it.
#[inline(always)]
fn storm_source(config: &Config) -> u64 {
    const {
        assert!(
            core::mem::offset_of!(Config, storm_source) % 8 == 0
                && core::mem::offset_of!(Config, storm_source) + 8 <= size_of::<Config>()
        )
    };
    // SAFETY: octets of the configuration, at a multiple of eight.
    let octets = unsafe {
        ptr::read(
            ptr::from_ref(config)
                .cast::<u8>()
                .add(core::mem::offset_of!(Config, storm_source))
                .cast::<u64>(),
        )
    };
    u64::from_be(octets) >> 16
}

/// Pauses a class from now on for a time; 0 ends its pause.
///
/// Userspace and other CPUs read the words meanwhile: there is no reference to them. Each is
/// written at once, and the beginning of a pause before its end, so that whoever sees the pause
/// sees its beginning.
///
/// # Safety
/// `state` points to an entry of [`PAUSE`].
#[inline(always)]
unsafe fn pause(state: *mut PauseState, now: u64, quanta: u16, quantum: u64) {
    // SAFETY: as the caller says.
    unsafe {
        let until = &raw mut (*state).until;
        if quanta == 0 {
            if ptr::read_volatile(until) > now {
                ptr::write_volatile(until, now);
            }
            return;
        }
        if ptr::read_volatile(until) <= now {
            ptr::write_volatile(&raw mut (*state).since, now);
        }
        ptr::write_volatile(until, now + Quanta(quanta).nanos_by(quantum));
    }
}
