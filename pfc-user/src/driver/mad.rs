//! The MAD tester's port.

pub mod m_key;
pub mod timing;

use anyhow::Result;
use m_key::Protection;

/// Where it is written down how the DUT's M_Key was, so that a later run can restore it when this one is killed.
pub trait KeyJournal {
    /// Called before the first Set.
    fn remember(&mut self, found: &Protection) -> Result<()>;
    /// Called when a Get has shown that all is as it was found.
    fn forget(&mut self) -> Result<()>;
}
