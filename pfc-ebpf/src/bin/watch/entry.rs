//! The programs that are attached: one for each port, which says which port it is and hands the
//! frame on.
//!
//! The verifier takes milliseconds for all of them together. The programs that they hand on to take
//! it a tenth of a second and more, and are loaded once for all ports. An interface's index could
//! not tell the port: it is another one's in another network namespace, and changes with a move.

use aya_ebpf::EbpfContext;
use aya_ebpf::bindings::xdp_action;
use aya_ebpf::macros::{classifier, map, xdp};
use aya_ebpf::maps::ProgramArray;
use aya_ebpf::programs::{TcContext, XdpContext};
use pfc_ebpf::abi::watch::{PORTS, name};

use crate::{TCX_NEXT, run};

#[map]
pub static XDP: ProgramArray = ProgramArray::with_max_entries(name::XDP_PROGRAMS.len() as u32, 0);
#[map]
pub static TC: ProgramArray = ProgramArray::with_max_entries(name::TC_PROGRAMS.len() as u32, 0);

/// Hands the frame on to the program that counts it; returns only where that is not loaded.
#[inline(always)]
fn enter(ctx: &impl EbpfContext, programs: &ProgramArray, port: usize) {
    if let Some(run) = run::present() {
        // SAFETY: this CPU's value.
        unsafe { (*run).port = port as u64 };
        go_on(ctx, programs, 0);
    }
}

/// Hands the frame on to that program; returns only where it is not loaded.
#[inline(always)]
pub fn go_on(ctx: &impl EbpfContext, programs: &ProgramArray, place: u32) {
    // SAFETY: the program has the type of this one, and nothing here is to be dropped.
    unsafe { programs.tail_call(ctx, place) };
}

macro_rules! entries {
    ($($xdp:ident $tc:ident = $port:literal,)*) => {
        const _: () = assert!([$($port),*].len() == PORTS);
        $(
            #[xdp(frags)]
            pub fn $xdp(ctx: XdpContext) -> u32 {
                enter(&ctx, &XDP, $port);
                xdp_action::XDP_PASS
            }

            #[classifier]
            pub fn $tc(ctx: TcContext) -> i32 {
                enter(&ctx, &TC, $port);
                TCX_NEXT
            }
        )*
    };
}

entries! {
    watch_0 watch_tc_0 = 0,
    watch_1 watch_tc_1 = 1,
    watch_2 watch_tc_2 = 2,
    watch_3 watch_tc_3 = 3,
    watch_4 watch_tc_4 = 4,
    watch_5 watch_tc_5 = 5,
    watch_6 watch_tc_6 = 6,
    watch_7 watch_tc_7 = 7,
    watch_8 watch_tc_8 = 8,
    watch_9 watch_tc_9 = 9,
    watch_10 watch_tc_10 = 10,
    watch_11 watch_tc_11 = 11,
    watch_12 watch_tc_12 = 12,
    watch_13 watch_tc_13 = 13,
    watch_14 watch_tc_14 = 14,
    watch_15 watch_tc_15 = 15,
    watch_16 watch_tc_16 = 16,
    watch_17 watch_tc_17 = 17,
    watch_18 watch_tc_18 = 18,
    watch_19 watch_tc_19 = 19,
    watch_20 watch_tc_20 = 20,
    watch_21 watch_tc_21 = 21,
    watch_22 watch_tc_22 = 22,
    watch_23 watch_tc_23 = 23,
    watch_24 watch_tc_24 = 24,
    watch_25 watch_tc_25 = 25,
    watch_26 watch_tc_26 = 26,
    watch_27 watch_tc_27 = 27,
    watch_28 watch_tc_28 = 28,
    watch_29 watch_tc_29 = 29,
    watch_30 watch_tc_30 = 30,
    watch_31 watch_tc_31 = 31,
}
