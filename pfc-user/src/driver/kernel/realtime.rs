//! Scheduling of the threads whose lateness would be taken for the DUT's.
//!
//! A SCHED_FIFO thread that spins for 0.95 s is stopped for 50 ms by the kernel's throttling
//! (sched_rt_runtime_us), and starves all else on its CPU meanwhile: whoever enters FIFO has to
//! sleep in every round of its loop.

use std::fs::{File, OpenOptions};
use std::io::Write;

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

/// FIFO priority of a traffic sender. Below 50, where the kernel's threaded interrupts run.
pub const SENDER: i32 = 10;
/// FIFO priority of a simulated DUT.
pub const DUT: i32 = 10;
/// FIFO priority of a storm, above the sender: a gap in the storm would void the repetition.
pub const STORM: i32 = 20;

/// Puts the calling thread under SCHED_FIFO at `priority` (1 to 99); `false` where that is not
/// permitted (CAP_SYS_NICE), and then the thread at least wakes up from sleep without the default
/// slack of 50 us.
pub fn enter_fifo(priority: i32) -> bool {
    let parameters = libc::sched_param {
        sched_priority: priority,
    };
    // SAFETY: `parameters` is a valid sched_param for the whole call; 0 names the calling thread.
    let permitted = unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &parameters) } == 0;
    if !permitted {
        // Best effort like the above: the consequence, a late frame, is measured by the caller.
        let _ = nix::sys::prctl::set_timerslack(1);
    }
    permitted
}

/// Gives the calling thread the most of the CPU that an ordinary one can have, for those that
/// cannot sleep; `false` where that is not permitted (CAP_SYS_NICE).
pub fn be_preferred() -> bool {
    const MOST: libc::c_int = -20;
    // SAFETY: plain system call without pointers; 0 names the calling thread, as Linux has it.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, MOST) == 0 }
}

/// Keeps the calling thread on `cpu`; `false` where there is no such CPU for this process.
pub fn pin(cpu: usize) -> bool {
    let mut set = CpuSet::new();
    set.set(cpu)
        .and_then(|()| sched_setaffinity(Pid::from_raw(0), &set))
        .is_ok()
}

/// The first CPU that the calling thread may use: the sender's.
pub fn first_cpu() -> Option<usize> {
    allowed_cpus().first().copied()
}

/// The last CPU that the calling thread may use: a simulated DUT's.
pub fn last_cpu() -> Option<usize> {
    allowed_cpus().last().copied()
}

/// The CPUs that the calling thread may use, in ascending order.
pub fn allowed_cpus() -> Vec<usize> {
    let Ok(allowed) = sched_getaffinity(Pid::from_raw(0)) else {
        return Vec::new();
    };
    (0..CpuSet::count())
        .filter(|cpu| allowed.is_set(*cpu).unwrap_or(false))
        .collect()
}

/// Keeps all CPUs out of sleep states that take long to wake up from, until it is dropped or the
/// process ends.
#[derive(Debug)]
pub struct Awake {
    /// The kernel forgets the request when the file is closed
    /// (Documentation/power/pm_qos_interface.rst).
    _request: File,
}

impl Awake {
    /// Asks for it; `None` where that is not permitted, or the kernel has no such interface.
    pub fn hold() -> Option<Self> {
        let mut request = OpenOptions::new()
            .write(true)
            .open("/dev/cpu_dma_latency")
            .ok()?;
        // Longest latency in microseconds, as the kernel's own s32.
        request.write_all(&0i32.to_ne_bytes()).ok()?;
        Some(Self { _request: request })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_is_the_policy_that_the_thread_then_has() {
        std::thread::spawn(|| {
            let permitted = enter_fifo(SENDER);
            // SAFETY: plain system call without pointers; 0 names the calling thread.
            let policy = unsafe { libc::sched_getscheduler(0) };
            assert_eq!(permitted, policy == libc::SCHED_FIFO);
            assert!(!enter_fifo(1000));
        })
        .join()
        .unwrap();
    }

    #[test]
    fn a_thread_is_pinned_to_a_cpu_that_it_may_use_and_to_no_other() {
        let cpu = last_cpu().unwrap();
        std::thread::spawn(move || {
            assert!(pin(cpu));
            let now = sched_getaffinity(Pid::from_raw(0)).unwrap();
            assert_eq!(
                (0..CpuSet::count())
                    .filter(|&cpu| now.is_set(cpu).unwrap())
                    .collect::<Vec<_>>(),
                [cpu]
            );
            assert!(!pin(CpuSet::count()));
        })
        .join()
        .unwrap();
    }
}
