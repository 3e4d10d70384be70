//! A socket for whole frames, which is not the program's own.

use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

use nix::errno::Errno;
use nix::libc;
use nix::net::if_::if_nametoindex;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, setsockopt, socket, sockopt};
use nix::sys::time::{TimeVal, TimeValLike};

/// Opens a socket for all frames at `interface` of the calling thread's namespace, and for those of
/// no other, not even from before it was bound. A wait ends after `patience`.
pub fn packet_socket(interface: &str, patience: Duration) -> OwnedFd {
    let fd = socket(
        AddressFamily::Packet,
        SockType::Raw,
        SockFlag::SOCK_CLOEXEC,
        None,
    )
    .unwrap();
    let address = libc::sockaddr_ll {
        sll_family: libc::AF_PACKET as u16,
        sll_protocol: (libc::ETH_P_ALL as u16).to_be(),
        sll_ifindex: if_nametoindex(interface).unwrap() as i32,
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 0,
        sll_addr: [0; 8],
    };
    // SAFETY: an address of the length given.
    Errno::result(unsafe {
        libc::bind(
            fd.as_raw_fd(),
            (&raw const address).cast(),
            size_of_val(&address) as u32,
        )
    })
    .unwrap();
    let patience = TimeVal::microseconds(patience.as_micros() as i64);
    setsockopt(&fd, sockopt::ReceiveTimeout, &patience).unwrap();
    fd
}
