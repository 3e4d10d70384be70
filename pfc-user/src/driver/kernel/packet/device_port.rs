//! A port of a simulated device: frames as on the wire, with the time at which the kernel received
//! them.

use std::io::{self, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use std::{mem, ptr};

use nix::errno::Errno;
use nix::net::if_::if_nametoindex;
use nix::sys::socket::sockopt::{RcvBufForce, ReceiveTimestampns};
use nix::sys::socket::{getsockopt, setsockopt};

use super::options::{AuxiliaryData, IgnoreOutgoing, QdiscBypass, Statistics};
use super::{BATCH, bind, bound_to, is_bound, promiscuous, send_some, silent_socket};

/// Longest frame received: a jumbo frame with two tags.
const SLOT: usize = 9600;
/// Room for the control messages of a frame: `SCM_TIMESTAMPNS` and `PACKET_AUXDATA` take 72 octets.
const CONTROL: usize = 128;
/// Receive buffer: about half a second at 1 Gbit/s, for times when the process does not run.
const RECEIVE_BUFFER: usize = 64 << 20;
/// Longest sleep while a link is down: nothing wakes up a process of which the interface is removed
/// then.
const LOOKS: Duration = Duration::from_secs(1);

/// A received frame.
#[derive(Debug)]
pub struct Received {
    /// Time at which the kernel received it: CLOCK_REALTIME in nanoseconds.
    pub realtime: u64,
    /// Octets, without FCS, VLAN tags in place.
    pub frame: Vec<u8>,
}

/// An interface's packet socket in promiscuous mode; no call on it waits.
#[derive(Debug)]
pub struct DevicePort {
    fd: OwnedFd,
    /// The link went down, and no frame has come since.
    down: AtomicBool,
    /// The interface's own address.
    pub address: [u8; 6],
}

/// Buffers for a batch of received frames.
#[derive(Debug)]
pub struct Batch {
    slots: Vec<u8>,
    control: Vec<ControlBuffer>,
    /// Frames lost because they were longer than a slot.
    pub truncated: u64,
}

/// Aligned as the kernel's `struct cmsghdr`.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(8))]
struct ControlBuffer([u8; CONTROL]);

impl Default for Batch {
    fn default() -> Self {
        Self {
            slots: vec![0; BATCH * SLOT],
            control: vec![ControlBuffer([0; CONTROL]); BATCH],
            truncated: 0,
        }
    }
}

impl DevicePort {
    /// Opens `interface` of the current network namespace. Frames sent by the kernel itself are not
    /// received.
    pub fn open(interface: &str) -> io::Result<Self> {
        let index = if_nametoindex(interface)?;
        let fd = silent_socket()?;
        setsockopt(&fd, ReceiveTimestampns, &true)?;
        setsockopt(&fd, RcvBufForce, &RECEIVE_BUFFER)?;
        setsockopt(&fd, AuxiliaryData, &true)?;
        setsockopt(&fd, IgnoreOutgoing, &true)?;
        setsockopt(&fd, QdiscBypass, &true)?;
        promiscuous(&fd, index)?;
        bind(&fd, index, libc::ETH_P_ALL as u16)?;
        let [address @ .., _, _] = bound_to(&fd)?.sll_addr;
        Ok(Self {
            fd,
            down: AtomicBool::new(false),
            address,
        })
    }

    /// Shortens a sleep so that an interface is missed in time that is removed while it is down.
    pub fn at_most(&self, sleep: Option<Duration>) -> Option<Duration> {
        if self.down.load(Ordering::Relaxed) {
            Some(sleep.map_or(LOOKS, |sleep| sleep.min(LOOKS)))
        } else {
            sleep
        }
    }

    /// Fails if the interface was removed.
    fn check_present(&self) -> io::Result<()> {
        if is_bound(&self.fd)? {
            Ok(())
        } else {
            Err(Errno::ENODEV.into())
        }
    }

    /// Appends the frames that wait, at most a batch of them, in the order of arrival. Returns true
    /// if more may be waiting. A link that is down has none; it may come up again.
    pub fn receive(&self, batch: &mut Batch, received: &mut Vec<Received>) -> io::Result<bool> {
        let Batch {
            slots,
            control,
            truncated,
        } = batch;
        let mut parts: Vec<IoSliceMut<'_>> =
            slots.chunks_exact_mut(SLOT).map(IoSliceMut::new).collect();
        let mut headers: Vec<libc::mmsghdr> = parts
            .iter_mut()
            .zip(control.iter_mut())
            .map(|(part, control)| {
                // SAFETY: all-zero is a valid mmsghdr: no name, no parts, no control buffer.
                let mut header: libc::mmsghdr = unsafe { mem::zeroed() };
                // An IoSliceMut is an iovec (guaranteed by the standard library).
                header.msg_hdr.msg_iov = ptr::from_mut(part).cast();
                header.msg_hdr.msg_iovlen = 1;
                header.msg_hdr.msg_control = control.0.as_mut_ptr().cast();
                header.msg_hdr.msg_controllen = CONTROL;
                header
            })
            .collect();
        // SAFETY: every header points to one part and one control buffer of its own, which outlive
        // the call.
        let count = unsafe {
            libc::recvmmsg(
                self.fd.as_raw_fd(),
                headers.as_mut_ptr(),
                headers.len() as u32,
                libc::MSG_DONTWAIT,
                ptr::null_mut(),
            )
        };
        let count = match Errno::result(count) {
            Ok(count) => count as usize,
            Err(Errno::EAGAIN) if !self.down.load(Ordering::Relaxed) => return Ok(false),
            Err(Errno::EAGAIN) => return self.check_present().map(|()| false),
            // The kernel reports this once, when the link goes down (net/packet/af_packet.c).
            Err(Errno::ENETDOWN) => {
                self.down.store(true, Ordering::Relaxed);
                return self.check_present().map(|()| false);
            }
            Err(Errno::EINTR) => return Ok(true),
            Err(error) => return Err(error.into()),
        };
        self.down.store(false, Ordering::Relaxed);
        for (header, part) in headers.iter().zip(&parts).take(count) {
            if header.msg_hdr.msg_flags & libc::MSG_TRUNC != 0 {
                *truncated += 1;
                continue;
            }
            received.push(read(&header.msg_hdr, &part[..header.msg_len as usize]));
        }
        Ok(count == BATCH)
    }

    /// Hands frames to the interface, past its queueing discipline, at most a batch of them.
    /// Returns how many it took; the error says why it took none.
    pub fn send<'a>(&self, frames: impl Iterator<Item = &'a [u8]> + Clone) -> nix::Result<usize> {
        loop {
            match send_some(&self.fd, frames.clone()) {
                Err(Errno::EINTR) => {}
                sent => return sent.map(|(sent, _)| sent),
            }
        }
    }

    /// Frames that the kernel dropped since the last call because the receive buffer was full.
    pub fn overruns(&self) -> io::Result<u64> {
        Ok(getsockopt(&self.fd, Statistics)?.tp_drops.into())
    }
}

impl AsFd for DevicePort {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Restores a frame: its time, and the VLAN tag that the kernel removes.
fn read(header: &libc::msghdr, octets: &[u8]) -> Received {
    let mut time = Duration::ZERO;
    let mut tag = None;
    // SAFETY: the kernel filled the control buffer, and set `msg_controllen` to what it wrote.
    let mut message = unsafe { libc::CMSG_FIRSTHDR(header) };
    // SAFETY: a pointer from CMSG_FIRSTHDR or CMSG_NXTHDR is null or a header within the control
    // buffer.
    while let Some(control) = unsafe { message.as_ref() } {
        // SAFETY: as above.
        let data = unsafe { libc::CMSG_DATA(message) };
        match (control.cmsg_level, control.cmsg_type) {
            (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) => {
                // SAFETY: the data of this message is a timespec.
                let stamp: libc::timespec = unsafe { ptr::read_unaligned(data.cast()) };
                time = Duration::new(stamp.tv_sec as u64, stamp.tv_nsec as u32);
            }
            (libc::SOL_PACKET, libc::PACKET_AUXDATA) => {
                // SAFETY: the data of this message is a tpacket_auxdata.
                let auxiliary: libc::tpacket_auxdata = unsafe { ptr::read_unaligned(data.cast()) };
                tag = (auxiliary.tp_status & libc::TP_STATUS_VLAN_VALID != 0)
                    .then_some((auxiliary.tp_vlan_tpid, auxiliary.tp_vlan_tci));
            }
            _ => {}
        }
        // SAFETY: `message` lies within the control buffer of `header`.
        message = unsafe { libc::CMSG_NXTHDR(header, message) };
    }
    let mut frame = Vec::with_capacity(octets.len() + 4);
    match tag {
        Some((tpid, tci)) => {
            let (addresses, rest) = octets.split_at(octets.len().min(12));
            frame.extend_from_slice(addresses);
            frame.extend_from_slice(&tpid.to_be_bytes());
            frame.extend_from_slice(&tci.to_be_bytes());
            frame.extend_from_slice(rest);
        }
        None => frame.extend_from_slice(octets),
    }
    Received {
        realtime: time.as_nanos() as u64,
        frame,
    }
}
