//! Lengths, positions and bounds in forms that every verifier of the kernel range follows.
//!
//! `cargo xtask lab kernel` loads the programs on each kernel of the range. What the compiler
//! proves about a number it leaves out of the program, and the verifier then has to prove it again,
//! which older ones cannot. These helpers state a bound in instructions that the compiler cannot
//! remove.

use core::arch::asm;
use core::hint::assert_unchecked;

/// Hides from the compiler how `value` was made, so that it keeps the checks that follow.
///
/// Linux 6.1 and 6.12 need these checks: they lose what the compiler knew. An instruction that does
/// nothing is there on purpose: without any, two line numbers would stand for one place, which
/// every kernel with line numbers (since 5.0; `check_btf_line` of kernel/bpf/verifier.c) refuses.
#[inline(always)]
pub fn opaque(value: usize) -> usize {
    let same;
    // SAFETY: copies a register.
    unsafe {
        asm!("{0} = {1}", lateout(reg) same, in(reg) value,
            options(pure, nomem, nostack, preserves_flags));
    }
    same
}

/// Returns `value`, or `max` where it is larger: an offset into memory of a known size.
///
/// The bound is stated right before the use: Linux 6.1 forgets that of a register that was spilled
/// to the stack between check and use. From 6.11 to about 6.16 a check of `offset + length` links
/// the two registers, and the verifier loses the bound of `length` by it.
#[inline(always)]
pub fn at_most(value: usize, max: usize) -> usize {
    let mut bounded = value;
    // SAFETY: changes a register.
    unsafe {
        asm!("if {0} < {1} goto +1", "{0} = {1}", inout(reg) bounded, in(reg) max,
            options(pure, nomem, nostack));
    }
    bounded
}

/// Returns `value`, or the nearer end of 1 to `max`: a count for a helper that takes no 0, such as
/// `bpf_xdp_load_bytes`.
///
/// Verifiers before about 6.8 learn nothing from `value != 0`, which is what the compiler makes of
/// `value > 0`; from a comparison by size they do. The upper bound comes first: of a difference,
/// which may have wrapped round, Linux 7.3 knows one range with 0 inside it, and cannot take 0 out.
#[inline(always)]
pub fn count(value: usize, max: usize) -> u32 {
    let mut bounded = value;
    // SAFETY: changes a register.
    unsafe {
        asm!("if {0} < {1} goto +1", "{0} = {1}", "if {0} > 0 goto +1", "{0} = 1",
            inout(reg) bounded, in(reg) max, options(pure, nomem, nostack));
    }
    bounded as u32
}

/// Calls `body` for each of the eight priorities.
///
/// The loop is tested at its end. Linux 6.1 refuses a loop whose last instruction falls through to
/// its first ("back-edge", `visit_insn` of kernel/bpf/verifier.c), unless that is a conditional
/// jump; the compiler makes such a loop of a long body with `continue` in it. The number is hidden
/// from it: else it counts offsets from below the start of a map's value, which Linux 7.3 refuses.
#[inline(always)]
pub fn each_priority(mut body: impl FnMut(usize)) {
    let mut priority = 0;
    loop {
        let hidden = opaque(priority);
        // SAFETY: below eight, as is its copy.
        unsafe { assert_unchecked(hidden < 8) };
        body(hidden);
        priority += 1;
        if priority >= 8 {
            return;
        }
    }
}
