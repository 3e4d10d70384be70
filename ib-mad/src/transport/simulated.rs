//! A fabric in memory with a clock of its own: waiting takes no real time.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::time::Duration;

use super::{ReceiveError, Received, SendError, Time, Transport};
use crate::mad::Lid;
use crate::sma::Fabric;
use crate::smp::Smp;

/// Fate of a packet that is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The packet reaches the fabric.
    Pass,
    /// The packet is lost without notice.
    Lose,
    /// The transport refuses the packet.
    Refuse,
}

/// Decides the fate of each packet.
type OnSend = Box<dyn FnMut(&Smp) -> Fate + Send>;

/// The tester's port of a simulated fabric. Its clock starts at 0 and moves only in
/// [`Transport::receive`].
pub struct Simulated {
    fabric: Fabric,
    now: Time,
    /// Packets on their way to the tester, ordered by time.
    deliveries: VecDeque<Received>,
    on_send: Option<OnSend>,
    /// Ends waits while it is readable.
    #[cfg(all(feature = "host", target_os = "linux"))]
    wake: Option<std::os::fd::OwnedFd>,
}

impl Simulated {
    /// Makes a transport with no packet under way.
    pub fn new(fabric: Fabric) -> Self {
        Self {
            fabric,
            now: Time::ZERO,
            deliveries: VecDeque::new(),
            on_send: None,
            #[cfg(all(feature = "host", target_os = "linux"))]
            wake: None,
        }
    }

    /// The fabric.
    pub fn fabric(&self) -> &Fabric {
        &self.fabric
    }

    /// The fabric, for changes in the middle of a test.
    pub fn fabric_mut(&mut self) -> &mut Fabric {
        &mut self.fabric
    }

    /// Lets `decide` choose the fate of each packet sent from now on.
    pub fn on_send(&mut self, decide: OnSend) {
        self.on_send = Some(decide);
    }

    #[cfg(all(feature = "host", target_os = "linux"))]
    fn is_woken(&self) -> bool {
        use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
        use std::os::fd::AsFd;

        self.wake.as_ref().is_some_and(|wake| {
            let mut wake = [PollFd::new(wake.as_fd(), PollFlags::POLLIN)];
            poll(&mut wake, PollTimeout::ZERO).is_ok_and(|ready| ready > 0)
        })
    }
}

impl fmt::Debug for Simulated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Simulated")
            .field("now", &self.now)
            .field("fabric", &self.fabric)
            .finish_non_exhaustive()
    }
}

impl Transport for Simulated {
    fn name(&self) -> String {
        "simulated fabric".into()
    }

    fn now(&self) -> Time {
        self.now
    }

    fn send(&mut self, smp: &Smp, to: Lid, _wait: Duration) -> Result<(), SendError> {
        match self
            .on_send
            .as_mut()
            .map_or(Fate::Pass, |decide| decide(smp))
        {
            Fate::Pass => {
                for delivery in self.fabric.send(self.now, smp, to) {
                    // After those of the same time: packets arrive in the order they were sent.
                    let at = self
                        .deliveries
                        .partition_point(|other| other.at <= delivery.at);
                    self.deliveries.insert(at, delivery);
                }
                Ok(())
            }
            Fate::Lose => Ok(()),
            Fate::Refuse => {
                let source = io::Error::other("refused, as the test wants it");
                Err(SendError::System {
                    transport: self.name(),
                    source,
                })
            }
        }
    }

    fn receive(&mut self, deadline: Time) -> Result<Option<Received>, ReceiveError> {
        #[cfg(all(feature = "host", target_os = "linux"))]
        if self.is_woken() {
            return Err(ReceiveError::Interrupted);
        }
        let due = self
            .deliveries
            .pop_front_if(|delivery| delivery.at <= deadline);
        let now = due.as_ref().map_or(deadline, |delivery| delivery.at);
        self.now = self.now.max(now);
        Ok(due)
    }

    fn shows_unmatched(&self) -> bool {
        true
    }

    fn keeps_tids(&self) -> bool {
        true
    }

    #[cfg(all(feature = "host", target_os = "linux"))]
    fn set_wake(&mut self, wake: Option<std::os::fd::OwnedFd>) {
        self.wake = wake;
    }
}
