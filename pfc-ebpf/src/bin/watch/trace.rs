//! Lines about frames, in the traced variant of the object alone. All frames pass.
//!
//! Frames are read once more, each in a function of its own: the verifier refuses to see the
//! undefined part of what was observed spilled over the calls that write a line.

use aya_ebpf::bindings::xdp_md;
use aya_ebpf::programs::XdpContext;
use pfc_ebpf::bpf::packet::Packet;
use pfc_ebpf::bpf::trace::{self, Verdict};
use pfc_ebpf::bpf::verifier::opaque;
use pfc_ebpf::classify::{Datagram, Marks, Visitor, visit};
use pfc_ebpf::stamp::Stamp;
use pfc_ebpf::wire::Malformed;
use pfc_ebpf::wire::mac_control::MacControl;

use crate::headers::Headers;
use crate::whole::Whole;

/// A frame in one piece.
#[inline(never)]
pub fn whole(ctx: *mut xdp_md) {
    // Else the compiler reads the packet's ends in the caller, and cuts the pointers to 32 bits
    // here.
    let ctx = opaque(ctx as usize) as *mut xdp_md;
    visit(&Whole(Packet::new(&XdpContext::new(ctx))), Lines);
}

/// A frame of `length` octets, of which the first were copied.
#[inline(never)]
pub fn headers(length: usize) {
    if let Some(headers) = Headers::loaded(length) {
        visit(&headers, Lines);
    }
}

struct Lines;

impl Visitor for Lines {
    type Output = ();

    #[inline(always)]
    fn test(self, _: Marks, stamp: Stamp, _: Datagram) {
        trace::test(&stamp, Verdict::Pass);
    }

    #[inline(always)]
    fn control(self, control: MacControl) {
        trace::control(&control, Verdict::Pass);
    }

    #[inline(always)]
    fn other(self, marks: Marks) {
        trace::other(marks.dscp, marks.pcp, Verdict::Pass);
    }

    #[inline(always)]
    fn malformed(self, _: Marks, reason: Malformed) {
        trace::malformed(reason, Verdict::Pass);
    }
}
