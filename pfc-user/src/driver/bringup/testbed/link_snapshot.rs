//! A link before and after frames are counted.

use anyhow::Result;

use super::TesterPort;
use crate::driver::kernel::link::{self, Announced, LinkEvent};

/// State of a link that has to stay the same while frames are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct LinkSnapshot {
    carrier_changes: u32,
    mtu: u32,
}

impl LinkSnapshot {
    /// Takes a snapshot of the link as it stands now.
    fn of(port: &TesterPort) -> Result<Self> {
        let TesterPort {
            namespace,
            interface,
            ..
        } = port;
        Ok(Self {
            carrier_changes: link::carrier_changes(namespace, interface)?,
            mtu: link::state(namespace, interface)?.mtu,
        })
    }

    /// The change until `now`, in words; `None` without one.
    fn disturbed(self, now: Self) -> Option<String> {
        if now.carrier_changes != self.carrier_changes {
            return Some("lost its carrier for a time".into());
        }
        self.other_mtu(now.mtu)
    }

    fn other_mtu(self, mtu: u32) -> Option<String> {
        (mtu != self.mtu).then(|| format!("got an MTU of {mtu} in place of {}", self.mtu))
    }
}

/// A link while frames are counted.
pub struct LinkWatch {
    /// The link as it stood at first.
    snapshot: LinkSnapshot,
    announced: Announced,
}

impl LinkWatch {
    /// Watches the link from now on.
    pub fn begin(port: &TesterPort) -> Result<Self> {
        let announced = port.namespace.run(Announced::begin)??;
        Ok(Self {
            snapshot: LinkSnapshot::of(port)?,
            announced,
        })
    }

    /// The change since, though it may have been undone; `None` without one.
    pub fn disturbed(&self, port: &TesterPort) -> Result<Option<String>> {
        let lasting = self.snapshot.disturbed(LinkSnapshot::of(port)?);
        let events = self.announced.take()?;
        Ok(lasting.or_else(|| {
            events.iter().find_map(|event| match event {
                LinkEvent::State { name, mtu, .. } if *name == port.interface => {
                    let other = self.snapshot.other_mtu(*mtu)?;
                    Some(format!("{other} for a time"))
                }
                LinkEvent::Missed => {
                    Some("may have changed: the kernel had more to tell than a socket held".into())
                }
                _ => None,
            })
        }))
    }
}
