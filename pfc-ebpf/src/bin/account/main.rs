//! The XDP program `account`: counts every frame of a port, and consumes test frames and MAC
//! control frames.
//!
//! Several queues may run it at once. Counters are per CPU; what decides between frames of
//! different CPUs (the sequence numbers seen) is only ever raised by compare-and-exchange. Needs
//! Linux 5.18: `bpf_xdp_load_bytes`.
//!
//! VLAN tags count where they stand in the frame. A tag that the NIC took out is in the descriptor,
//! which XDP reads only by a kfunc bound to one device; so VLAN offload has to be off where the PCP
//! is trusted, and `untagged` shows where it is not.
#![no_std]
#![no_main]
#![feature(asm_experimental_arch)]
#![expect(
    missing_docs,
    reason = "the macro `xdp` makes a public function of its own"
)]

mod control;
mod flow;
#[path = "../generator/mod.rs"]
mod generate;
mod record;
mod sending;
mod time;

use aya_ebpf::Global;
use aya_ebpf::bindings::{BPF_F_MMAPABLE, xdp_action, xdp_md};
use aya_ebpf::macros::{map, xdp};
use aya_ebpf::maps::{Array, PerCpuArray, RingBuf};
use aya_ebpf::programs::XdpContext;
use core::cell::UnsafeCell;
use pfc_ebpf::abi::account::{
    ABI_VERSION, CLASSES, Config, Control, Flow, FlowCounters, OffenceKind, PauseState, Port,
    PortCounters, WindowCounters,
};
use pfc_ebpf::bpf::packet::Packet;
#[cfg(feature = "trace")]
use pfc_ebpf::bpf::trace;
use pfc_ebpf::bpf::verifier;
use pfc_ebpf::classify::{Datagram, Marks, Visitor, visit};
use pfc_ebpf::own;
use pfc_ebpf::stamp::{Phase, Stamp};
use pfc_ebpf::wire::Malformed;
use pfc_ebpf::wire::Octets;
use pfc_ebpf::wire::mac_control::MacControl;

/// Alone in its section, so that the loader finds it without the object's symbols.
#[used]
#[unsafe(no_mangle)]
#[unsafe(link_section = ".rodata.abi")]
static ABI: Global<u32> = Global::new(ABI_VERSION);

// The loader sets the number of entries of all that go by flow, window or CPU.
/// A value that userspace writes while the program runs.
#[repr(transparent)]
struct Shared<T>(UnsafeCell<T>);

// SAFETY: plain old data in a map, as other maps' values.
unsafe impl Sync for Shared<Config> {}

/// A map by itself that is addressed directly, not looked up.
#[unsafe(no_mangle)]
#[unsafe(link_section = ".data.config")]
static CONFIG: Shared<Config> = Shared(UnsafeCell::new(Config::NONE));

#[map]
static FLOWS: Array<Flow> = Array::with_max_entries(1, BPF_F_MMAPABLE);
#[map]
static COUNTS: PerCpuArray<FlowCounters> = PerCpuArray::with_max_entries(Phase::COUNT as u32, 0);
#[map]
static WINDOWS: PerCpuArray<WindowCounters> = PerCpuArray::with_max_entries(1, 0);
#[map]
static PORT: PerCpuArray<Port> = PerCpuArray::with_max_entries(1, 0);
#[map]
static PAUSE: Pauses = Pauses(Array::with_max_entries(1, BPF_F_MMAPABLE));
#[map]
/// Room for what a probe of 60 ms logs at the highest rate at which all of it is logged.
static ARRIVALS: RingBuf = RingBuf::with_byte_size(8 << 20, 0);
#[map]
static CONTROLS: Array<Control> = Array::with_max_entries(1, BPF_F_MMAPABLE);
#[map]
static OFFENCES: RingBuf = RingBuf::with_byte_size(256 << 10, 0);

/// The pauses of all classes in one value, so that a frame that addresses several looks up one.
#[repr(transparent)]
struct Pauses(Array<[PauseState; CLASSES]>);

impl Pauses {
    /// Returns the pauses of all classes.
    #[inline(always)]
    fn all(&self) -> Option<*mut [PauseState; CLASSES]> {
        self.0.get_ptr_mut(0)
    }

    /// The pause of a class; `None` where there is no such class.
    #[inline(always)]
    fn get_ptr(&self, class: u32) -> Option<*const PauseState> {
        if class as usize >= CLASSES {
            return None;
        }
        // SAFETY: within the value.
        Some(unsafe { self.all()?.cast::<PauseState>().add(class as usize) })
    }
}

/// The present frame, as the parts of the program need it.
struct Frame<'a> {
    ctx: *mut xdp_md,
    config: &'a Config,
    length: usize,
}

/// Counts a frame, and drops it where it belongs to the test.
#[xdp]
pub fn account(ctx: XdpContext) -> u32 {
    // SAFETY: the map's value. (Opaque, for the compiler sees nobody who writes it.)
    let config = unsafe { &*(verifier::opaque(CONFIG.0.get() as usize) as *const Config) };
    if config.abi != ABI_VERSION {
        return xdp_action::XDP_PASS;
    }
    let Some(port) = PORT.get_ptr_mut(0) else {
        return xdp_action::XDP_PASS;
    };
    // SAFETY: this CPU's value, which no other program run on this CPU interrupts.
    let port = unsafe { &mut *port };
    let packet = Packet::new(&ctx);
    let frame = Frame {
        ctx: ctx.ctx,
        config,
        length: packet.length(),
    };
    port.counters.octets += frame.length as u64;
    visit(
        &packet,
        Counting {
            frame,
            port,
            packet: &packet,
        },
    )
}

/// A frame that is being counted.
struct Counting<'a> {
    frame: Frame<'a>,
    port: &'a mut Port,
    packet: &'a Packet,
}

impl Visitor for Counting<'_> {
    type Output = u32;

    #[inline(always)]
    fn test(self, marks: Marks, stamp: Stamp, datagram: Datagram) -> u32 {
        #[cfg(feature = "trace")]
        trace::test(&stamp, trace::Verdict::Drop);
        count_marks(&mut self.port.counters, &marks);
        flow::account(
            &self.frame,
            self.port,
            self.packet,
            &marks,
            &stamp,
            &datagram,
        );
        xdp_action::XDP_DROP
    }

    #[inline(always)]
    fn control(self, control: MacControl) -> u32 {
        #[cfg(feature = "trace")]
        trace::control(&control, trace::Verdict::Drop);
        control::account(&self.frame, self.port, self.packet, &control);
        xdp_action::XDP_DROP
    }

    #[inline(always)]
    fn other(self, marks: Marks) -> u32 {
        count_marks(&mut self.port.counters, &marks);
        #[cfg(feature = "trace")]
        trace::other(marks.dscp, marks.pcp, trace::Verdict::Pass);
        if stray(
            self.frame.ctx,
            self.frame.config,
            self.port,
            Malformed::Headers,
        ) {
            xdp_action::XDP_DROP
        } else {
            xdp_action::XDP_PASS
        }
    }

    #[inline(always)]
    fn malformed(self, marks: Marks, reason: Malformed) -> u32 {
        count_marks(&mut self.port.counters, &marks);
        #[cfg(feature = "trace")]
        trace::malformed(
            reason,
            if reason.is_consumed() {
                trace::Verdict::Drop
            } else {
                trace::Verdict::Pass
            },
        );
        stray(self.frame.ctx, self.frame.config, self.port, reason);
        if reason.is_consumed() {
            xdp_action::XDP_DROP
        } else {
            xdp_action::XDP_PASS
        }
    }
}

/// Counts by tag and DSCP. The masks say to the verifier what the parser guarantees.
#[inline(always)]
fn count_marks(port: &mut PortCounters, marks: &Marks) {
    if let Some(pcp) = marks.pcp {
        port.by_pcp[pcp as usize & 7] += 1;
    }
    if let Some(dscp) = marks.dscp {
        port.by_dscp[dscp as usize & 63] += 1;
    }
}

/// Counts a frame that cannot be read, or that is a test frame in spite of its headers
/// ([`Malformed::Headers`]), and records it where it concerns the test. False: it is another
/// sender's and can be read. A function of its own, to have its code once.
#[inline(never)]
fn stray(ctx: *mut xdp_md, config: &Config, port: &mut Port, reason: Malformed) -> bool {
    let packet = Packet::new(&XdpContext::new(ctx));
    let frame = Frame {
        ctx,
        config,
        length: packet.length(),
    };
    // A device may forward a pause frame behind a tag, or to another address.
    if reason.is_control() && control::is_own(&frame, &packet) {
        control::forwarded(&frame, port);
        return true;
    }
    let concerns = reason.is_control() || own::is_test_frame(&packet, config);
    if matches!(reason, Malformed::Headers) && !concerns {
        port.counters.other += 1;
        return false;
    }
    if let Some(count) = port.counters.malformed.get_mut(reason as usize) {
        *count += 1;
    }
    if concerns {
        if let Some(count) = port.counters.damaged.get_mut(reason as usize) {
            *count += 1;
        }
        let kind = OffenceKind::Malformed;
        record::offence(&frame, time::now(), port, kind, reason as u8);
    }
    true
}

pfc_ebpf::handle_panics!();
