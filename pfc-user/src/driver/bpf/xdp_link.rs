//! Attaching by bpf_link (Linux 5.9): never replaces a program, and ends with the descriptor, so
//! with the process.
//!
//! Written out because aya falls back to netlink where the kernel refuses with EINVAL, as drivers
//! do for many reasons; a program attached that way replaces another and outlives the process.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use super::syscall::bpf;

/// Hook of an attached program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hook {
    /// In the driver.
    Driver,
    /// Generic, in the stack.
    Skb,
}

impl Hook {
    /// The word in reports.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Driver => "driver",
            Self::Skb => "skb",
        }
    }

    /// `XDP_FLAGS_DRV_MODE` and `XDP_FLAGS_SKB_MODE` of `linux/if_link.h`.
    const fn flags(self) -> u32 {
        match self {
            Self::Driver => 1 << 2,
            Self::Skb => 1 << 1,
        }
    }
}

/// `BPF_LINK_CREATE` of `enum bpf_cmd`, `linux/bpf.h`.
const LINK_CREATE: libc::c_long = 28;
/// `BPF_XDP` of `enum bpf_attach_type`.
const ATTACH_XDP: u32 = 37;

/// The part of `union bpf_attr` for `BPF_LINK_CREATE`.
#[repr(C)]
struct Attributes {
    program: u32,
    interface: u32,
    attach_type: u32,
    flags: u32,
}

/// Attaches `program` to the interface of that index in the calling thread's network namespace.
pub fn create(program: BorrowedFd, interface: u32, mode: Hook) -> io::Result<OwnedFd> {
    let mut attributes = Attributes {
        program: program.as_raw_fd() as u32,
        interface,
        attach_type: ATTACH_XDP,
        flags: mode.flags(),
    };
    // SAFETY: there are no addresses in the attributes.
    let fd = unsafe { bpf(LINK_CREATE, &mut attributes) }?;
    // SAFETY: a new descriptor that nobody else has.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as i32) })
}
