//! The XDP program `responder`: the silent responder of the RC cases. Takes the RoCEv2 packets for
//! the tester's queue pair off the wire and records them; nobody answers them. All else passes.
//!
//! Takes packets in fragments too, so that links with a path MTU of 4096 octets work. Needs Linux
//! 5.18 for that.
//!
//! A packet for the tester's queue pair is dropped whether or not its record fits: one that passed
//! would be answered by an adapter of the tester.
#![no_std]
#![no_main]
#![expect(
    missing_docs,
    reason = "the macro `xdp` makes a public function of its own"
)]

mod packet;

use aya_ebpf::Global;
use aya_ebpf::bindings::xdp_action;
use aya_ebpf::helpers::bpf_ktime_get_ns;
use aya_ebpf::macros::{map, xdp};
use aya_ebpf::maps::{Array, PerCpuArray, RingBuf};
use aya_ebpf::programs::XdpContext;
use core::ptr;
use packet::Packet;
use pfc_ebpf::abi::responder::{ABI_VERSION, Config, Counters, Record, SNAP_LEN};
use pfc_ebpf::bpf::verifier;
use pfc_ebpf::wire::{Octets, roce};

/// Alone in its section, so that the loader finds it without the object's symbols.
#[unsafe(no_mangle)]
#[unsafe(link_section = ".rodata.abi")]
static ABI: Global<u32> = Global::new(ABI_VERSION);

#[map]
static CONFIG: Array<Config> = Array::with_max_entries(1, 0);
#[map]
static COUNTERS: PerCpuArray<Counters> = PerCpuArray::with_max_entries(1, 0);
#[map]
static RECORDS: RingBuf = RingBuf::with_byte_size(256 << 10, 0);

/// Drops and records a packet for the tester's queue pair.
#[xdp(frags)]
pub fn responder(ctx: XdpContext) -> u32 {
    let Some(config) = CONFIG.get(0) else {
        return xdp_action::XDP_PASS;
    };
    if config.abi != ABI.load() {
        return xdp_action::XDP_PASS;
    }
    let Some(counters) = COUNTERS.get_ptr_mut(0) else {
        return xdp_action::XDP_PASS;
    };
    // SAFETY: this CPU's value, which no other program run on this CPU interrupts.
    let counters = unsafe { &mut *counters };
    // SAFETY: the helper has no preconditions.
    let now = unsafe { bpf_ktime_get_ns() };
    let frame = Packet::new(&ctx);
    match roce::parse(&frame) {
        Some(packet) if packet.bth.destination == config.queue_pair => {
            counters.dropped += 1;
            if !record(&frame, now) {
                counters.lost += 1;
            }
            xdp_action::XDP_DROP
        }
        Some(_) => {
            counters.other += 1;
            xdp_action::XDP_PASS
        }
        None => {
            counters.passed += 1;
            xdp_action::XDP_PASS
        }
    }
}

/// False: it did not fit.
#[inline(always)]
fn record(frame: &Packet, now: u64) -> bool {
    let Some(mut entry) = RECORDS.reserve::<Record>(0) else {
        return false;
    };
    let record = entry.as_mut_ptr();
    let length = frame.length();
    let captured = verifier::count(length, SNAP_LEN);
    // SAFETY: the entry is ours until it is submitted, and as long as its type.
    let whole = unsafe {
        ptr::write_bytes(record, 0, 1);
        (*record).time = now;
        (*record).length = length as u32;
        (*record).captured = captured;
        frame.copy((&raw mut (*record).octets).cast(), captured)
    };
    if whole {
        // Wakes who waits for records.
        entry.submit(0);
    } else {
        entry.discard(0);
    }
    whole
}

pfc_ebpf::handle_panics!();
