//! Atomic operations of BPF (Linux 5.12), which the compiler's own intrinsics do not reach on this
//! target.

use core::arch::asm;
use core::ptr;

/// Tries before [`raise`] gives up: far more than CPUs can be at one value at once.
const TRIES: usize = 16;

/// `if *at == old { *at = new }`; returns what was there.
///
/// # Safety
/// `at` points to an aligned value of a map.
#[inline(always)]
pub unsafe fn compare_exchange(at: *mut u64, old: u64, new: u64) -> u64 {
    let found: u64;
    // On the host it is only type-checked, by clippy and editors.
    #[cfg(not(target_arch = "bpf"))]
    {
        use core::sync::atomic::{AtomicU64, Ordering::SeqCst};
        // SAFETY: as the caller says.
        let at = unsafe { AtomicU64::from_ptr(at) };
        found = at
            .compare_exchange(old, new, SeqCst, SeqCst)
            .unwrap_or_else(|found| found);
    }
    #[cfg(target_arch = "bpf")]
    // SAFETY: as the caller says.
    unsafe {
        asm!(
            "r0 = cmpxchg_64({0} + 0, r0, {1})",
            in(reg) at,
            in(reg) new,
            inlateout("r0") old => found
        )
    };
    found
}

/// Raises `*at` to `value` unless it is as high already; returns what was there before.
/// `exclusive`: no other CPU does so at the same time.
///
/// # Safety
/// `at` points to an aligned value of a map.
#[inline(always)]
pub unsafe fn raise(at: *mut u64, value: u64, exclusive: bool) -> u64 {
    // SAFETY: as the caller says.
    let mut current = unsafe { ptr::read_volatile(at) };
    if exclusive {
        if current < value {
            // SAFETY: as the caller says.
            unsafe { ptr::write_volatile(at, value) };
        }
        return current;
    }
    for _ in 0..TRIES {
        if current >= value {
            break;
        }
        // SAFETY: as the caller says.
        let found = unsafe { compare_exchange(at, current, value) };
        if found == current {
            break;
        }
        current = found;
    }
    current
}

/// `*at += value`.
///
/// # Safety
/// `at` points to an aligned value of a map.
#[inline(always)]
pub unsafe fn add(at: *mut u64, value: u64) {
    // SAFETY: as the caller says.
    unsafe { asm!("lock *(u64 *)({0} + 0) += {1}", in(reg) at, in(reg) value) };
}
