//! ibsim's socket protocol, spoken by [`IbsimTransport`] and served by [`Server`].
//!
//! The protocol is the one between `libumad2sim.so` and ibsim: datagrams between sockets in the
//! abstract name space, of which each network namespace has its own. `NAME` is the server's name
//! (IBSIM_SOCKNAME), `ID` a number chosen by the client (libumad2sim takes its process id), `SLOT`
//! a number assigned by the server. Each address ends with a zero octet.
//!
//! | client's socket | server's socket | datagrams |
//! |---|---|---|
//! | `NAME:ctlID` | `NAME:ctl` | control: 80 octets, each answered with as many |
//! | `NAME:inID` | `NAME:outSLOT` | MADs: 288 octets, either way |
//!
//! Observed with ibsim 0.10. Integers are in host byte order, except LIDs and the length of a MAD.

mod client;
mod server;
mod wire;

use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::SocketAddr;

pub use client::{ConnectError, IbsimTransport};
pub use server::{BindError, ClientId, Counters, Host, Packet, Server};

/// Address of a socket of the server `name`. Returns an error if the name is too long.
fn address(name: &str, socket: &str) -> io::Result<SocketAddr> {
    SocketAddr::from_abstract_name(format!("{name}:{socket}\0"))
}
