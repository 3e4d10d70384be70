//! The XDP program `flow`: counts the frames of an engine of ports and flows, obeys no pause frame
//! itself, publishes what is paused, and keeps whole frames while a capture is on.
//!
//! Its ports are the tester's alone: frames end here, but for ARP and ND, which the host's stack
//! may answer too. Several queues may run it at once: what decides between frames of different CPUs
//! is only ever raised by compare-and-exchange. Frames may be in several pieces.
#![no_std]
#![no_main]
#![feature(asm_experimental_arch)]
#![expect(
    missing_docs,
    reason = "the macro `xdp` makes a public function of its own"
)]

mod control;
#[path = "../generator/mod.rs"]
mod generate;
mod keep;
mod sending;
mod stamped;

use aya_ebpf::Global;
use aya_ebpf::bindings::{BPF_F_MMAPABLE, BPF_F_NO_PREALLOC, xdp_action, xdp_md};
use aya_ebpf::helpers::bpf_ktime_get_ns;
use aya_ebpf::helpers::generated::bpf_xdp_get_buff_len;
use aya_ebpf::macros::{map, xdp};
use aya_ebpf::maps::{Array, HashMap, PerCpuArray, RingBuf};
use aya_ebpf::programs::XdpContext;
use core::ptr;
use pfc_ebpf::abi::flow::{ABI_VERSION, Config, Flow, OWN_SOURCES, Pauses, Port};
use pfc_ebpf::bpf::packet::Packet;
use pfc_ebpf::wire::{Octets, ethernet, neighbour};

/// Alone in its section, so that the loader finds it without the object's symbols.
#[used]
#[unsafe(no_mangle)]
#[unsafe(link_section = ".rodata.abi")]
static ABI: Global<u32> = Global::new(ABI_VERSION);

#[map]
static CONFIG: Array<Config> = Array::with_max_entries(1, BPF_F_MMAPABLE);
#[map]
static PORT: PerCpuArray<Port> = PerCpuArray::with_max_entries(1, 0);
// The loader sets the number of entries.
#[map]
static FLOWS: Array<Flow> = Array::with_max_entries(1, BPF_F_MMAPABLE);
#[map]
static PAUSE: Array<Pauses> = Array::with_max_entries(1, BPF_F_MMAPABLE);
// The program only looks into it.
#[map]
static OWN: HashMap<u64, u64> = HashMap::with_max_entries(OWN_SOURCES, BPF_F_NO_PREALLOC);
#[map]
static CAPTURE: RingBuf = RingBuf::with_byte_size(32 << 20, 0);
#[map]
static NEIGHBOURS: RingBuf = RingBuf::with_byte_size(256 << 10, 0);

/// The present frame.
struct Frame {
    ctx: *mut xdp_md,
    /// Octets, without FCS.
    length: usize,
    quantum: u64,
    config: *const Config,
}

/// Counts a frame.
#[xdp(frags)]
pub fn flow(ctx: XdpContext) -> u32 {
    let (Some(config), Some(port)) = (CONFIG.get_ptr(0), PORT.get_ptr_mut(0)) else {
        return xdp_action::XDP_PASS;
    };
    // SAFETY: the map's value, which userspace writes word by word meanwhile; this CPU's value,
    // which no other run of a program on this CPU interrupts.
    let (abi, capture, quantum, port) = unsafe {
        (
            ptr::read_volatile(&raw const (*config).abi),
            ptr::read_volatile(&raw const (*config).capture),
            ptr::read_volatile(&raw const (*config).quantum),
            &mut *port,
        )
    };
    if abi != ABI_VERSION as u64 {
        return xdp_action::XDP_PASS;
    }
    let frame = Frame {
        ctx: ctx.ctx,
        // SAFETY: the program's own context.
        length: unsafe { bpf_xdp_get_buff_len(ctx.ctx) } as usize,
        quantum,
        config,
    };
    port.frames += 1;
    port.octets += frame.length as u64;
    if capture != 0 && !keep::keep(frame.ctx, frame.length, now(), true) {
        port.missed += 1;
    }
    account(&frame, port, &Packet::new(&ctx))
}

#[inline(always)]
fn account(frame: &Frame, port: &mut Port, packet: &Packet) -> u32 {
    if packet.word(ethernet::TYPE) == Some(ethernet::MAC_CONTROL) {
        control::account(frame, port, packet);
        return xdp_action::XDP_DROP;
    }
    if stamped::account(frame, port, packet) {
        return xdp_action::XDP_DROP;
    }
    if neighbour::is_message(packet) {
        port.neighbours += 1;
        port.neighbour_octets += frame.length as u64;
        keep::keep(frame.ctx, frame.length, now(), false);
        return xdp_action::XDP_PASS;
    }
    // Last: nothing but its sum tells a short stamp from the end of any frame.
    if !stamped::account_short(frame, port, packet) {
        port.other += 1;
    }
    xdp_action::XDP_DROP
}

/// The clock's reading.
#[inline(always)]
fn now() -> u64 {
    // SAFETY: the helper has no preconditions.
    unsafe { bpf_ktime_get_ns() }
}

pfc_ebpf::handle_panics!();
