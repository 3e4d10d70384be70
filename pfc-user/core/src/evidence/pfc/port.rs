//! The tester's ports in a repetition, by name.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize, Serializer};

use super::PortReceived;
use crate::plan::PortName;

/// The tester's ports. In the file an object by name: `tx` and `rx`, which every testbed has, and
/// those that it has beside them.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(try_from = "BTreeMap<PortName, Port>")]
pub struct Ports {
    /// The sending port.
    pub tx: Port,
    /// The receiving port.
    pub rx: Port,
    /// Further sending ports.
    pub more: BTreeMap<PortName, Port>,
}

impl Ports {
    /// All of them with their names, the receiving port last.
    pub fn iter(&self) -> impl Iterator<Item = (&PortName, &Port)> {
        self.senders().chain([(&PortName::RX, &self.rx)])
    }

    /// The sending ports with their names.
    pub fn senders(&self) -> impl Iterator<Item = (&PortName, &Port)> {
        [(&PortName::TX, &self.tx)].into_iter().chain(&self.more)
    }
}

impl Serialize for Ports {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

impl TryFrom<BTreeMap<PortName, Port>> for Ports {
    type Error = String;

    fn try_from(mut ports: BTreeMap<PortName, Port>) -> Result<Self, String> {
        let mut take = |name| {
            let port = ports.remove(&name);
            port.ok_or_else(|| format!("the port {name} is missing"))
        };
        Ok(Self {
            tx: take(PortName::TX)?,
            rx: take(PortName::RX)?,
            more: ports,
        })
    }
}

/// A port: facts about it, and what its program counted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Port {
    /// Interface.
    pub interface: String,
    /// Driver, such as `veth`.
    pub driver: String,
    /// Carrier at start and at the end of the repetition.
    pub carrier: bool,
    /// Disturbance of the link in between, even if it is as before now: its carrier went and came,
    /// or it got another MTU.
    pub disturbed: Option<String>,
    /// Link speed in bit/s, where the port has one that means something.
    pub speed: Option<u64>,
    /// XDP mode: `driver` or `skb`.
    pub xdp: String,
    /// PAUSE/PFC frames were shown to reach the program: how; `None` if not shown.
    pub pfc_visible: Option<String>,
    /// The port's MAC takes PAUSE/PFC frames that the other port sent, before the program sees
    /// them: how that was seen. It may then obey the tester's own storm.
    pub takes_own_pfc: Option<String>,
    /// The program counted a frame in this run.
    pub alive: bool,
    /// Its counts in the repetition. The DUT's PFC arrives at sending ports, and forwarded storm
    /// frames would.
    pub counts: PortReceived,
}
