//! Configuration of a node.

use crate::mad::{Lid, MKey};

/// Kind of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeKind {
    /// Channel adapter with one port.
    ChannelAdapter,
    /// Switch with this many external ports.
    Switch(u8),
}

/// Configuration of a node at power-on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeConfig {
    /// Kind.
    pub kind: NodeKind,
    /// NodeDescription.
    pub description: String,
    /// NodeGUID; the port GUIDs follow from it.
    pub guid: u64,
    /// LID of the node's port (of port 0 for a switch).
    pub lid: Lid,
    /// MasterSMLID: the destination of traps; 0 sends none.
    pub master_sm_lid: Lid,
    /// PortState of port 1, and of port 0 of a switch: 1 (Down) to 4 (Active). All other ports have
    /// no link and are Down.
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
