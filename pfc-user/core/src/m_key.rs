//! Protection of a port by its M_Key: read and restored (14.2.4).

pub mod unlock;

use ib_mad::attr::{PortInfo, PortState};
use ib_mad::mad::MKey;
use serde::{Deserialize, Serialize};

/// M_Key, protect bits and lease of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Protection {
    /// PortInfo:M_Key; 0 for none.
    pub m_key: MKey,
    /// PortInfo:M_KeyProtectBits.
    pub protect_bits: u8,
    /// PortInfo:M_KeyLeasePeriod in seconds.
    pub lease_period: u16,
}

impl Protection {
    /// No protection.
    pub const NONE: Self = Self {
        m_key: MKey(0),
        protect_bits: 0,
        lease_period: 0,
    };

    /// Protection as `port` shows it.
    pub fn of(port: &PortInfo) -> Self {
        Self {
            m_key: port.m_key(),
            protect_bits: port.m_key_protect_bits(),
            lease_period: port.m_key_lease_period(),
        }
    }

    /// Protection to restore on `port` after a run: the one it shows before. If that is M_KEY_DUT,
    /// an earlier repetition could not take it back, and the key before it was `current`.
    pub fn to_restore(port: &PortInfo, current: MKey, dut: MKey) -> Self {
        let found = Self::of(port);
        Self {
            m_key: if found.m_key == dut {
                current
            } else {
                found.m_key
            },
            ..found
        }
    }

    /// Attribute of a Set that changes `port` to this and nothing else, except M_KeyViolations,
    /// which it clears.
    ///
    /// State, physical state, widths, speeds and VLs have a value that changes nothing, 0: to write
    /// back what was read could bring the link down. LID, MTU and all else have none and are
    /// written back as an SM does it. ClientReregister is an order, not a state.
    pub fn to_set(&self, port: &PortInfo) -> PortInfo {
        const FITS: &str = "0 and values that were read fit";
        let mut set = *port;
        set.set_m_key(self.m_key).expect(FITS);
        set.set_m_key_protect_bits(self.protect_bits)
            .expect("two bits");
        set.set_m_key_lease_period(self.lease_period).expect(FITS);
        set.set_m_key_violations(0).expect(FITS);
        set.set_port_state(PortState::NoChange).expect(FITS);
        set.set_port_physical_state(0).expect(FITS);
        set.set_link_down_default_state(0).expect(FITS);
        set.set_link_width_enabled(0).expect(FITS);
        set.set_link_speed_enabled(0).expect(FITS);
        set.set_link_speed_ext_enabled(0).expect(FITS);
        set.set_link_speed_ext_enabled_2(0).expect(FITS);
        set.set_operational_vls(0).expect(FITS);
        set.set_client_reregister(false).expect(FITS);
        set
    }
}

impl std::fmt::Display for Protection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "M_Key {}, protect bits {}, lease {} s",
            self.m_key, self.protect_bits, self.lease_period
        )
    }
}

/// True if `port`, as a Get with `key` showed it, certainly has another key. One that is not shown
/// may be another.
pub fn is_another(port: &PortInfo, key: MKey) -> bool {
    port.m_key() != MKey(0) && port.m_key() != key
}

/// True if `port`, as a Get with `key` showed it, may have another key that it hides: at protect
/// bits 1 the M_Key reads 0 then.
pub fn may_be_another(port: &PortInfo, key: MKey) -> bool {
    is_another(port, key) || port.m_key() == MKey(0) && port.m_key_protect_bits() == 1
}
