//! State that outlives a run that is killed: the protection of a DUT before the first Set.

use std::time::Duration;

use crate::m_key::Protection;

/// A DUT as it was before the first Set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Noted {
    /// Its protection.
    pub found: Protection,
    /// Its NodeGUID; `None` where it does not answer Get(NodeInfo).
    pub guid: Option<u64>,
    /// Longest time of an answer.
    pub answer_time: Duration,
}

/// Where the protection of the DUT is written down, so that a later run can restore it when this
/// one is killed.
pub trait KeyJournal {
    /// Called when the DUT's NodeGUID was first read, before the first Set. An error if another
    /// tester has to do with that node.
    fn met(&mut self, guid: u64) -> anyhow::Result<()>;
    /// Called before the first Set of a repetition. Returns the protection to restore: that of the
    /// first call since the last [`KeyJournal::forget`], as later calls may see what a repetition
    /// could not put back.
    fn remember(&mut self, noted: &Noted) -> anyhow::Result<Protection>;
    /// Returns the DUT's state before the first Set, while it is still to be restored.
    fn pending(&self) -> Option<Noted>;
    /// Called when a Get has shown that everything is as it was found.
    fn forget(&mut self) -> anyhow::Result<()>;
}
