//! A link before and after frames are counted.

use anyhow::Result;

use super::TesterPort;
use crate::driver::kernel::link::{self, Announced, LinkEvent};

/// A link while frames are counted.
pub struct LinkWatch {
    /// The link as it stood at first.
    carrier_changes: u32,
    mtu: u32,
    announced: Announced,
}

impl LinkWatch {
    /// Watches the link from now on. Its MTU is the one that the port had when the run took it, where
    /// that has become too small for the longest packet, in octets.
    pub fn begin(port: &TesterPort, longest: usize) -> Result<Self> {
        let announced = port.namespace.run(Announced::begin)??;
        let (carrier_changes, mtu) = now(port)?;
        Ok(Self {
            carrier_changes,
            mtu: if (mtu as usize) < longest {
                port.state.mtu
            } else {
                mtu
            },
            announced,
        })
    }

    /// The change since, though it may have been undone; `None` without one.
    pub fn disturbed(&self, port: &TesterPort) -> Result<Option<String>> {
        let (carrier_changes, mtu) = now(port)?;
        let events = self.announced.take()?;
        if carrier_changes != self.carrier_changes {
            return Ok(Some("lost its carrier for a time".into()));
        }
        let lasting = self.other_mtu(mtu);
        Ok(lasting.or_else(|| {
            events.iter().find_map(|event| match event {
                LinkEvent::State { name, mtu, .. } if *name == port.interface => {
                    Some(format!("{} for a time", self.other_mtu(*mtu)?))
                }
                LinkEvent::Missed => {
                    Some("may have changed: the kernel had more to tell than a socket held".into())
                }
                _ => None,
            })
        }))
    }

    fn other_mtu(&self, mtu: u32) -> Option<String> {
        (mtu != self.mtu).then(|| format!("got an MTU of {mtu} in place of {}", self.mtu))
    }
}

/// Number of times that its carrier has come or gone, and its MTU.
fn now(port: &TesterPort) -> Result<(u32, u32)> {
    let (namespace, interface) = (&port.namespace, &port.interface);
    Ok((
        link::carrier_changes(namespace, interface)?,
        link::state(namespace, interface)?.mtu,
    ))
}
