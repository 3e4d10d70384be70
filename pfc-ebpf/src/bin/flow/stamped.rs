//! Frames of flows, told by the stamp at their end.

use core::ptr;

use aya_ebpf::bindings::xdp_md;
use aya_ebpf::helpers::generated::bpf_xdp_load_bytes;
use aya_ebpf::programs::XdpContext;
use pfc_ebpf::abi::flow::{Flow, IN_USE, Port, SEEN_WINDOW, SHORT};
use pfc_ebpf::bpf::atomic;
use pfc_ebpf::bpf::packet::Packet;
use pfc_ebpf::flow_stamp::{
    FlowStamp, INNER_FCS, LEN, NoStamp, SHORT_GENERATIONS, SHORT_LEN, ShortStamp, whole_sequence,
};
use pfc_ebpf::stamp::latency;
use pfc_ebpf::wire::{ethernet, ip, udp, wrap};

use crate::{FLOWS, Frame, now};

/// Octets without FCS of the shortest frame, up to which devices pad.
const SHORTEST: usize = 60;
/// Most octets of padding behind a stamp: what took two tags off put them there.
const PADDED: usize = 8;
/// Value in place of an end where there is none.
const NO_END: u64 = u64::MAX;

/// Counts a frame with a whole stamp; false: it has none.
#[inline(always)]
pub fn account(frame: &Frame, port: &mut Port, packet: &Packet) -> bool {
    let Some(octets) = find(frame, packet) else {
        return false;
    };
    match FlowStamp::read(octets) {
        Ok(stamp) => whole(frame, port, &stamp),
        Err(NoStamp::Foreign) => return false,
        // The octets before a short stamp may be anything.
        Err(NoStamp::Damaged) => {
            if !account_short(frame, port, packet) {
                damaged(frame, port, &FlowStamp::content(octets));
            }
        }
    }
    true
}

/// Counts a frame with a short stamp; false: it has none. A function of its own, for the verifier
/// to walk once.
#[inline(never)]
pub fn account_short(frame: &Frame, port: &mut Port, packet: &Packet) -> bool {
    let Some((stamp, flow)) = find_short(frame, packet) else {
        return false;
    };
    // SAFETY: a value of the map, which userspace writes meanwhile.
    unsafe {
        let generation = ptr::read_volatile(&raw const (*flow).generation);
        if generation as u16 & SHORT_GENERATIONS != stamp.generation {
            port.stale += 1;
            return true;
        }
        let next = ptr::read_volatile(&raw const (*flow).next);
        own(frame, port, flow, stamp.whole_sequence(next), None);
    }
    true
}

/// The short stamp of a frame, at its end or that of its IP packet, and the place of its flow.
/// Without an IP packet, a device may have padded the shortest frame.
#[inline(always)]
fn find_short(frame: &Frame, packet: &Packet) -> Option<(ShortStamp, *mut Flow)> {
    if let Some(found) = short_before(frame, 0) {
        return Some(found);
    }
    let (end, length) = (end_of_ip(packet), frame.length as u64);
    if end < length {
        return short_before(frame, (length - end) as usize);
    }
    if end == NO_END && frame.length == SHORTEST {
        for padding in 1..=PADDED {
            if let Some(found) = short_before(frame, padding) {
                return Some(found);
            }
        }
    }
    None
}

/// The short stamp before so many octets of padding: its sum is right, and its flow has such ones.
#[inline(always)]
fn short_before(frame: &Frame, padding: usize) -> Option<(ShortStamp, *mut Flow)> {
    let stamp = ShortStamp::read(load(frame, SHORT_LEN + padding)?)?;
    let flow = FLOWS.get_ptr_mut(stamp.flow as u32)?;
    // SAFETY: a value of the map, which userspace writes meanwhile.
    let state = unsafe { ptr::read_volatile(&raw const (*flow).generation) };
    (state & (IN_USE | SHORT) == IN_USE | SHORT).then_some((stamp, flow))
}

/// The stamp of a frame: its last octets, or those before an FCS of its own, or those at the end of
/// its IP packet, where a device has padded it.
#[inline(always)]
fn find(frame: &Frame, packet: &Packet) -> Option<[u8; LEN]> {
    if let Some(octets) = load(frame, LEN).filter(is_stamp) {
        return Some(octets);
    }
    if let Some(octets) = load(frame, LEN + INNER_FCS).filter(is_stamp) {
        return Some(octets);
    }
    let end = end_of_ip(packet);
    let length = frame.length as u64;
    if end < length {
        return load(frame, (length - end) as usize + LEN).filter(is_stamp);
    }
    if end == NO_END && frame.length == SHORTEST {
        return before_padding(frame);
    }
    None
}

/// Where no length tells the end, a whole stamp does.
#[inline(always)]
fn before_padding(frame: &Frame) -> Option<[u8; LEN]> {
    for padding in 1..=PADDED {
        if let Some(octets) = load(frame, LEN + padding)
            && FlowStamp::read(octets).is_ok()
        {
            return Some(octets);
        }
    }
    None
}

/// Where the frame's IP packet ends; [`NO_END`]: it has none.
#[inline(always)]
fn end_of_ip(packet: &Packet) -> u64 {
    let Ok(header) = ethernet::parse(packet) else {
        return NO_END;
    };
    ip::end(packet, &header).map_or(NO_END, |end| end as u64)
}

/// Returns true if the frame is the flow's own, and not one that is quoted or mirrored in another.
///
/// # Safety
/// `flow` points to a value of the map.
#[inline(always)]
unsafe fn is_own(frame: &Frame, flow: *mut Flow) -> bool {
    // SAFETY: aligned words of the map.
    unsafe {
        if packet_wrap(frame.ctx) & ptr::read_volatile(&raw const (*flow).wraps) != 0 {
            return true;
        }
        atomic::add(&raw mut (*flow).received.wrapped, 1);
    }
    false
}

/// The wrapping of a frame ([`wrap::wrap`]).
///
/// A global function, which the verifier walks by itself, once. Else it would walk each way through
/// the headers for each place that asks, and all that follows there.
#[inline(never)]
#[unsafe(no_mangle)]
pub extern "C" fn packet_wrap(ctx: *mut xdp_md) -> u64 {
    wrap::wrap(&Packet::new(&XdpContext::new(ctx)))
}

#[inline(always)]
fn is_stamp(octets: &[u8; LEN]) -> bool {
    !matches!(FlowStamp::read(*octets), Err(NoStamp::Foreign))
}

/// Returns the octets that begin `before_end` octets before the frame's end.
#[inline(always)]
fn load<const N: usize>(frame: &Frame, before_end: usize) -> Option<[u8; N]> {
    if frame.length < before_end {
        return None;
    }
    let mut octets = [0u8; N];
    // SAFETY: the helper checks the frame's end, and the room is as long as it is told.
    let loaded = unsafe {
        bpf_xdp_load_bytes(
            frame.ctx,
            (frame.length - before_end) as u32,
            octets.as_mut_ptr().cast(),
            N as u32,
        )
    };
    (loaded == 0).then_some(octets)
}

/// The place of a stamp's flow, if the stamp is of its present start.
#[inline(always)]
fn place(stamp: &FlowStamp) -> Option<*mut Flow> {
    let flow = FLOWS.get_ptr_mut(stamp.flow as u32)?;
    // SAFETY: a value of the map, which userspace writes meanwhile.
    let generation = unsafe { ptr::read_volatile(&raw const (*flow).generation) };
    (generation == IN_USE | stamp.generation as u64).then_some(flow)
}

/// A frame whose stamp is damaged is its flow's, if that much can still be read.
#[inline(always)]
fn damaged(frame: &Frame, port: &mut Port, stamp: &FlowStamp) {
    port.damaged += 1;
    if let Some(flow) = place(stamp) {
        // SAFETY: an aligned word of the map.
        unsafe {
            if is_own(frame, flow) {
                atomic::add(&raw mut (*flow).received.corrupt, 1);
            }
        }
    }
}

#[inline(always)]
fn whole(frame: &Frame, port: &mut Port, stamp: &FlowStamp) {
    let Some(flow) = place(stamp) else {
        port.stale += 1;
        return;
    };
    // SAFETY: a value of the map.
    unsafe {
        let next = ptr::read_volatile(&raw const (*flow).next);
        let sequence = whole_sequence(stamp.sequence, next);
        own(frame, port, flow, sequence, Some(stamp.time));
    }
}

/// Counts a frame with a stamp of the flow, sent at `time` where the stamp says so.
///
/// # Safety
/// `flow` points to a value of the map.
#[inline(always)]
unsafe fn own(
    frame: &Frame,
    port: &mut Port,
    flow: *mut Flow,
    sequence: Option<u64>,
    time: Option<u64>,
) {
    // SAFETY: a value of the map.
    if !unsafe { is_own(frame, flow) } {
        port.other += 1;
        return;
    }
    port.test += 1;
    // SAFETY: aligned words of the map; the remainder is below the number of places.
    unsafe {
        let Some(sequence) = sequence else {
            return atomic::add(&raw mut (*flow).received.beyond, 1);
        };
        let after = sequence + 1;
        let seen = &raw mut (*flow).seen[(sequence % SEEN_WINDOW) as usize];
        let before = atomic::raise(seen, after, false);
        if before > after {
            return atomic::add(&raw mut (*flow).received.beyond, 1);
        }
        if before == after {
            return atomic::add(&raw mut (*flow).received.duplicates, 1);
        }
        if atomic::raise(&raw mut (*flow).next, after, false) > after {
            atomic::add(&raw mut (*flow).received.reordered, 1);
        }
        if ptr::read_volatile(&raw const (*flow).verify) != 0 && !is_intact(frame.ctx) {
            atomic::add(&raw mut (*flow).received.corrupt, 1);
        }
        distinct(flow, frame.length, time);
    }
}

/// Counts a frame whose sequence number had not been seen.
///
/// # Safety
/// `flow` points to a value of the map.
#[inline(always)]
unsafe fn distinct(flow: *mut Flow, length: usize, time: Option<u64>) {
    // SAFETY: aligned words of the map. The number of frames is last: who reads it finds the rest.
    unsafe {
        atomic::add(&raw mut (*flow).received.octets, length as u64);
        if let Some(time) = time {
            let latency = latency(time, now());
            atomic::add(&raw mut (*flow).received.latency_sum, latency);
            atomic::raise(&raw mut (*flow).received.latency_max, latency, false);
            atomic::raise(&raw mut (*flow).received.not_latency_min, !latency, false);
        }
        atomic::add(&raw mut (*flow).received.frames, 1);
    }
}

/// True if the frame is a UDP datagram with a right checksum, or is in several pieces, of which the
/// sum is not taken. A function of its own, for the verifier to walk once.
#[inline(never)]
fn is_intact(ctx: *mut xdp_md) -> bool {
    let packet = Packet::new(&XdpContext::new(ctx));
    let Ok(header) = ethernet::parse(&packet) else {
        return false;
    };
    let parsed = match header.ethertype {
        ethernet::IPV4 => ip::parse_v4(&packet, header.payload),
        ethernet::IPV6 => ip::parse_v6(&packet, header.payload),
        // A device put it into a tunnel, say.
        _ => return true,
    };
    match parsed {
        Ok(ip) if ip.protocol == ip::UDP && !ip.fragment => {
            udp::parse(&packet, &ip).is_ok_and(|udp| udp::is_intact(&packet, &ip, &udp))
        }
        Ok(_) => true,
        // Its end is in another piece.
        Err(
            pfc_ebpf::wire::Malformed::Ipv4Truncated | pfc_ebpf::wire::Malformed::Ipv6Truncated,
        ) => true,
        Err(_) => false,
    }
}
