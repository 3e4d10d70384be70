//! InfiniBand management datagrams (MAD): codec, attributes, transports and a subnet management
//! agent.
//!
//! - [`mad`] has the header common to all MADs, [`smp`] the packets of subnet management, [`attr`]
//!   the attributes that they carry.
//! - [`transport`] sends and receives packets: Linux' umad, ibsim's sockets, and a simulated fabric
//!   with a clock of its own.
//! - [`requester`] matches responses to requests and records all other packets.
//! - [`sma`] is a model of a subnet management agent. It does no I/O and takes time as an argument.
//!
//! References of the form "13.4.3" are sections of the InfiniBand Architecture Specification,
//! volume 1.

pub mod attr;
pub mod mad;
pub mod requester;
pub mod sma;
pub mod smp;
pub mod transport;

/// Runs the examples of the README as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
