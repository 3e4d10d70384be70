//! The programs of `watch`: count every frame of a port and let it pass, untouched. `watch` at XDP;
//! `watch_tc` at tcx, either on the way in, where another XDP program holds the port, or on the way
//! out. Where the kernel has no tcx (before Linux 6.6), that is a filter of clsact.
//!
//! Both are loaded once for many ports, each of which has counts of its own; what is attached to a
//! port is an [`entry`]. Counters are per CPU.
//!
//! Frames in several pieces, and sorting, are seldom wanted. They have programs of their own, to
//! which these two hand the frame on, so that the verifier walks all of them side by side.
#![no_std]
#![no_main]
#![expect(
    missing_docs,
    reason = "the macros `xdp` and `classifier` make public functions of their own"
)]

mod control;
mod entry;
mod flow;
mod headers;
mod run;
mod sketch;
#[cfg(feature = "trace")]
mod trace;
mod whole;

use aya_ebpf::Global;
use aya_ebpf::bindings::{__sk_buff, BPF_F_MMAPABLE, xdp_action, xdp_md};
use aya_ebpf::helpers::generated::{bpf_skb_load_bytes, bpf_xdp_get_buff_len, bpf_xdp_load_bytes};
use aya_ebpf::macros::{classifier, map, xdp};
use aya_ebpf::maps::{Array, HashMap, PerCpuArray, RingBuf};
use aya_ebpf::programs::{TcContext, XdpContext};
use headers::Headers;
use pfc_ebpf::abi::account::SEEN_WINDOW;
use pfc_ebpf::abi::watch::{
    ABI_VERSION, Config, Counters, FlowState, PAUSED, PauseClock, Sketch, Volume, name,
};
use pfc_ebpf::bpf::packet::Packet;
use pfc_ebpf::observe::{Content, Merged, Tag, observe};
use pfc_ebpf::wire::segment::{self, Step, Walk};
use pfc_ebpf::wire::{Octets, ethernet};
use whole::Whole;

/// Alone in its section, so that the loader finds it without the object's symbols.
#[unsafe(no_mangle)]
#[unsafe(link_section = ".rodata.abi")]
static ABI: Global<u32> = Global::new(ABI_VERSION);

// The loader sets the number of entries of all that go by port or flow.
#[map]
static CONFIG: Array<Config> = Array::with_max_entries(1, 0);
#[map]
static COUNTERS: PerCpuArray<Counters> = PerCpuArray::with_max_entries(1, 0);
#[map]
static PAUSE: Array<PauseClock> = Array::with_max_entries(PAUSED as u32, BPF_F_MMAPABLE);
#[map]
static CONTROLS: RingBuf = RingBuf::with_byte_size(1 << 20, 0);
#[map]
static FLOWS: HashMap<u64, u32> = HashMap::with_max_entries(1, 0);
#[map]
static TAKEN: Array<u64> = Array::with_max_entries(1, 0);
#[map]
static STATES: Array<FlowState> = Array::with_max_entries(1, 0);
#[map]
static SEEN: Array<u64> = Array::with_max_entries(SEEN_WINDOW as u32, 0);
#[map]
static SKETCH: PerCpuArray<Sketch> = PerCpuArray::with_max_entries(1, 0);

/// `TCX_NEXT` of `enum tcx_action_base`: whatever comes next decides.
const TCX_NEXT: i32 = -1;

/// Counts a frame that came in.
#[xdp(frags)]
pub fn watch(ctx: XdpContext) -> u32 {
    let Some(run) = run::present() else {
        return xdp_action::XDP_PASS;
    };
    if length(&ctx) == ctx.data_end() - ctx.data() {
        whole(ctx.ctx, port_of(run));
        xdp_sorted(&ctx, run)
    } else {
        entry::go_on(&ctx, &entry::XDP, name::PIECES);
        xdp_action::XDP_PASS
    }
}

/// Counts a frame that came in, in several pieces.
#[xdp(frags)]
pub fn watch_pieces(ctx: XdpContext) -> u32 {
    let Some(run) = run::present() else {
        return xdp_action::XDP_PASS;
    };
    in_pieces(ctx.ctx, length(&ctx), port_of(run));
    xdp_sorted(&ctx, run)
}

/// Has a frame that was counted sorted, if it is to be.
#[inline(always)]
fn xdp_sorted(ctx: &XdpContext, run: *mut run::Run) -> u32 {
    // SAFETY: this CPU's value.
    if unsafe { (*run).note.frames } != 0 {
        entry::go_on(ctx, &entry::XDP, name::XDP_SORT);
    }
    xdp_action::XDP_PASS
}

/// Sorts a frame that was counted.
#[xdp(frags)]
pub fn watch_sort(ctx: XdpContext) -> u32 {
    sketch::sort(length(&ctx), |from, to, octets| {
        load_xdp(ctx.ctx, from, to, octets)
    });
    xdp_action::XDP_PASS
}

/// Octets of the frame, in all its pieces.
#[inline(always)]
fn length(ctx: &XdpContext) -> usize {
    // SAFETY: the program's own context.
    unsafe { bpf_xdp_get_buff_len(ctx.ctx) as usize }
}

/// The port of this run.
#[inline(always)]
fn port_of(run: *mut run::Run) -> u32 {
    // SAFETY: this CPU's value.
    unsafe { (*run).port as u32 }
}

/// A frame in one piece: read where it is. A function of its own, as is the next, to have a stack
/// of its own.
#[inline(never)]
fn whole(ctx: *mut xdp_md, port: u32) {
    #[cfg(feature = "trace")]
    trace::whole(ctx);
    let frame = Whole(Packet::new(&XdpContext::new(ctx)));
    let length = frame.length() as u64;
    count(
        port,
        &frame,
        None,
        |_| one(length),
        |to, octets| load_xdp(ctx, 0, to, octets),
    );
}

/// A frame of that length.
const fn one(octets: u64) -> Volume {
    Volume { frames: 1, octets }
}

/// A frame in several pieces, of which the first may end anywhere.
#[inline(never)]
fn in_pieces(ctx: *mut xdp_md, length: usize, port: u32) {
    let load = |to: *mut u8, octets| load_xdp(ctx, 0, to, octets);
    if let Some(headers) = Headers::load(length, load) {
        #[cfg(feature = "trace")]
        trace::headers(length);
        count(port, &headers, None, |_| one(length as u64), load);
    }
}

/// Copies octets of a frame; not 0 where that fails.
#[inline(always)]
fn load_xdp(ctx: *mut xdp_md, from: u32, to: *mut u8, octets: u32) -> i64 {
    // SAFETY: the helper checks the frame's end, and the verifier the room.
    unsafe { bpf_xdp_load_bytes(ctx, from, to.cast(), octets) }
}

/// Counts a frame that comes in behind XDP, or goes out.
#[classifier]
pub fn watch_tc(ctx: TcContext) -> i32 {
    let skb = ctx.skb.skb;
    let Some(run) = run::present() else {
        return TCX_NEXT;
    };
    // SAFETY: the program's own context.
    if unsafe { (*skb).gso_size } != 0 {
        split(skb, run);
    }
    count_skb(skb, run);
    // SAFETY: this CPU's value.
    if unsafe { (*run).note.frames } != 0 {
        entry::go_on(&ctx, &entry::TC, name::TC_SORT);
    }
    TCX_NEXT
}

/// Copies octets of a frame; not 0 where that fails.
#[inline(always)]
fn load_skb(skb: *mut __sk_buff, from: u32, to: *mut u8, octets: u32) -> i64 {
    // SAFETY: the helper checks the frame's end, and the verifier the room.
    unsafe { bpf_skb_load_bytes(skb.cast(), from, to.cast(), octets) }
}

/// Sorts a frame that was counted.
#[classifier]
pub fn watch_tc_sort(ctx: TcContext) -> i32 {
    let skb = ctx.skb.skb;
    // SAFETY: the program's own context.
    let length = unsafe { (*skb).len } as usize;
    sketch::sort(length, |from, to, octets| load_skb(skb, from, to, octets));
    TCX_NEXT
}

/// Notes of which frames a merged packet is made.
///
/// A function of its own, which the verifier walks once. What is known between two headers stands
/// in a map, of whose values the verifier assumes nothing. Else it would follow every order of
/// headers by itself, of which there are more than it takes.
#[inline(never)]
fn split(skb: *mut __sk_buff, run: *mut run::Run) {
    let read = |at: usize| {
        let mut part = [0; segment::READ];
        let failed = load_skb(skb, at as u32, part.as_mut_ptr(), segment::READ as u32);
        if failed == 0 { Some(part) } else { None }
    };
    let mut headers = None;
    // SAFETY: this CPU's value, which no other run of this program on this CPU interrupts, and the
    // program's own context.
    unsafe {
        let walk = &raw mut (*run).walk;
        walk.write_volatile(Walk::START);
        for _ in 0..segment::MAX_HEADERS {
            match segment::step(walk.read_volatile(), read) {
                Step::On(next) => walk.write_volatile(next),
                Step::End(found) => {
                    headers = Some(found);
                    break;
                }
                Step::Lost => break,
            }
        }
        let merged = Merged {
            gso_size: (*skb).gso_size as u64,
            gso_segs: (*skb).gso_segs as u64,
            headers,
        };
        ((*run).volume, (*run).untold) = merged.volume((*skb).len as u64, beside(skb));
    }
}

/// Octets of the tag that stands beside a packet.
#[inline(always)]
fn beside(skb: *mut __sk_buff) -> u64 {
    // SAFETY: the program's own context.
    if unsafe { (*skb).vlan_present } != 0 {
        ethernet::TAG_LEN as u64
    } else {
        0
    }
}

#[inline(never)]
fn count_skb(skb: *mut __sk_buff, run: *mut run::Run) {
    // SAFETY: the program's own context.
    let (length, tag) = unsafe {
        let tag = Tag {
            tpid: u16::from_be((*skb).vlan_proto as u16),
            tci: (*skb).vlan_tci as u16,
        };
        (
            (*skb).len as usize,
            if (*skb).vlan_present != 0 {
                Some(tag)
            } else {
                None
            },
        )
    };
    // SAFETY: the program's own context.
    let is_merged = || unsafe { (*skb).gso_size } != 0;
    let load = |to: *mut u8, octets| load_skb(skb, 0, to, octets);
    if let Some(headers) = Headers::load(length, load) {
        let headers = headers.merged(is_merged());
        #[cfg(feature = "trace")]
        trace::headers(length);
        let volume = |counters: &mut Counters| {
            if !is_merged() {
                return one(length as u64 + beside(skb));
            }
            // SAFETY: this CPU's value.
            let (volume, untold) = unsafe { ((*run).volume, (*run).untold) };
            if let Some(untold) = untold
                && let Some(packets) = counters.untold.get_mut(untold as usize)
            {
                *packets += 1;
            }
            volume
        };
        count(port_of(run), &headers, tag, volume, load);
    }
}

/// Counts a frame of a port; `load` copies its first octets.
#[inline(always)]
fn count(
    port: u32,
    frame: &impl Octets,
    tag: Option<Tag>,
    volume: impl FnOnce(&mut Counters) -> Volume,
    load: impl FnOnce(*mut u8, u32) -> i64,
) {
    // Traced programs are loaded for each port anew, which is then the first one. That it is known
    // keeps their stack within the 512 octets that Linux 6.1 has.
    let port = if cfg!(feature = "trace") { 0 } else { port };
    let Some(config) = CONFIG.get(port) else {
        return;
    };
    if config.abi != ABI.load() {
        return;
    }
    let Some(counters) = COUNTERS.get_ptr_mut(port) else {
        return;
    };
    // SAFETY: this CPU's value, which no other run of this program on this CPU interrupts.
    let counters = unsafe { &mut *counters };
    let observed = observe(frame, tag);
    let volume = volume(counters);
    counters.add(config, &observed, volume);
    if config.flows > 0 && observed.priority(config).is_some() {
        sketch::note(config.sketch as u32, &observed, volume.frames);
    }
    let control = match observed.content {
        Content::Control(control) => Some(control),
        Content::Malformed(reason) if reason.is_control() => None,
        Content::Stamped(stamp) if config.flows > 0 => {
            return flow::account(port, config, counters, &stamp, observed.priority(config));
        }
        _ => return,
    };
    control::account(
        port,
        config,
        counters,
        frame.length(),
        tag,
        control.as_ref(),
        load,
    );
}

pfc_ebpf::handle_panics!();
