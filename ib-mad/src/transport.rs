//! Transports of MADs.

#[cfg(all(feature = "host", target_os = "linux"))]
pub mod ibsim;
pub mod simulated;
#[cfg(all(feature = "host", target_os = "linux"))]
pub mod umad;
#[cfg(all(feature = "host", target_os = "linux"))]
mod wait;

use std::io;
#[cfg(all(feature = "host", target_os = "linux"))]
use std::os::fd::OwnedFd;
use std::time::Duration;

use crate::mad::Lid;
pub use crate::mad::Time;
use crate::smp::Smp;

/// A wait that ended too late: the tester itself stood still.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overslept {
    /// When the wait was to end.
    pub due: Time,
    /// When it ended.
    pub ended: Time,
}

/// Octets received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    /// Time of arrival.
    pub at: Time,
    /// Unchecked octets; even their length may be wrong.
    pub octets: Vec<u8>,
}

/// A packet could not be sent; nothing of it is on the wire.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// The system refused it.
    #[error("cannot send by {transport}: {source}")]
    System {
        /// Name of the transport.
        transport: String,
        /// Error of the system.
        source: io::Error,
    },
    /// The transport accepted the packet and reported later that it had not been sent (umad: a
    /// status other than a time-out).
    #[error("{transport} did not send it: status {status}")]
    Status {
        /// Name of the transport.
        transport: String,
        /// Status reported.
        status: u32,
    },
}

/// Receiving failed or was interrupted.
#[derive(Debug, thiserror::Error)]
pub enum ReceiveError {
    /// The device or the peer is gone, or the system failed.
    #[error("cannot receive by {transport}: {source}")]
    System {
        /// Name of the transport.
        transport: String,
        /// Error of the system.
        source: io::Error,
    },
    /// A request accepted earlier was not sent.
    #[error(transparent)]
    NotSent(#[from] SendError),
    /// The descriptor given to [`Transport::set_wake`] became readable.
    #[error("interrupted")]
    Interrupted,
}

/// Access to a port of the fabric. A transport never sends a packet twice.
pub trait Transport {
    /// Name for people: `umad mlx5_0 port 1`.
    fn name(&self) -> String;

    /// Current time.
    fn now(&self) -> Time;

    /// Sends `smp`, to `to` if it is LID-routed. `keep` is how long a response is of use: some
    /// transports deliver responses only within that time, and only matching ones.
    fn send(&mut self, smp: &Smp, to: Lid, keep: Duration) -> Result<(), SendError>;

    /// Returns the next packet of any kind; `None` at `deadline`.
    fn receive(&mut self, deadline: Time) -> Result<Option<Received>, ReceiveError>;

    /// True if responses that match no request under way are delivered. Linux' umad drops them in
    /// the kernel.
    fn shows_unmatched(&self) -> bool;

    /// True if all of a TID is left as it is; else its upper half may be another.
    fn keeps_tids(&self) -> bool {
        false
    }

    /// Waits that ended too late since the last call, oldest first.
    fn take_overslept(&mut self) -> Vec<Overslept> {
        Vec::new()
    }

    /// Ends every wait while `wake` is readable; `None` removes it.
    #[cfg(all(feature = "host", target_os = "linux"))]
    fn set_wake(&mut self, wake: Option<OwnedFd>);

    /// From now on nothing but the deadline ends a wait.
    fn clear_wake(&mut self) {
        #[cfg(all(feature = "host", target_os = "linux"))]
        self.set_wake(None);
    }
}
