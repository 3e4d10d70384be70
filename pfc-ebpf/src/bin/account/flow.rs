//! Test frames, by flow and phase.

use crate::{COUNTS, FLOWS, Frame, Port, WINDOWS, record, stray, time};
use pfc_ebpf::abi::Trust;
use pfc_ebpf::abi::account::{
    Config, FlowCounters, LATENCY_BUCKETS, Local, OffenceKind, SEEN_WINDOW, counts_index,
};
use pfc_ebpf::bpf::atomic;
use pfc_ebpf::classify::{Datagram, Marks};
use pfc_ebpf::stamp::{self, Stamp};
use pfc_ebpf::wire::{Malformed, ethernet};

use pfc_ebpf::bpf::packet::Packet;

/// The frame was looked at octet by octet.
const VERIFIED: u32 = 1;
/// Its UDP checksum is wrong.
const CORRUPT: u32 = 2;
/// Its filling is not what was sent.
const ALTERED: u32 = 4;
/// Its length is not what was sent.
const RESIZED: u32 = 8;

/// Counts a frame with a whole stamp.
#[inline(always)]
pub fn account(
    frame: &Frame,
    port: &mut Port,
    packet: &Packet,
    marks: &Marks,
    stamp: &Stamp,
    datagram: &Datagram,
) {
    let config = frame.config;
    if stamp.run != config.run {
        port.counters.foreign_run += 1;
        return;
    }
    if stamp.flow as u32 >= config.flows {
        stray(frame.ctx, config, port, Malformed::Stamp);
        return;
    }
    let (Some(flow), Some(counts)) = (
        FLOWS.get_ptr_mut(stamp.flow as u32),
        COUNTS.get_ptr_mut(counts_index(stamp.flow, stamp.phase)),
    ) else {
        stray(frame.ctx, config, port, Malformed::Stamp);
        return;
    };
    // SAFETY: a value of the map, whose configuration userspace replaces between bursts, in one
    // word of which only `log_phases` differs.
    let expected = unsafe { &(*flow).config };
    // SAFETY: this CPU's value, which no other program run on this CPU interrupts.
    let counts = unsafe { &mut *counts };
    port.counters.test_frames += 1;
    let now = if expected.log_phases & stamp.phase.bit() != 0 {
        let now = time::now();
        record::arrival(now, port, stamp);
        record::offence(frame, now, port, OffenceKind::Logged, 0);
        now
    } else {
        time::of_frame(frame, &mut port.local, stamp)
    };

    // Before all that divides the ways through the program, for the verifier walks the calls on
    // each of them.
    let found = if stamp::is_sampled(stamp.sequence, config.verify_every) {
        let length = frame.length - ethernet::TAG_LEN * marks.tags as usize;
        let found = |wrong: bool, what: u32| if wrong { what } else { 0 };
        VERIFIED
            | found(!datagram.is_intact(packet), CORRUPT)
            | found(!datagram.is_filled(packet), ALTERED)
            | found(length != expected.length as usize, RESIZED)
    } else {
        0
    };

    // A place is only ever raised: a late frame must not make it forget the newer one, whose
    // duplicate would count as received then.
    let after = stamp.sequence + 1;
    // SAFETY: aligned values of the map; the remainder is below the number of places.
    let (seen, next) = unsafe {
        (
            &raw mut (*flow).seen[(stamp.sequence % SEEN_WINDOW) as usize],
            &raw mut (*flow).next,
        )
    };
    let exclusive = config.exclusive != 0;
    // SAFETY: as above.
    let before = unsafe { atomic::raise(seen, after, exclusive) };
    if before < after {
        // SAFETY: as above.
        if unsafe { atomic::raise(next, after, exclusive) } > after {
            counts.reordered += 1;
            record::offence(frame, now, port, OffenceKind::Reordered, 0);
        }
        distinct(
            counts,
            &mut port.local,
            frame.length as u64,
            now,
            stamp.latency(now),
        );
        window(config, &mut port.local, now, expected.priority);
    } else if before == after {
        counts.duplicate += 1;
        record::offence(frame, now, port, OffenceKind::Duplicate, 0);
    } else {
        counts.beyond_window += 1;
        return record::offence(frame, now, port, OffenceKind::BeyondWindow, 0);
    }
    if found != 0 {
        counts.verified += 1;
        if found & CORRUPT != 0 {
            counts.corrupt += 1;
            record::offence(frame, now, port, OffenceKind::Corrupt, 0);
        }
        if found & ALTERED != 0 {
            counts.altered += 1;
            record::offence(frame, now, port, OffenceKind::Altered, 0);
        }
        if found & RESIZED != 0 {
            counts.resized += 1;
            record::offence(frame, now, port, OffenceKind::Resized, 0);
        }
    }
    let trusts_pcp = config.trust == Trust::Pcp as u8;
    let mark = if trusts_pcp { marks.pcp } else { marks.dscp };
    if mark != Some(expected.mark) {
        counts.remarked += 1;
        counts.untagged += (trusts_pcp && mark.is_none()) as u64;
        record::offence(frame, now, port, OffenceKind::Remarked, 0);
    }
}

/// Counts a frame whose sequence number had not been seen.
#[inline(always)]
fn distinct(counts: &mut FlowCounters, local: &mut Local, length: u64, now: u64, latency: u64) {
    if counts.received == 0 {
        counts.first = now;
    }
    counts.received += 1;
    counts.octets += length;
    counts.last = now;
    counts.latency_sum += latency;
    if latency > counts.latency_max {
        counts.latency_max = latency;
    }
    counts.latency[bucket(local, latency) & (LATENCY_BUCKETS - 1)] += 1;
}

/// The bucket of a latency, most often the one before.
#[inline(always)]
fn bucket(local: &mut Local, latency: u64) -> usize {
    if latency >> (local.bucket & 63) != 1 {
        let bits = stamp::significant_bits(latency);
        if bits == 0 || latency >> (LATENCY_BUCKETS - 1) > 0 {
            return bits;
        }
        local.bucket = bits as u32 - 1;
    }
    local.bucket as usize + 1
}

/// Counts it in the window of its arrival.
#[inline(always)]
fn window(config: &Config, local: &mut Local, now: u64, priority: u8) {
    if now >= local.window_end {
        turn(config, local, now);
    }
    local.present.frames[priority as usize & 7] += 1;
}

/// The present window has ended: what was counted in it goes to where it belongs, and the next
/// begins.
#[inline(never)]
fn turn(config: &Config, local: &mut Local, now: u64) {
    if let Some(window) = WINDOWS.get_ptr_mut(local.window) {
        // SAFETY: this CPU's value, which no other program run on this CPU interrupts.
        let window = unsafe { &mut *window };
        for priority in 0..8 {
            window.frames[priority] += local.present.frames[priority];
            local.present.frames[priority] = 0;
        }
    }
    let index = now
        .saturating_sub(config.epoch)
        .checked_div(config.window)
        .unwrap_or(0);
    let last = config.windows.saturating_sub(1);
    if index < last as u64 {
        local.window = index as u32;
        local.window_end = config.epoch + (index + 1) * config.window;
    } else {
        local.window = last;
        local.window_end = u64::MAX;
    }
}
