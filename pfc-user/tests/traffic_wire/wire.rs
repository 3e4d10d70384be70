//! A veth pair in a network namespace of its own, and what arrives at its far end.

use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::panic::resume_unwind;
use std::process::Command;
use std::{fs, ptr, thread};

use pfc_ebpf::stamp::{self, Stamp};
use validator::driver::kernel::clock;

/// Runs `test` in a thread with a network namespace of its own that has a veth pair, `a` and `b`,
/// both up. The namespace ends with the thread and its sockets.
pub fn on_a_wire<T: Send>(test: impl FnOnce() -> T + Send) -> T {
    let run = move || {
        nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWNET)
            .expect("root may make a network namespace");
        // Without IPv6 the kernel sends no neighbour discovery, whose frames would be counted too.
        let _ = fs::write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1");
        ip("link add name a type veth peer name b");
        ip("link set dev a up");
        ip("link set dev b up");
        test()
    };
    thread::scope(|scope| {
        scope
            .spawn(run)
            .join()
            .unwrap_or_else(|panic| resume_unwind(panic))
    })
}

/// Runs `ip` in the calling thread's network namespace.
pub fn ip(arguments: &str) {
    let status = Command::new("ip")
        .args(arguments.split(' '))
        .status()
        .expect("iproute2 is installed");
    assert!(status.success(), "ip {arguments}: {status}");
}

/// All that arrives on any interface of the namespace.
pub struct Capture {
    fd: OwnedFd,
}

/// A test frame as it arrived.
#[derive(Clone, Debug)]
pub struct TestFrame {
    pub octets: Vec<u8>,
    pub pcp: Option<u8>,
    /// TOS or Traffic Class.
    pub traffic_class: u8,
    pub stamp: Stamp,
}

impl Capture {
    pub fn open() -> Self {
        // SAFETY: a system call without pointers. The descriptor is checked and has no other owner.
        let fd = unsafe {
            let fd = libc::socket(
                libc::AF_PACKET,
                libc::SOCK_RAW | libc::SOCK_CLOEXEC,
                i32::from((libc::ETH_P_ALL as u16).to_be()),
            );
            assert!(fd >= 0, "{}", io::Error::last_os_error());
            OwnedFd::from_raw_fd(fd)
        };
        for (level, option, value) in [
            (libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, 512 << 20),
            (libc::SOL_PACKET, libc::PACKET_AUXDATA, 1),
            (libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, 1),
        ] {
            // SAFETY: `value` is an int of the length given.
            let set = unsafe {
                libc::setsockopt(
                    fd.as_raw_fd(),
                    level,
                    option,
                    (&raw const value).cast(),
                    size_of::<libc::c_int>() as u32,
                )
            };
            assert_eq!(set, 0, "{}", io::Error::last_os_error());
        }
        Self { fd }
    }

    /// Returns the next frame, with the VLAN tag that the kernel stripped put back. `None` if none
    /// comes within 5 s.
    pub fn next(&self) -> Option<Vec<u8>> {
        self.next_within(5000)
    }

    /// The frame that is there already.
    pub fn at_hand(&self) -> Option<Vec<u8>> {
        self.next_within(0)
    }

    fn next_within(&self, milliseconds: i32) -> Option<Vec<u8>> {
        let mut poll = libc::pollfd {
            fd: self.fd.as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        };
        // SAFETY: one pollfd, as the count says.
        if unsafe { libc::poll(&mut poll, 1, milliseconds) } <= 0 {
            return None;
        }
        let mut octets = vec![0u8; 10_000];
        // A cmsghdr must be aligned like a word.
        let mut control = [0u64; 16];
        let mut vector = libc::iovec {
            iov_base: octets.as_mut_ptr().cast(),
            iov_len: octets.len(),
        };
        // SAFETY: all octets zero is a valid msghdr.
        let mut message: libc::msghdr = unsafe { zeroed() };
        message.msg_iov = &mut vector;
        message.msg_iovlen = 1;
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = size_of_val(&control);
        // SAFETY: the message points to buffers of the given lengths, which outlive the call.
        let length = unsafe { libc::recvmsg(self.fd.as_raw_fd(), &mut message, 0) };
        assert!(length >= 0, "{}", io::Error::last_os_error());
        octets.truncate(length as usize);
        // SAFETY: the kernel has filled in the control buffer of `message`. A PACKET_AUXDATA
        // message holds a tpacket_auxdata.
        unsafe {
            let header = libc::CMSG_FIRSTHDR(&message);
            if !header.is_null()
                && (*header).cmsg_level == libc::SOL_PACKET
                && (*header).cmsg_type == libc::PACKET_AUXDATA
            {
                let auxdata: libc::tpacket_auxdata =
                    ptr::read_unaligned(libc::CMSG_DATA(header).cast());
                if auxdata.tp_status & libc::TP_STATUS_VLAN_VALID != 0 {
                    let [a, b] = auxdata.tp_vlan_tpid.to_be_bytes();
                    let [c, d] = auxdata.tp_vlan_tci.to_be_bytes();
                    octets.splice(12..12, [a, b, c, d]);
                }
            }
        }
        Some(octets)
    }

    /// The next test frame.
    pub fn next_test_frame(&self) -> Option<TestFrame> {
        std::iter::from_fn(|| self.next()).find_map(TestFrame::parse)
    }

    /// Returns `count` test frames, or fewer if no more come. Asserts that there are no others and
    /// that the socket lost none.
    pub fn test_frames(&self, count: u64) -> Vec<TestFrame> {
        let frames: Vec<_> = (0..count).map_while(|_| self.next_test_frame()).collect();
        let beyond = std::iter::from_fn(|| self.at_hand()).find_map(TestFrame::parse);
        assert!(beyond.is_none(), "more than {count} frames: {beyond:?}");
        assert_eq!(self.lost(), 0, "the capture lost frames");
        frames
    }

    /// Frames for which there was no room, since the last call.
    fn lost(&self) -> u32 {
        // SAFETY: all octets zero is a valid tpacket_stats.
        let mut statistics: libc::tpacket_stats = unsafe { zeroed() };
        let mut length = size_of::<libc::tpacket_stats>() as u32;
        // SAFETY: the buffer and its length belong together.
        let got = unsafe {
            libc::getsockopt(
                self.fd.as_raw_fd(),
                libc::SOL_PACKET,
                libc::PACKET_STATISTICS,
                (&raw mut statistics).cast(),
                &mut length,
            )
        };
        assert_eq!(got, 0, "{}", io::Error::last_os_error());
        statistics.tp_drops
    }
}

impl TestFrame {
    fn parse(octets: Vec<u8>) -> Option<Self> {
        let word = |at: usize| Some(u16::from_be_bytes([*octets.get(at)?, *octets.get(at + 1)?]));
        let (pcp, type_at) = if word(12)? == 0x8100 {
            (Some((word(14)? >> 13) as u8), 16)
        } else {
            (None, 12)
        };
        let ip_at = type_at + 2;
        let (traffic_class, udp_at) = match word(type_at)? {
            0x0800 => (word(ip_at)? as u8, ip_at + 20),
            0x86dd => ((word(ip_at)? >> 4) as u8, ip_at + 40),
            _ => return None,
        };
        if word(udp_at + 2)? != stamp::UDP_PORT {
            return None;
        }
        let stamp = octets
            .get(udp_at + 8..udp_at + 8 + stamp::LEN)?
            .try_into()
            .ok()?;
        let stamp = Stamp::parse(stamp).expect("the stamp is whole");
        // A stamp has the low bits of its time.
        let now = clock::now();
        Some(Self {
            octets,
            pcp,
            traffic_class,
            stamp: Stamp {
                time: now - stamp.latency(now),
                ..stamp
            },
        })
    }
}
