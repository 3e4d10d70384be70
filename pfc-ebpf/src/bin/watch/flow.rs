//! Test frames of a flow that have passed.

use crate::{FLOWS, SEEN, STATES, TAKEN};
use pfc_ebpf::abi::account::SEEN_WINDOW;
use pfc_ebpf::abi::watch::{Config, Counters, flow_key};
use pfc_ebpf::bpf::atomic;
use pfc_ebpf::stamp::Stamp;

/// `BPF_NOEXIST` of `linux/bpf.h`.
const NO_EXIST: u64 = 1;
/// Tries to take a place: far more than CPUs can be at it at once.
const TRIES: usize = 16;
/// Value for a frame that has no priority.
const NO_PRIORITY: u8 = 8;

/// Counts a frame by its sequence number.
#[inline(always)]
pub fn account(
    port: u32,
    config: &Config,
    counters: &mut Counters,
    stamp: &Stamp,
    priority: Option<u8>,
) {
    let Some(place) = place(port, config, stamp) else {
        counters.flows_lost += 1;
        return;
    };
    let slot = place * SEEN_WINDOW as u32 + (stamp.sequence % SEEN_WINDOW) as u32;
    let (Some(state), Some(seen)) = (STATES.get_ptr_mut(place), SEEN.get_ptr_mut(slot)) else {
        return;
    };
    let after = stamp.sequence + 1;
    // SAFETY: aligned words of maps, which are only raised or added to.
    unsafe {
        let before = atomic::raise(seen, after, false);
        if before > after {
            return atomic::add(&raw mut (*state).beyond_window, 1);
        }
        if before == after {
            return atomic::add(&raw mut (*state).duplicate, 1);
        }
        atomic::raise(&raw mut (*state).not_lowest, !stamp.sequence, false);
        atomic::raise(&raw mut (*state).next, after, false);
        (&raw mut (*state).priority).write_volatile(priority.unwrap_or(NO_PRIORITY) as u64);
        // Last: who reads it finds the range that it was counted in.
        atomic::add(&raw mut (*state).distinct, 1);
    }
}

/// The place of a flow of a port, a new one where it has none; `None` where all are taken.
#[inline(always)]
fn place(port: u32, config: &Config, stamp: &Stamp) -> Option<u32> {
    let key = flow_key(port, stamp);
    if let Some(place) = FLOWS.get_ptr(key) {
        // SAFETY: an entry of the map, which none removes.
        return Some(unsafe { *place });
    }
    let taken = TAKEN.get_ptr_mut(port)?;
    let mut free = None;
    for _ in 0..TRIES {
        // SAFETY: an aligned word of a map.
        let place = unsafe { taken.read_volatile() };
        if place >= config.flows as u64 {
            return None;
        }
        // SAFETY: as above.
        if unsafe { atomic::compare_exchange(taken, place, place + 1) } == place {
            free = Some(config.first_flow + place as u32);
            break;
        }
    }
    // Where two CPUs meet the flow at once, the first to come here sets its place, and the other's
    // stays empty.
    let _ = FLOWS.insert(key, free?, NO_EXIST);
    // SAFETY: an entry of the map, which none removes.
    FLOWS.get_ptr(key).map(|place| unsafe { *place })
}
