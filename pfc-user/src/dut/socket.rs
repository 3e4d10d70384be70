//! A port's packet socket (packet(7)): frames as on the wire, with the time at which the kernel
//! received them.

use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use std::{mem, ptr};

use nix::net::if_::if_nametoindex;
use nix::sys::socket::{LinkAddr, SockaddrStorage, getsockname, setsockopt, sockopt};

/// Frames per system call.
const BATCH: usize = 64;
/// Longest frame received: a jumbo frame with two tags.
const SLOT: usize = 9600;
/// Room for the control messages of a frame: `SCM_TIMESTAMPNS` and `PACKET_AUXDATA` take 72 octets.
const CONTROL: usize = 128;
/// Receive buffer: about half a second at 1 Gbit/s, for times when the process does not run.
const RECEIVE_BUFFER: usize = 64 << 20;

/// A received frame.
#[derive(Debug)]
pub struct Received {
    /// Time at which the kernel received it: CLOCK_REALTIME in nanoseconds.
    pub realtime: u64,
    /// Octets, without FCS, VLAN tags in place.
    pub frame: Vec<u8>,
}

/// Longest sleep while a link is down: nothing wakes up a process of which the interface is removed
/// then.
const LOOKS: Duration = Duration::from_secs(1);

/// An interface's packet socket in promiscuous mode, non-blocking.
#[derive(Debug)]
pub struct PacketSocket {
    fd: OwnedFd,
    index: usize,
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

impl Batch {
    /// Returns empty buffers.
    pub fn new() -> Self {
        Self {
            slots: vec![0; BATCH * SLOT],
            control: vec![ControlBuffer([0; CONTROL]); BATCH],
            truncated: 0,
        }
    }
}

impl PacketSocket {
    /// Opens `interface` of the current network namespace. Frames sent by the kernel itself are not
    /// received.
    pub fn open(interface: &str) -> io::Result<Self> {
        let index = if_nametoindex(interface)? as i32;
        // Protocol 0 receives nothing until bound, so no frame of another interface gets in.
        // SAFETY: no pointers; the result is checked.
        let fd = unsafe {
            libc::socket(
                libc::AF_PACKET,
                libc::SOCK_RAW | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC,
                0,
            )
        };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: just opened, owned by nobody else.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        setsockopt(&fd, sockopt::ReceiveTimestampns, &true)?;
        setsockopt(&fd, sockopt::RcvBufForce, &RECEIVE_BUFFER)?;
        let mut socket = Self {
            fd,
            index: index as usize,
            down: AtomicBool::new(false),
            address: [0; 6],
        };
        socket.set(libc::PACKET_AUXDATA, &1i32)?;
        socket.set(libc::PACKET_IGNORE_OUTGOING, &1i32)?;
        socket.set(libc::PACKET_QDISC_BYPASS, &1i32)?;
        let promiscuous = libc::packet_mreq {
            mr_ifindex: index,
            mr_type: libc::PACKET_MR_PROMISC as u16,
            mr_alen: 0,
            mr_address: [0; 8],
        };
        socket.set(libc::PACKET_ADD_MEMBERSHIP, &promiscuous)?;
        socket.bind(index)?;
        let name: SockaddrStorage = getsockname(socket.fd.as_raw_fd())?;
        let address = name.as_link_addr().and_then(LinkAddr::addr);
        socket.address = address.ok_or_else(|| io::Error::other("it has no Ethernet address"))?;
        Ok(socket)
    }

    fn bind(&self, index: i32) -> io::Result<()> {
        // SAFETY: all-zero is a valid sockaddr_ll.
        let mut address: libc::sockaddr_ll = unsafe { mem::zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
        address.sll_ifindex = index;
        // SAFETY: the address outlives the call and its length is its own.
        let result = unsafe {
            libc::bind(
                self.fd.as_raw_fd(),
                ptr::from_ref(&address).cast(),
                mem::size_of_val(&address) as u32,
            )
        };
        if result < 0 {
            Err(io::Error::last_os_error())
        } else {
            Ok(())
        }
    }

    fn set<T>(&self, option: i32, value: &T) -> io::Result<()> {
        // SAFETY: the value outlives the call and its length is its own; each caller passes the
        // type of its option.
        let result = unsafe {
            libc::setsockopt(
                self.fd.as_raw_fd(),
                libc::SOL_PACKET,
                option,
                ptr::from_ref(value).cast(),
                mem::size_of::<T>() as u32,
            )
        };
        if result < 0 {
            Err(io::Error::last_os_error())
        } else {
            Ok(())
        }
    }

    /// Shortens a sleep so that an interface is missed in time that is removed while it is down.
    pub fn at_most(&self, sleep: Option<Duration>) -> Option<Duration> {
        if self.down.load(Ordering::Relaxed) {
            Some(sleep.map_or(LOOKS, |sleep| sleep.min(LOOKS)))
        } else {
            sleep
        }
    }

    /// Fails if the interface was removed: packet(7) then names another one.
    fn there(&self) -> io::Result<()> {
        let name: SockaddrStorage = getsockname(self.fd.as_raw_fd())?;
        match name.as_link_addr() {
            Some(link) if link.ifindex() == self.index => Ok(()),
            _ => Err(io::Error::from_raw_os_error(libc::ENODEV)),
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
        let Ok(count) = usize::try_from(count) else {
            return match io::Error::last_os_error() {
                error if error.kind() == io::ErrorKind::WouldBlock => {
                    if self.down.load(Ordering::Relaxed) {
                        self.there()?;
                    }
                    Ok(false)
                }
                // The kernel reports this once, when the link goes down (net/packet/af_packet.c).
                error if error.kind() == io::ErrorKind::NetworkDown => {
                    self.down.store(true, Ordering::Relaxed);
                    self.there().map(|()| false)
                }
                error if error.kind() == io::ErrorKind::Interrupted => Ok(true),
                error => Err(error),
            };
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

    /// Hands frames to the interface, past its queueing discipline. Returns how many it took. If
    /// not all, the error says why the next one was refused.
    pub fn send(&self, frames: &[&[u8]]) -> (usize, Option<io::Error>) {
        let parts: Vec<IoSlice<'_>> = frames.iter().map(|frame| IoSlice::new(frame)).collect();
        let mut headers: Vec<libc::mmsghdr> = parts
            .iter()
            .map(|part| {
                // SAFETY: all-zero is a valid mmsghdr.
                let mut header: libc::mmsghdr = unsafe { mem::zeroed() };
                // An IoSlice is an iovec (guaranteed by the standard library), which sending only
                // reads.
                header.msg_hdr.msg_iov = ptr::from_ref(part).cast_mut().cast();
                header.msg_hdr.msg_iovlen = 1;
                header
            })
            .collect();
        let mut sent = 0;
        while sent < headers.len() {
            let rest = &mut headers[sent..];
            // SAFETY: every header points to one part, which outlives the call.
            let count = unsafe {
                libc::sendmmsg(
                    self.fd.as_raw_fd(),
                    rest.as_mut_ptr(),
                    rest.len() as u32,
                    libc::MSG_DONTWAIT,
                )
            };
            match usize::try_from(count) {
                Ok(count) => sent += count,
                Err(_) => match io::Error::last_os_error() {
                    error if error.kind() == io::ErrorKind::Interrupted => {}
                    error => return (sent, Some(error)),
                },
            }
        }
        (sent, None)
    }

    /// Frames that the kernel dropped since the last call because the receive buffer was full.
    pub fn overruns(&self) -> io::Result<u64> {
        let mut statistics = libc::tpacket_stats {
            tp_packets: 0,
            tp_drops: 0,
        };
        let mut length = mem::size_of_val(&statistics) as libc::socklen_t;
        // SAFETY: the kernel writes at most `length` octets into the structure, all of whose values
        // are valid.
        let result = unsafe {
            libc::getsockopt(
                self.fd.as_raw_fd(),
                libc::SOL_PACKET,
                libc::PACKET_STATISTICS,
                ptr::from_mut(&mut statistics).cast(),
                &mut length,
            )
        };
        if result < 0 {
            Err(io::Error::last_os_error())
        } else {
            Ok(statistics.tp_drops.into())
        }
    }
}

impl AsFd for PacketSocket {
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
