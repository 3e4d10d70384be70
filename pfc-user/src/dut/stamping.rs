//! The wait until the kernel stamps frames as they arrive.
//!
//! Stamping begins some time after the first socket has asked for stamps, from a work queue,
//! without notice (`net_enable_timestamp`), and then does for all network namespaces. Until then a
//! frame's time is the time at which it is read.

use std::io::{self, IoSliceMut};
use std::net::UdpSocket;
use std::os::fd::AsRawFd;
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg, setsockopt, sockopt};
use nix::sys::time::TimeSpec;

use crate::driver::kernel::netns::Namespace;

/// The kernel stamps within this, where nothing shows when.
const LONGEST: Duration = Duration::from_millis(100);
/// A datagram waits for this before it is read: its stamp tells by that whether it was stamped as
/// it arrived.
const UNREAD: Duration = Duration::from_millis(1);

/// Waits until frames are stamped as they arrive. A socket of the caller asks for stamps.
pub fn wait() {
    // The probe has a namespace of its own, for the loopback interface may be down where the ports
    // are. Not every user of ports may make one.
    let seen = Namespace::new().and_then(|namespace| namespace.run(seen));
    if !matches!(seen, Ok(Ok(true))) {
        thread::sleep(LONGEST);
    }
}

/// Sends datagrams to itself until one is stamped before it is read; false: none was in time.
fn seen() -> io::Result<bool> {
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    socket.connect(socket.local_addr()?)?;
    socket.set_read_timeout(Some(LONGEST))?;
    setsockopt(&socket, sockopt::ReceiveTimestampns, &true)?;
    let tries = LONGEST.as_millis() / UNREAD.as_millis();
    for _ in 0..tries {
        socket.send(&[0])?;
        thread::sleep(UNREAD);
        let read = SystemTime::now().duration_since(UNIX_EPOCH);
        let stamp = stamp(&socket)?;
        if read.is_ok_and(|read| stamp + UNREAD / 2 < read) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The time that the kernel gives the next datagram, since 1970.
fn stamp(socket: &UdpSocket) -> io::Result<Duration> {
    let mut octet = [0];
    let mut data = [IoSliceMut::new(&mut octet)];
    let mut control = nix::cmsg_space!(TimeSpec);
    let received = recvmsg::<()>(
        socket.as_raw_fd(),
        &mut data,
        Some(&mut control),
        MsgFlags::empty(),
    )?;
    let stamp = received.cmsgs()?.find_map(|message| match message {
        ControlMessageOwned::ScmTimestampns(stamp) => Some(Duration::from(stamp)),
        _ => None,
    });
    stamp.ok_or_else(|| io::Error::other("a datagram without a stamp"))
}
