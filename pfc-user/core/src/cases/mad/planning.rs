//! From the way to the DUT and its keys to repetitions.

use ib_mad::mad::MKey;
use ib_mad::smp::Route;

use crate::plan::Nanos;
use crate::plan::mad::{MadPlan, MadStimulus};

/// How the DUT is reached, and the keys that it has and gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortContext {
    /// Way to the DUT.
    pub route: Route,
    /// Key that the DUT has before the run; 0 for none.
    pub m_key_current: MKey,
    /// M_KEY_DUT.
    pub m_key_dut: MKey,
    /// M_KEY_OTHER.
    pub m_key_other: MKey,
    /// The least time to wait for an answer.
    pub timeout: Nanos,
}

impl PortContext {
    /// The repetition of that name.
    pub(super) fn repetition(&self, name: impl Into<String>, stimulus: MadStimulus) -> MadPlan {
        MadPlan {
            name: name.into(),
            stimulus,
            route: self.route.to_string(),
            m_key_current: self.m_key_current.0,
            m_key_dut: self.m_key_dut.0,
            m_key_other: self.m_key_other.0,
            timeout: self.timeout,
        }
    }
}
