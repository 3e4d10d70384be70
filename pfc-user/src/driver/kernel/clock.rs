//! CLOCK_MONOTONIC, which `bpf_ktime_get_ns` of the kernel program reads too.

use std::time::Duration;

use nix::sys::time::TimeSpec;
use nix::time::{ClockId, ClockNanosleepFlags, clock_gettime, clock_nanosleep};

use pfc_ebpf::units::Nanos;

/// Now, in nanoseconds.
pub fn now() -> Nanos {
    let time =
        clock_gettime(ClockId::CLOCK_MONOTONIC).expect("CLOCK_MONOTONIC exists since Linux 2.6");
    time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64
}

/// Sleeps until `deadline`; a signal may end it early.
pub fn sleep_until(deadline: Nanos) {
    let time = TimeSpec::from_duration(Duration::from_nanos(deadline));
    // EINTR is for the caller's loop, which looks at the time again.
    let _ = clock_nanosleep(
        ClockId::CLOCK_MONOTONIC,
        ClockNanosleepFlags::TIMER_ABSTIME,
        &time,
    );
}

/// Sleeps until `deadline`, or until the thread is unparked; may also return early for no reason.
pub fn park_until(deadline: Nanos) {
    std::thread::park_timeout(Duration::from_nanos(deadline.saturating_sub(now())));
}
