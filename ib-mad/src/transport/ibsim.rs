//! ibsim's socket protocol, spoken by [`IbsimTransport`] and served by [`Server`].
//!
//! It is what `libumad2sim.so` speaks with ibsim: datagrams between sockets of the abstract name space, which is one for each
//! network namespace. `NAME` is the server's, IBSIM_SOCKNAME; `ID` is the client's own number (libumad2sim takes its process
//! id), `SLOT` the number that the server gives it. Each address ends with an octet 0.
//!
//! | client's socket | server's socket | datagrams |
//! |---|---|---|
//! | `NAME:ctlID` | `NAME:ctl` | control: 80 octets, each answered with as many |
//! | `NAME:inID` | `NAME:outSLOT` | MADs: 288 octets, either way |
//!
//! Seen with ibsim 0.10; integers are in the machine's order of octets, but for LIDs and the length of a MAD.

mod client;
mod server;
mod wire;

use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::SocketAddr;

pub use client::{ConnectError, IbsimTransport};
pub use server::{BindError, ClientId, Counters, Host, Packet, Server};

/// Address of a socket of the server `name`; an error if the name is too long for it.
fn address(name: &str, socket: &str) -> io::Result<SocketAddr> {
    SocketAddr::from_abstract_name(format!("{name}:{socket}\0"))
}
