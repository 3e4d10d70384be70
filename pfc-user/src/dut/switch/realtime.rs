//! Lets the calling thread run as soon as it is due.

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

/// Above ordinary threads, below what the kernel runs at 50 and more.
const PRIORITY: i32 = 10;

/// Pins the thread to the last CPU that it may use, and gives it a real-time priority. Where the system does not allow
/// this it stays as it is: the stalls that it then has are in its report.
pub fn prefer_this_thread() {
    if let Ok(allowed) = sched_getaffinity(Pid::from_raw(0)) {
        let last = (0..CpuSet::count()).rev().find(|cpu| allowed.is_set(*cpu).unwrap_or(false));
        let mut one = CpuSet::new();
        if last.is_some_and(|cpu| one.set(cpu).is_ok()) {
            let _ = sched_setaffinity(Pid::from_raw(0), &one);
        }
    }
    let parameters = libc::sched_param { sched_priority: PRIORITY };
    // SAFETY: the parameters outlive the call; 0 is the calling thread.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &parameters) };
    // An ordinary thread would else be woken 50 us late.
    let _ = nix::sys::prctl::set_timerslack(1);
}
