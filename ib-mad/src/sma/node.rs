//! One node.

use std::time::Duration;

use super::fault::Fault;
use crate::mad::{Lid, MKey};
use crate::smp::Smp;
use crate::transport::Time;

/// What kind of node it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeKind {
    /// Channel adapter with one port.
    ChannelAdapter,
    /// Switch with this many external ports.
    Switch(u8),
}

/// A node as it is switched on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeConfig {
    /// Kind.
    pub kind: NodeKind,
    /// NodeDescription.
    pub description: String,
    /// NodeGUID; the ports' follow from it.
    pub guid: u64,
    /// LID of its port (of port 0 for a switch).
    pub lid: Lid,
    /// MasterSMLID: where traps go; 0 sends none.
    pub master_sm_lid: Lid,
    /// PortState of all ports: 1 Down to 4 Active.
    pub port_state: u8,
    /// SwitchInfo:LinearFDBCap.
    pub linear_fdb_cap: u16,
    /// SwitchInfo:RandomFDBCap.
    pub random_fdb_cap: u16,
    /// PortInfo:M_Key.
    pub m_key: MKey,
    /// PortInfo:M_KeyProtectBits, 0 to 3.
    pub m_key_protect_bits: u8,
    /// PortInfo:M_KeyLeasePeriod in seconds.
    pub m_key_lease_period: u16,
    /// PortInfo:RespTimeValue: 4.096 us * 2^n.
    pub response_time_value: u8,
    /// PortInfo:SubnetTimeOut: 4.096 us * 2^n.
    pub subnet_timeout: u8,
}

/// A packet that a node sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outgoing {
    /// How long after what caused it.
    pub after: Duration,
    /// Where to, if LID-routed.
    pub to: Lid,
    /// Octets; fewer than a MAD's where a fault cuts them off.
    pub octets: Vec<u8>,
}

/// The agent of one node.
#[derive(Clone, Debug)]
pub struct Sma {
    config: NodeConfig,
    faults: Vec<Fault>,
}

impl Sma {
    /// A node that has just been switched on.
    pub fn new(config: NodeConfig, faults: Vec<Fault>) -> Self {
        Self { config, faults }
    }

    /// What it was switched on with.
    pub fn config(&self) -> &NodeConfig {
        &self.config
    }

    /// The node gets `smp`, which is for it, by its external port `port` at `now`, from `from`; what it sends in return.
    pub fn receive(&mut self, now: Time, port: u8, from: Lid, smp: &Smp) -> Vec<Outgoing> {
        let _ = (now, port, from, smp, &self.faults);
        Vec::new()
    }
}
