//! The tester's ports in a repetition, by name.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize, Serializer};

use super::PortReceived;
use crate::plan::{PortName, PortRole};

/// The tester's ports. In the file an object by name: `tx` and `rx`, which every testbed has, and
/// those that it has beside them.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(try_from = "BTreeMap<PortName, Port>")]
pub struct Ports {
    /// The sending port.
    pub tx: Port,
    /// The receiving port.
    pub rx: Port,
    /// Further ports.
    pub more: BTreeMap<PortName, Port>,
}

impl Ports {
    /// All of them with their names, the rx port last.
    pub fn iter(&self) -> impl Iterator<Item = (&PortName, &Port)> {
        let tx = [(&PortName::TX, &self.tx)].into_iter();
        tx.chain(&self.more).chain([(&PortName::RX, &self.rx)])
    }

    /// The sending ports with their names.
    pub fn senders(&self) -> impl Iterator<Item = (&PortName, &Port)> {
        self.iter().filter(|(_, port)| port.role == PortRole::Tx)
    }

    /// The receiving ports with their names.
    pub fn receivers(&self) -> impl Iterator<Item = (&PortName, &Port)> {
        self.iter().filter(|(_, port)| port.role == PortRole::Rx)
    }
}

impl Default for Ports {
    fn default() -> Self {
        let rx = Port {
            role: PortRole::Rx,
            ..Port::default()
        };
        Self {
            tx: Port::default(),
            rx,
            more: BTreeMap::new(),
        }
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
        let (tx, rx) = (take(PortName::TX)?, take(PortName::RX)?);
        if (tx.role, rx.role) != (PortRole::Tx, PortRole::Rx) {
            return Err("tx is no sending port, or rx no receiving one".into());
        }
        Ok(Self {
            tx,
            rx,
            more: ports,
        })
    }
}

/// A port: facts about it, and what its program counted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Port {
    /// Its part.
    pub role: PortRole,
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
