//! A link before and after frames are counted.

use anyhow::Result;

use super::TesterPort;
use crate::driver::kernel::link;

/// State of a link that has to stay the same while frames are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkSnapshot {
    carrier_changes: u32,
    mtu: u32,
}

impl LinkSnapshot {
    /// As it stands now.
    pub fn of(port: &TesterPort) -> Result<Self> {
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
    pub fn disturbed(self, now: Self) -> Option<String> {
        if now.carrier_changes != self.carrier_changes {
            return Some("lost its carrier for a time".into());
        }
        (now.mtu != self.mtu).then(|| format!("got an MTU of {} in place of {}", now.mtu, self.mtu))
    }
}
