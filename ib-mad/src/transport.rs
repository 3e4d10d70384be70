//! What sends and receives MADs.

#[cfg(all(feature = "host", target_os = "linux"))]
pub mod ibsim;
pub mod simulated;
#[cfg(all(feature = "host", target_os = "linux"))]
pub mod umad;
#[cfg(all(feature = "host", target_os = "linux"))]
mod wait;
mod wake;

use std::io;
#[cfg(all(feature = "host", target_os = "linux"))]
use std::os::fd::OwnedFd;
use std::time::Duration;

use crate::mad::Lid;
use crate::smp::Smp;

/// A time: since an epoch of the transport's own, and never running backwards.
pub type Time = Duration;

/// Octets that came in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    /// When.
    pub at: Time,
    /// As they came; not even their length has been looked at.
    pub octets: Vec<u8>,
}

/// A packet that could not be sent: nothing of it is on the wire.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// The system refused it.
    #[error("cannot send by {transport}: {source}")]
    System {
        /// Name of the transport.
        transport: String,
        /// What the system said.
        source: io::Error,
    },
    /// The transport took it and said later that it had not been sent (umad: a status other than a time-out).
    #[error("{transport} did not send it: status {status}")]
    Status {
        /// Name of the transport.
        transport: String,
        /// As it was given.
        status: u32,
    },
}

/// No packet can be received any more, or not now.
#[derive(Debug, thiserror::Error)]
pub enum ReceiveError {
    /// The device or the peer is gone, or the system failed.
    #[error("cannot receive by {transport}: {source}")]
    System {
        /// Name of the transport.
        transport: String,
        /// What the system said.
        source: io::Error,
    },
    /// A request that was taken has not been sent.
    #[error(transparent)]
    NotSent(#[from] SendError),
    /// What [`Transport::set_wake`] was given became readable.
    #[error("interrupted")]
    Interrupted,
}

/// A way to a port of the fabric. Nothing is ever sent again by a transport.
pub trait Transport {
    /// What it is, for people: `umad mlx5_0 port 1`.
    fn name(&self) -> String;

    /// The time.
    fn now(&self) -> Time;

    /// Sends `smp`; `to` is looked at where it is LID-routed. `wait` says for how long an answer is of use: some transports pass
    /// on answers only in that time, and only those that match.
    fn send(&mut self, smp: &Smp, to: Lid, wait: Duration) -> Result<(), SendError>;

    /// The next packet, whatever it is; `None` at `deadline`.
    fn receive(&mut self, deadline: Time) -> Result<Option<Received>, ReceiveError>;

    /// Whether answers that match no request under way are passed on. Linux' umad drops them in the kernel.
    fn shows_unmatched(&self) -> bool;

    /// Ends every wait while `wake` can be read; `None` ends that.
    #[cfg(all(feature = "host", target_os = "linux"))]
    fn set_wake(&mut self, wake: Option<OwnedFd>);
}

impl<T: Transport + ?Sized> Transport for Box<T> {
    fn name(&self) -> String {
        (**self).name()
    }
    fn now(&self) -> Time {
        (**self).now()
    }
    fn send(&mut self, smp: &Smp, to: Lid, wait: Duration) -> Result<(), SendError> {
        (**self).send(smp, to, wait)
    }
    fn receive(&mut self, deadline: Time) -> Result<Option<Received>, ReceiveError> {
        (**self).receive(deadline)
    }
    fn shows_unmatched(&self) -> bool {
        (**self).shows_unmatched()
    }
    #[cfg(all(feature = "host", target_os = "linux"))]
    fn set_wake(&mut self, wake: Option<OwnedFd>) {
        (**self).set_wake(wake);
    }
}
