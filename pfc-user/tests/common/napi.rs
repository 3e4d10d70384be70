//! Threaded NAPI (Linux 5.12): the kernel's part of receiving runs in a thread, which is pinned to
//! a CPU of its own.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::Pid;

/// Octets that the kernel keeps of a thread's name, including the zero at its end; for kernel
/// threads all of them since Linux 5.17.
const TASK_COMM_LEN: usize = 16;

/// Makes a kernel thread on `cpu` receive what arrives at `end`, an interface with one queue and an
/// XDP program in the calling thread's namespace. Returns the thread.
pub fn receive_on(end: &str, cpu: usize) -> Result<Pid> {
    let before = threads(end)?;
    // /sys shows the interfaces of the namespace in which it was mounted; the mount ends with the
    // command.
    let script = format!("mount -t sysfs sysfs /sys && echo 1 > /sys/class/net/{end}/threaded");
    let output = Command::new("unshare")
        .args(["--mount", "sh", "-c", &script])
        .output()
        .context("unshare")?;
    ensure!(
        output.status.success(),
        "no threaded NAPI (Linux 5.12) of {end}: {}",
        String::from_utf8_lossy(&output.stderr).trim()
    );
    let thread: Vec<Pid> = threads(end)?
        .into_iter()
        .filter(|thread| !before.contains(thread))
        .collect();
    let [thread] = thread[..] else {
        bail!(
            "expected one new thread of NAPI of {end}, found {}",
            thread.len()
        )
    };
    let mut cpus = CpuSet::new();
    cpus.set(cpu)?;
    sched_setaffinity(thread, &cpus)
        .with_context(|| format!("the thread of NAPI of {end} cannot be pinned to CPU {cpu}"))?;
    Ok(thread)
}

/// Finds the NAPI threads of interfaces of that name, in any namespace.
fn threads(end: &str) -> Result<Vec<Pid>> {
    let name = format!("napi/{end}-");
    ensure!(
        name.len() < TASK_COMM_LEN,
        "the kernel cuts names of threads: {end} is too long"
    );
    let mut threads = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let entry = entry?;
        let Some(pid) = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok())
        else {
            continue;
        };
        // It may have ended meanwhile.
        if fs::read_to_string(entry.path().join("comm")).is_ok_and(|comm| comm.starts_with(&name)) {
            threads.push(Pid::from_raw(pid));
        }
    }
    Ok(threads)
}
