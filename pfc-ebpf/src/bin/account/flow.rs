//! Test frames, by flow and phase.

use crate::{COUNTS, FLOWS, Frame, NEXT, SEEN, WINDOWS, atomic, malformed, record};
use pfc_ebpf::classify::Classified;
use pfc_ebpf::maps::{FlowConfig, FlowCounters, LATENCY_BUCKETS, Malformed, OffenceKind, PortCounters, SEEN_WINDOW, Trust, counts_index};
use pfc_ebpf::stamp::Stamp;

/// Counts a frame with a whole stamp.
#[inline(always)]
pub fn account(frame: &Frame, port: &mut PortCounters, classified: &Classified, stamp: &Stamp, intact: bool) {
    if stamp.run != frame.config.run {
        port.foreign_run += 1;
        return;
    }
    if stamp.flow as u32 >= frame.config.flows {
        return malformed(frame, port, Malformed::Stamp);
    }
    let slot = stamp.flow as u32 * SEEN_WINDOW as u32 + (stamp.sequence % SEEN_WINDOW) as u32;
    let (Some(flow), Some(counts), Some(seen), Some(next)) = (
        FLOWS.get(stamp.flow as u32),
        COUNTS.get_ptr_mut(counts_index(stamp.flow, stamp.phase)),
        SEEN.get_ptr_mut(slot),
        NEXT.get_ptr_mut(stamp.flow as u32),
    ) else {
        return malformed(frame, port, Malformed::Stamp);
    };
    // SAFETY: this CPU's value, which no other program run on this CPU interrupts.
    let counts = unsafe { &mut *counts };
    port.test_frames += 1;
    if flow.log_phases & stamp.phase.bit() != 0 {
        record::arrival(frame, port, stamp);
        record::offence(frame, port, OffenceKind::Logged, 0);
    }

    // A slot is only ever raised: a late frame must not make its slot forget the newer one, whose duplicate would count as
    // received then.
    let after = stamp.sequence + 1;
    // SAFETY: aligned values of maps.
    let before = unsafe { atomic::raise(seen, after) };
    if before > after {
        counts.beyond_window += 1;
        record::offence(frame, port, OffenceKind::BeyondWindow, 0);
        return;
    }
    if before == after {
        counts.duplicate += 1;
        record::offence(frame, port, OffenceKind::Duplicate, 0);
    } else {
        // SAFETY: as above.
        if unsafe { atomic::raise(next, after) } > after {
            counts.reordered += 1;
            record::offence(frame, port, OffenceKind::Reordered, 0);
        }
        distinct(frame, flow, counts, stamp);
    }
    if !intact {
        counts.corrupt += 1;
        record::offence(frame, port, OffenceKind::Corrupt, 0);
    }
    let trusts_pcp = frame.config.trust == Trust::Pcp as u8;
    let mark = if trusts_pcp { classified.pcp } else { classified.dscp };
    if mark != Some(flow.mark) {
        counts.remarked += 1;
        counts.untagged += (trusts_pcp && mark.is_none()) as u64;
        record::offence(frame, port, OffenceKind::Remarked, 0);
    }
}

/// Counts a frame whose sequence number had not been seen.
#[inline(always)]
fn distinct(frame: &Frame, flow: &FlowConfig, counts: &mut FlowCounters, stamp: &Stamp) {
    counts.received += 1;
    counts.octets += frame.length as u64;
    if counts.first == 0 {
        counts.first = frame.now;
    }
    counts.last = frame.now;
    let latency = stamp.latency(frame.now);
    counts.latency_sum += latency;
    counts.latency_max = counts.latency_max.max(latency);
    let bucket = ((u64::BITS - latency.leading_zeros()) as usize).min(LATENCY_BUCKETS - 1);
    counts.latency[bucket & (LATENCY_BUCKETS - 1)] += 1;

    let window = frame.now.saturating_sub(frame.config.epoch).checked_div(frame.config.window).unwrap_or(0);
    let window = window.min(frame.config.windows.saturating_sub(1) as u64) as u32;
    if let Some(window) = WINDOWS.get_ptr_mut(window) {
        // SAFETY: this CPU's value, which no other program run on this CPU interrupts.
        let window = unsafe { &mut *window };
        window.frames[flow.priority as usize & 7] += 1;
        window.octets[flow.priority as usize & 7] += frame.length as u32;
    }
}
