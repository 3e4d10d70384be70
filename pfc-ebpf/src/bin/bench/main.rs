//! Programs for the benches: one that does nothing, and one that makes each run of a test see
//! another frame.
#![no_std]
#![no_main]
#![expect(
    missing_docs,
    reason = "the macro `xdp` makes a public function of its own"
)]

use aya_ebpf::bindings::xdp_action;
use aya_ebpf::macros::{map, xdp};
use aya_ebpf::maps::{Array, ProgramArray};
use aya_ebpf::programs::XdpContext;
use core::ptr;
use pfc_ebpf::stamp::{LEN, Phase, Stamp};

/// Offset of the stamp in an untagged IPv4 frame without options.
const STAMP_AT: usize = 42;
/// The run in all stamps.
const RUN: u16 = 7;

/// Number of frames so far, the number of flows less one, a power of two less one, and the time in
/// all stamps.
#[map]
static STATE: Array<[u64; 3]> = Array::with_max_entries(1, 0);
/// The program that is to see the frame.
#[map]
static TARGET: ProgramArray = ProgramArray::with_max_entries(1, 0);

/// The bare minimum, beside which others are measured.
#[xdp]
pub fn drop(_: XdpContext) -> u32 {
    xdp_action::XDP_DROP
}

/// Writes the stamp of the next frame, flow after flow, and hands it on. Stamps all have the same
/// checksum, so that the datagram's stays right.
#[xdp]
pub fn restamp(ctx: XdpContext) -> u32 {
    let Some(state) = STATE.get_ptr_mut(0) else {
        return xdp_action::XDP_ABORTED;
    };
    // SAFETY: one thread runs a test.
    let [count, mask, time] = unsafe { &mut *state };
    let at = ctx.data() + STAMP_AT;
    if at + LEN > ctx.data_end() {
        return xdp_action::XDP_ABORTED;
    }
    let flow = *count & *mask;
    let round = count.checked_div(*mask + 1).unwrap_or(0);
    *count += 1;
    let stamp = Stamp {
        run: RUN,
        flow: flow as u16,
        phase: Phase::Storm,
        sequence: round,
        time: *time,
    };
    // SAFETY: the octets are in the packet, as was just checked.
    unsafe { ptr::write(at as *mut [u8; LEN], stamp.emit()) };
    // SAFETY: the program's own context.
    unsafe { TARGET.tail_call(&ctx, 0) };
    xdp_action::XDP_ABORTED
}

pfc_ebpf::handle_panics!();
