//! BPF_PROG_RUN on live frames (Linux 5.18): the kernel makes frames, runs an XDP program on each,
//! and does with them as it says.
//!
//! Written out because a program of aya's belongs to its object, and here several threads run one.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use super::syscall::bpf;

/// `BPF_PROG_RUN` of `enum bpf_cmd`, `linux/bpf.h`.
const PROG_RUN: libc::c_long = 10;
/// `BPF_F_TEST_XDP_LIVE_FRAMES`.
const LIVE_FRAMES: u32 = 1 << 1;

/// The part of `union bpf_attr` for `BPF_PROG_RUN`.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    program: u32,
    return_value: u32,
    data_size_in: u32,
    data_size_out: u32,
    data_in: u64,
    data_out: u64,
    repeat: u32,
    duration: u32,
    context_size_in: u32,
    context_size_out: u32,
    context_in: u64,
    context_out: u64,
    flags: u32,
    cpu: u32,
    batch_size: u32,
    _pad: u32,
}

/// `struct xdp_md`.
#[repr(C)]
#[derive(Default)]
struct Context {
    data: u32,
    data_end: u32,
    data_meta: u32,
    ingress_interface: u32,
    rx_queue: u32,
    egress_interface: u32,
}

/// Runs `program` on `runs` frames that begin as copies of `frame`, in batches of `batch`, as if
/// they had come in by `interface` (an index in the calling thread's network namespace). A signal
/// may end it sooner, after a whole batch.
pub fn run(
    program: BorrowedFd,
    interface: u32,
    frame: &[u8],
    runs: u32,
    batch: u32,
) -> io::Result<()> {
    let length = frame.len() as u32;
    let context = Context {
        data_end: length,
        ingress_interface: interface,
        ..Context::default()
    };
    let mut attributes = Attributes {
        program: program.as_raw_fd() as u32,
        data_size_in: length,
        data_in: frame.as_ptr() as u64,
        repeat: runs,
        context_size_in: size_of::<Context>() as u32,
        context_in: &raw const context as u64,
        flags: LIVE_FRAMES,
        batch_size: batch,
        ..Attributes::default()
    };
    // SAFETY: the kernel reads as many octets as it is told, of values that outlive the call, and
    // writes return value and duration into the attributes alone.
    match unsafe { bpf(PROG_RUN, &mut attributes) } {
        Err(error) if error.kind() != io::ErrorKind::Interrupted => Err(error),
        _ => Ok(()),
    }
}
