//! `<rdma/ib_user_mad.h>`: layouts and ioctls.

use std::ffi::c_ulong;
use std::os::fd::RawFd;

use nix::errno::Errno;

use crate::mad::{Lid, Method};

/// IB_USER_MAD_ABI_VERSION.
pub(super) const VERSION: u32 = 5;
/// Status of a request returned unanswered: ETIMEDOUT, as all architectures but MIPS, SPARC, Alpha
/// and PA-RISC have it.
pub(super) const TIMED_OUT: u32 = Errno::ETIMEDOUT as u32;

/// The fields of `struct ib_user_mad_hdr` that this tool uses. The others are 0: QP 0 without a
/// key, service level 0, no GRH, no retries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) agent: u32,
    pub(super) status: u32,
    pub(super) timeout_ms: u32,
    pub(super) lid: Lid,
}

impl Header {
    pub(super) const LENGTH: usize = 64;

    pub(super) fn octets(&self) -> [u8; Self::LENGTH] {
        let mut octets = [0; Self::LENGTH];
        octets[..4].copy_from_slice(&self.agent.to_ne_bytes());
        octets[4..8].copy_from_slice(&self.status.to_ne_bytes());
        octets[8..12].copy_from_slice(&self.timeout_ms.to_ne_bytes());
        octets[28..30].copy_from_slice(&self.lid.0.to_be_bytes());
        octets
    }

    pub(super) fn parse(octets: &[u8; Self::LENGTH]) -> Self {
        let number =
            |at: usize| u32::from_ne_bytes(std::array::from_fn(|index| octets[at + index]));
        Self {
            agent: number(0),
            status: number(4),
            timeout_ms: number(8),
            lid: Lid(u16::from_be_bytes([octets[28], octets[29]])),
        }
    }
}

const LONG_BITS: usize = c_ulong::BITS as usize;

/// `struct ib_user_mad_reg_req`, whose longs are aligned to 4 octets.
#[repr(C, packed(4))]
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RegRequest {
    pub(super) id: u32,
    pub(super) method_mask: [c_ulong; 128 / LONG_BITS],
    pub(super) qpn: u8,
    pub(super) class: u8,
    pub(super) class_version: u8,
    pub(super) oui: [u8; 3],
    pub(super) rmpp_version: u8,
}

impl RegRequest {
    /// Describes an agent of `class`. It receives the responses to its requests, and packets of
    /// these methods.
    pub(super) fn new(class: u8, methods: &[Method]) -> Self {
        let mut method_mask = [0; 128 / LONG_BITS];
        for Method(method) in methods {
            method_mask[usize::from(*method) / LONG_BITS] |=
                1 << (usize::from(*method) % LONG_BITS);
        }
        Self {
            method_mask,
            class,
            class_version: 1,
            ..Self::default()
        }
    }
}

const MAGIC: u8 = 0x1b;

mod ioctl {
    use super::{MAGIC, RegRequest};

    nix::ioctl_readwrite!(register_agent, MAGIC, 1, RegRequest);
    nix::ioctl_none!(enable_pkey, MAGIC, 3);
}

/// Makes the header 64 octets long, with the index of a P_Key.
pub(super) fn enable_pkey(umad: RawFd) -> Result<(), Errno> {
    // SAFETY: this request takes no argument, so the kernel touches no memory of ours.
    unsafe { ioctl::enable_pkey(umad) }.map(drop)
}

/// Registers an agent and returns its number.
pub(super) fn register(umad: RawFd, mut request: RegRequest) -> Result<u32, Errno> {
    // SAFETY: the kernel reads and writes one `ib_user_mad_reg_req`, which `request` is (a test
    // compares it with the header's), and keeps no pointer to it.
    unsafe { ioctl::register_agent(umad, &raw mut request) }.map(|_| request.id)
}

#[cfg(test)]
pub(super) const REQUESTS: [u64; 2] = [
    nix::request_code_readwrite!(MAGIC, 1, size_of::<RegRequest>()),
    nix::request_code_none!(MAGIC, 3),
];
