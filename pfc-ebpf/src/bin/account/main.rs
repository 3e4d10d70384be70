#![no_std]
#![no_main]
#![feature(asm_experimental_arch)]
use aya_ebpf::{
    bindings::xdp_action,
    macros::{map, xdp},
    maps::Array,
    programs::XdpContext,
};
use core::arch::asm;
#[map]
static M: Array<u64> = Array::with_max_entries(4, 0);
#[inline(always)]
unsafe fn xchg(p: *mut u64, v: u64) -> u64 {
    let mut r = v;
    unsafe {
        asm!("{1} = xchg_64({0} + 0, {1})", in(reg) p, inlateout(reg) r);
    }
    r
}
#[inline(always)]
unsafe fn cas(p: *mut u64, old: u64, new: u64) -> u64 {
    let r: u64;
    unsafe {
        asm!("r0 = cmpxchg_64({0} + 0, r0, {1})", in(reg) p, in(reg) new, inlateout("r0") old => r);
    }
    r
}
#[inline(always)]
unsafe fn add(p: *mut u64, v: u64) {
    unsafe {
        asm!("lock *(u64 *)({0} + 0) += {1}", in(reg) p, in(reg) v);
    }
}
#[xdp]
pub fn account(_ctx: XdpContext) -> u32 {
    if let Some(p) = M.get_ptr_mut(0) {
        let a = unsafe { xchg(p, 5) };
        unsafe {
            add(p, a);
        }
        let b = unsafe { cas(p, a, 7) };
        if b == 9 {
            return xdp_action::XDP_DROP;
        }
    }
    xdp_action::XDP_PASS
}
#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    loop {}
}
