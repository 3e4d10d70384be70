//! PortInfo (14.2.5.6).

use super::{Field, attribute};
use crate::mad::{AttributeId, MKey};

attribute! {
    /// A port. The modifier is the port's number; 0 is port 0 of a switch, and for others the port that the request came in by.
    PortInfo = AttributeId::PORT_INFO;
    /// The M_Key of the port; that of a switch is the one of its port 0.
    m_key, set_m_key: MKey = "M_Key" @ 0, 64;
    /// Base LID.
    lid, set_lid: u16 = "LID" @ 128, 16;
    /// LID of the master SM.
    master_sm_lid, set_master_sm_lid: u16 = "MasterSMLID" @ 144, 16;
    /// Lease period of the M_Key in seconds; 0 never ends.
    m_key_lease_period, set_m_key_lease_period: u16 = "M_KeyLeasePeriod" @ 208, 16;
    /// Number of the port that the request came in by.
    local_port_number, set_local_port_number: u8 = "LocalPortNum" @ 224, 8;
    /// State of the link layer.
    port_state, set_port_state: PortState = "PortState" @ 260, 4;
    /// State of the physical layer; 0 in a Set changes nothing.
    port_physical_state, set_port_physical_state: u8 = "PortPhysicalState" @ 264, 4;
    /// How the M_Key protects: 0 lets every Get pass and shows the key, 1 hides it, 2 and 3 let no Get pass without it.
    m_key_protect_bits, set_m_key_protect_bits: u8 = "M_KeyProtectBits" @ 272, 2;
    /// Number of low LID bits that are not looked at.
    lmc, set_lmc: u8 = "LMC" @ 277, 3;
    /// Requests with a wrong M_Key; stays at 0xffff.
    m_key_violations, set_m_key_violations: u16 = "M_KeyViolations" @ 352, 16;
    /// Time over the subnet: 4.096 us * 2^n.
    subnet_timeout, set_subnet_timeout: u8 = "SubnetTimeOut" @ 411, 5;
    /// Longest time from request to answer: 4.096 us * 2^n.
    response_time_value, set_response_time_value: u8 = "RespTimeValue" @ 419, 5;
}

/// State of a port's link layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortState {
    /// In a Set.
    NoChange,
    /// No link.
    Down,
    /// Link, and only SMPs pass.
    Initialized,
    /// Ready for the SM's last word.
    Armed,
    /// All packets pass.
    Active,
    /// Not in the specification.
    Unknown(u8),
}

impl Field for PortState {
    fn from_bits(bits: u64) -> Self {
        match bits {
            0 => Self::NoChange,
            1 => Self::Down,
            2 => Self::Initialized,
            3 => Self::Armed,
            4 => Self::Active,
            other => Self::Unknown(other as u8),
        }
    }

    fn into_bits(self) -> u64 {
        match self {
            Self::NoChange => 0,
            Self::Down => 1,
            Self::Initialized => 2,
            Self::Armed => 3,
            Self::Active => 4,
            Self::Unknown(other) => other.into(),
        }
    }
}
