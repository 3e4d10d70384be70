//! The XDP program `account`: counts every frame of a port, and consumes test frames and MAC control frames.
//!
//! Several queues may run it at once. Counters are per CPU; what decides between frames of different CPUs (the sequence
//! numbers seen) is only ever raised by compare-and-exchange. Needs Linux 5.18: `bpf_xdp_load_bytes`.
//!
//! VLAN tags count where they stand in the frame. A tag that the NIC took out is in the descriptor, which XDP reads only by
//! a kfunc bound to one device; so VLAN offload has to be off where the PCP is trusted, and `untagged` shows where it is not.
#![no_std]
#![no_main]
#![feature(asm_experimental_arch)]
#![expect(missing_docs, reason = "the macro `xdp` makes a public function of its own")]

mod atomic;
mod control;
mod flow;
mod generate;
mod packet;
mod record;

use aya_ebpf::Global;
use aya_ebpf::bindings::{BPF_F_MMAPABLE, xdp_action};
use aya_ebpf::helpers::bpf_ktime_get_ns;
use aya_ebpf::macros::{map, xdp};
use aya_ebpf::maps::{Array, PerCpuArray, RingBuf};
use aya_ebpf::programs::XdpContext;
use packet::Packet;
use pfc_ebpf::classify::{Class, Classified, classify};
use pfc_ebpf::maps::{
    ABI_VERSION, Config, FlowConfig, FlowCounters, Malformed, OffenceKind, PauseState, PortCounters, Trust, WindowCounters,
};
use pfc_ebpf::stamp::Phase;
use pfc_ebpf::wire::Octets;

/// Alone in its section, so that the loader finds it without the object's symbols.
#[unsafe(no_mangle)]
#[unsafe(link_section = ".rodata.abi")]
static ABI: Global<u32> = Global::new(ABI_VERSION);

// The loader sets the number of entries of all that go by flow or window.
#[map]
static CONFIG: Array<Config> = Array::with_max_entries(1, 0);
#[map]
static FLOWS: Array<FlowConfig> = Array::with_max_entries(1, 0);
#[map]
static COUNTS: PerCpuArray<FlowCounters> = PerCpuArray::with_max_entries(Phase::COUNT as u32, 0);
#[map]
static SEEN: Array<u64> = Array::with_max_entries(pfc_ebpf::maps::SEEN_WINDOW as u32, BPF_F_MMAPABLE);
#[map]
static NEXT: Array<u64> = Array::with_max_entries(1, BPF_F_MMAPABLE);
#[map]
static WINDOWS: PerCpuArray<WindowCounters> = PerCpuArray::with_max_entries(1, 0);
#[map]
static PORT: PerCpuArray<PortCounters> = PerCpuArray::with_max_entries(1, 0);
#[map]
static PAUSE: Array<PauseState> = Array::with_max_entries(9, BPF_F_MMAPABLE);
#[map]
static ARRIVALS: RingBuf = RingBuf::with_byte_size(4 << 20, 0);
#[map]
static CONTROLS: RingBuf = RingBuf::with_byte_size(2 << 20, 0);
#[map]
static OFFENCES: RingBuf = RingBuf::with_byte_size(256 << 10, 0);

/// What the parts of the program need to know of the frame at hand.
struct Frame<'a> {
    ctx: *mut aya_ebpf::bindings::xdp_md,
    config: &'a Config,
    now: u64,
    length: usize,
}

/// Counts a frame, and drops it where it belongs to the test.
#[xdp]
pub fn account(ctx: XdpContext) -> u32 {
    let Some(config) = CONFIG.get(0) else { return xdp_action::XDP_PASS };
    if config.abi != ABI.load() {
        return xdp_action::XDP_PASS;
    }
    let Some(port) = PORT.get_ptr_mut(0) else { return xdp_action::XDP_PASS };
    // SAFETY: this CPU's value, which no other program run on this CPU interrupts.
    let port = unsafe { &mut *port };
    // SAFETY: the helper has no preconditions.
    let now = unsafe { bpf_ktime_get_ns() };
    let packet = Packet::new(&ctx);
    let frame = Frame { ctx: ctx.ctx, config, now, length: packet.length() };
    let classified = classify(&packet);

    port.frames += 1;
    port.octets += frame.length as u64;
    marks(port, config, &classified);
    match classified.class {
        Class::Test { stamp, intact } => flow::account(&frame, port, &classified, &stamp, intact),
        Class::Control(control) => control::account(&frame, port, &packet, &control),
        Class::Other => port.other += 1,
        Class::Malformed(reason) => {
            // A device may forward a pause frame behind a tag, or to another address.
            port.own_control += (reason.is_control() && control::is_own(&frame, &packet)) as u64;
            malformed(&frame, port, reason);
        }
    }
    if classified.class.is_consumed() { xdp_action::XDP_DROP } else { xdp_action::XDP_PASS }
}

/// Counts by tag, DSCP and priority.
#[inline(always)]
fn marks(port: &mut PortCounters, config: &Config, frame: &Classified) {
    port.tagged += (frame.tags > 0) as u64;
    // The masks say to the verifier what the parser guarantees.
    let mut priority = frame.pcp;
    if let Some(dscp) = frame.dscp {
        port.by_dscp[dscp as usize & 63] += 1;
        if config.trust == Trust::Dscp as u8 {
            priority = Some(config.dscp_to_priority[dscp as usize & 63]);
        }
    } else if config.trust == Trust::Dscp as u8 {
        priority = None;
    }
    if let Some(priority) = priority {
        port.by_priority[priority as usize & 7] += 1;
    }
}

#[inline(always)]
fn malformed(frame: &Frame, port: &mut PortCounters, reason: Malformed) {
    if let Some(count) = port.malformed.get_mut(reason as usize) {
        *count += 1;
    }
    record::offence(frame, port, OffenceKind::Malformed, reason as u8);
}

#[cfg(not(test))]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    // The verifier refuses a program in which this could be reached.
    loop {}
}
