//! Protection by the M_Key (14.2.4). Where the specification leaves a choice, the model follows
//! Linux' qib and hfi1 (`check_mkey`).

use std::time::Duration;

use super::config::NodeConfig;
use super::fault::Fault;
use crate::mad::{MKey, Method, Time};
use crate::smp::Smp;

/// Key, protect bits, lease and violations of a port.
#[derive(Clone, Debug)]
pub(super) struct Protection {
    pub(super) key: MKey,
    pub(super) bits: u8,
    pub(super) lease_period: u16,
    pub(super) violations: u16,
    /// Bits of a key that are compared; all without faults.
    compared: u64,
    /// When the lease timer expires; `None` while it is stopped.
    expires: Option<Time>,
}

impl Protection {
    pub(super) fn new(config: &NodeConfig, faults: &[Fault]) -> Self {
        let compared = |fault: &Fault| match *fault {
            Fault::ComparesUpperHalf => 0xffff_ffff << 32,
            Fault::ComparesLowerHalf => 0xffff_ffff,
            Fault::IgnoresKeyBit(bit) => !(1 << bit),
            _ => u64::MAX,
        };
        Self {
            compared: faults
                .iter()
                .map(compared)
                .fold(u64::MAX, |all, one| all & one),
            key: config.m_key,
            bits: config.m_key_protect_bits & 3,
            lease_period: config.m_key_lease_period,
            violations: 0,
            expires: None,
        }
    }

    /// Ends the protection once the lease has expired; the key stays (14.2.4.4).
    pub(super) fn expire(&mut self, now: Time) {
        if self.expires.is_some_and(|expires| now >= expires) {
            self.expires = None;
            self.bits = 0;
        }
    }

    /// True if `smp` may pass. A violation counts `weight`, which is 1 for a node without faults.
    pub(super) fn check(&mut self, now: Time, smp: &Smp, weight: u16) -> bool {
        self.expire(now);
        if !matches!(
            smp.method(),
            Method::GET | Method::SET | Method::TRAP_REPRESS
        ) {
            return true;
        }
        if self.is_valid(smp.m_key()) {
            self.expires = None;
            return true;
        }
        if smp.method() == Method::GET && self.bits < 2 {
            return true;
        }
        self.count(weight);
        if self.lease_period != 0 && self.expires.is_none() {
            self.expires = Some(now + Duration::from_secs(self.lease_period.into()));
        }
        false
    }

    /// True if a request with `key` passes at all protect bits.
    pub(super) fn is_valid(&self, key: MKey) -> bool {
        self.key == MKey(0) || self.is_own(key)
    }

    /// True if `key` is the port's own.
    pub(super) fn is_own(&self, key: MKey) -> bool {
        (self.key.0 ^ key.0) & self.compared == 0
    }

    pub(super) fn count(&mut self, weight: u16) {
        self.violations = self.violations.saturating_add(weight);
    }
}
