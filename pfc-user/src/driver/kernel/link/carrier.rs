//! Waiting for a link that stays: a carrier that is there, and does not go again at once.
//!
//! The operational state alone does not do: the kernel sets it on a work queue
//! (net/core/link_watch.c), so that after a reset it still reads "up" on a port without carrier,
//! which refuses frames with ENOBUFS (seen on Linux 6.1). The carrier alone does not do either:
//! before the same queue was run, a bridge does not forward to the port, and a queueing discipline
//! drops.
//!
//! Nor is a carrier that is there now the one that will be. A driver that resets its port takes the
//! carrier away before its call returns, but a PHY that negotiates again, firmware, and the other
//! end act later. So the carrier has to stay for the time that the NIC's row says, and the kernel's
//! count of changes (IFLA_CARRIER_CHANGES, Linux 4.0) says whether it did: also where it went and
//! came between two looks. The kernel tells of a lost carrier up to a second late, so that an event
//! is a reason to look, and what is seen at the look counts.

use std::time::Duration;

use futures_util::stream::{StreamExt, TryStreamExt};
use pfc_ebpf::units::Nanos;
use rtnetlink::Handle;
use rtnetlink::packet_core::NetlinkPayload;
use rtnetlink::packet_route::RouteNetlinkMessage;
use rtnetlink::packet_route::link::{LinkAttribute, LinkMessage, State};
use validator_core::nic;

use super::{Events, LinkError, LinkState, Namespace, ethtool, find, netlink, state};
use crate::driver::kernel::clock;

/// Waits until frames can pass, and will. An error where no carrier comes within `timeout`, or none
/// that came until then stays.
pub fn wait_for_carrier(
    namespace: &Namespace,
    interface: &str,
    timeout: Duration,
) -> Result<(), LinkError> {
    let driver = namespace.run(|| ethtool::driver(interface))?;
    let hold = nic::of(&driver.unwrap_or_default()).carrier_hold;
    wait_for_lasting_carrier(namespace, interface, timeout, Duration::from_nanos(hold))
}

/// Like `wait_for_carrier`, but a carrier has to stay for `settle` whatever the driver is.
pub fn wait_for_lasting_carrier(
    namespace: &Namespace,
    interface: &str,
    timeout: Duration,
    settle: Duration,
) -> Result<(), LinkError> {
    let index = find(namespace, interface)?.header.index;
    let wait = Wait::new(nanos(timeout), nanos(settle), clock::now());
    let came = netlink(
        namespace,
        &format!("cannot wait for the carrier of {interface}"),
        async |handle, events| watch(&handle, events, index, wait).await,
    )?;
    if came {
        return Ok(());
    }
    Err(LinkError::NoCarrier {
        interface: interface.to_owned(),
        namespace: namespace.to_string(),
        waited: timeout,
    })
}

/// The state of `interface` once its link stays, or does not come within `timeout`. One that is not
/// set up is not waited for.
pub fn settled_state(
    namespace: &Namespace,
    interface: &str,
    timeout: Duration,
) -> Result<LinkState, LinkError> {
    let now = state(namespace, interface)?;
    if !now.up {
        return Ok(now);
    }
    match wait_for_carrier(namespace, interface, timeout) {
        Ok(()) | Err(LinkError::NoCarrier { .. }) => state(namespace, interface),
        Err(error) => Err(error),
    }
}

fn nanos(duration: Duration) -> Nanos {
    Nanos::try_from(duration.as_nanos()).unwrap_or(Nanos::MAX)
}

/// Returns true if the link came and stayed. Events are subscribed to before the first look, so
/// that none falls between a look and the wait.
async fn watch(
    handle: &Handle,
    mut events: Events,
    index: u32,
    mut wait: Wait,
) -> Result<bool, rtnetlink::Error> {
    loop {
        let look = Look::at(&by_index(handle, index).await?);
        let until = match wait.look(clock::now(), look) {
            Next::Stays => return Ok(true),
            Next::GivenUp => return Ok(false),
            Next::Until(until) => until,
        };
        let left = Duration::from_nanos(until.saturating_sub(clock::now()));
        // Past its end the wait is for time alone; the next look says what became of the link.
        let Ok(changed) = tokio::time::timeout(left, change(&mut events, index)).await else {
            continue;
        };
        if !changed {
            return Err(rtnetlink::Error::RequestFailed);
        }
    }
}

/// Waits until the kernel tells of the link, or that it had more to tell than it could; `false`
/// where it tells nothing any more.
async fn change(events: &mut Events, index: u32) -> bool {
    while let Some(event) = events.next().await {
        match event {
            NetlinkPayload::InnerMessage(RouteNetlinkMessage::NewLink(link))
                if link.header.index != index => {}
            NetlinkPayload::InnerMessage(_) | NetlinkPayload::Overrun(_) => return true,
            _ => {}
        }
    }
    false
}

pub(super) async fn by_index(handle: &Handle, index: u32) -> Result<LinkMessage, rtnetlink::Error> {
    let mut links = std::pin::pin!(handle.link().get().match_index(index).execute());
    links
        .try_next()
        .await?
        .ok_or(rtnetlink::Error::RequestFailed)
}

/// A link at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Look {
    /// Frames can pass.
    passes: bool,
    /// Number of times that its carrier has come or gone.
    changes: u32,
}

impl Look {
    fn at(link: &LinkMessage) -> Self {
        let carrier = attribute!(link.attributes, LinkAttribute::Carrier);
        let state = attribute!(link.attributes, LinkAttribute::OperState);
        let changes = attribute!(link.attributes, LinkAttribute::CarrierChanges);
        Self {
            // The kernel knows no state of drivers that never report a carrier.
            passes: carrier.is_some_and(|carrier| *carrier != 0)
                && matches!(state, Some(State::Up | State::Unknown)),
            changes: changes.copied().unwrap_or_default(),
        }
    }
}

/// The next action after a look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    /// The link is there, and stays.
    Stays,
    /// Look again at the next event, and at this time at the latest.
    Until(Nanos),
    /// The carrier did not come in time or does not last.
    GivenUp,
}

/// A wait for a link. No I/O; time is an argument.
#[derive(Clone, Copy, Debug)]
struct Wait {
    deadline: Nanos,
    settle: Nanos,
    /// Time since which frames can pass, and the count of carrier changes then.
    since: Option<(Nanos, u32)>,
}

impl Wait {
    fn new(timeout: Nanos, settle: Nanos, now: Nanos) -> Self {
        Self {
            deadline: now.saturating_add(timeout),
            settle,
            since: None,
        }
    }

    fn look(&mut self, now: Nanos, look: Look) -> Next {
        self.since = match self.since {
            _ if !look.passes => None,
            Some((since, changes)) if changes == look.changes => Some((since, changes)),
            _ => Some((now, look.changes)),
        };
        match self.since {
            Some((since, _)) if now >= since + self.settle => Next::Stays,
            // A carrier that came in time has the time to show that it stays.
            Some((since, _)) if since <= self.deadline => Next::Until(since + self.settle),
            None if now < self.deadline => Next::Until(self.deadline),
            _ => Next::GivenUp,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Nanos = 1_000_000;

    const fn up(changes: u32) -> Look {
        Look {
            passes: true,
            changes,
        }
    }

    const fn down(changes: u32) -> Look {
        Look {
            passes: false,
            changes,
        }
    }

    /// The actions after looks at these times in milliseconds, of a wait for 10 s from 0 on.
    fn course(settle: Nanos, looks: &[(Nanos, Look)]) -> Vec<Next> {
        let mut wait = Wait::new(10_000 * MS, settle * MS, 0);
        looks
            .iter()
            .map(|(now, look)| wait.look(now * MS, *look))
            .collect()
    }

    const fn until(time: Nanos) -> Next {
        Next::Until(time * MS)
    }

    #[test]
    fn a_link_without_a_phy_is_taken_as_it_is() {
        assert_eq!(course(0, &[(0, up(1))]), [Next::Stays]);
        let looks = [(0, down(0)), (3, up(1))];
        assert_eq!(course(0, &looks), [until(10_000), Next::Stays]);
    }

    #[test]
    fn a_carrier_that_still_reads_up_before_a_reset_is_not_taken() {
        // Up; gone at 200 ms, for two seconds; back, and stays.
        let looks = [
            (0, up(1)),
            (200, down(2)),
            (2300, up(3)),
            (2500, up(3)),
            (2800, up(3)),
        ];
        let expected = [
            until(500),
            until(10_000),
            until(2800),
            until(2800),
            Next::Stays,
        ];
        assert_eq!(course(500, &looks), expected);
    }

    #[test]
    fn a_carrier_that_went_and_came_unseen_has_not_stayed() {
        let looks = [(0, up(1)), (500, up(3)), (1000, up(3))];
        assert_eq!(course(500, &looks), [until(500), until(1000), Next::Stays]);
    }

    #[test]
    fn no_carrier_and_one_that_does_not_stay_end_at_the_deadline() {
        assert_eq!(
            course(500, &[(0, down(0)), (10_000, down(0))]),
            [until(10_000), Next::GivenUp]
        );
        // The carrier came just in time, and has its time.
        let looks = [(9_999, up(1)), (10_499, up(1))];
        assert_eq!(course(500, &looks), [until(10_499), Next::Stays]);
        let looks = [(9_999, up(1)), (10_100, up(3))];
        assert_eq!(course(500, &looks), [until(10_499), Next::GivenUp]);
    }

    #[test]
    fn carrier_and_state_both_have_to_be_there() {
        let look = |carrier, state| {
            let mut link = LinkMessage::default();
            link.attributes = vec![
                LinkAttribute::OperState(state),
                LinkAttribute::Carrier(carrier),
                LinkAttribute::CarrierChanges(7),
            ];
            Look::at(&link)
        };
        assert_eq!(look(1, State::Up), up(7));
        assert_eq!(look(1, State::Unknown), up(7));
        assert_eq!(look(0, State::Up), down(7), "the state lags behind a reset");
        assert_eq!(look(1, State::Down), down(7), "it lags behind the carrier");
        assert_eq!(look(1, State::Dormant), down(7));
    }
}
