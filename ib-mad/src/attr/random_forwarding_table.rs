//! RandomForwardingTable (14.2.5.11).

use std::fmt;

use super::field::{FieldError, attribute, get, set, try_set};
use crate::mad::AttributeId;
use crate::smp::DATA;

/// 16 entries of LID and egress port. The modifier is the block's number, 0 to 3071.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct RandomForwardingTable([u8; DATA]);

attribute!(RandomForwardingTable = AttributeId::RANDOM_FORWARDING_TABLE);

/// An entry: 32 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct RandomForwardingEntry {
    /// Base LID; bits 0 to 15.
    pub lid: u16,
    /// True if the entry is in use; bit 16.
    pub valid: bool,
    /// LID mask control: number of low LID bits that are ignored; bits 17 to 19.
    pub lmc: u8,
    /// Egress port; bits 24 to 31. Bits 20 to 23 are reserved.
    pub port: u8,
}

/// An entry that cannot be set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EntryError {
    /// The block has no such entry.
    #[error("RandomForwardingTable has entries 0 to 15 in a block, found {0}")]
    Index(usize),
    /// A value does not fit its field.
    #[error(transparent)]
    Field(#[from] FieldError),
}

const ENTRY: u32 = 32;

impl RandomForwardingTable {
    /// Entries of a block.
    pub const ENTRIES: usize = 16;

    fn at(&self, index: usize) -> RandomForwardingEntry {
        let first = index as u32 * ENTRY;
        RandomForwardingEntry {
            lid: get(&self.0, first, 16) as u16,
            valid: get(&self.0, first + 16, 1) != 0,
            lmc: get(&self.0, first + 17, 3) as u8,
            port: get(&self.0, first + 24, 8) as u8,
        }
    }

    /// Returns entry `index`; `None` from 16 on.
    pub fn entry(&self, index: usize) -> Option<RandomForwardingEntry> {
        (index < Self::ENTRIES).then(|| self.at(index))
    }

    /// All entries.
    pub fn entries(&self) -> [RandomForwardingEntry; Self::ENTRIES] {
        std::array::from_fn(|index| self.at(index))
    }

    /// Sets an entry; its reserved bits are kept.
    pub fn set_entry(
        &mut self,
        index: usize,
        entry: RandomForwardingEntry,
    ) -> Result<(), EntryError> {
        if index >= Self::ENTRIES {
            return Err(EntryError::Index(index));
        }
        let first = index as u32 * ENTRY;
        try_set(
            &mut self.0,
            (AttributeId::RANDOM_FORWARDING_TABLE, "LMC"),
            (first + 17, 3),
            entry.lmc.into(),
        )?;
        set(&mut self.0, first, 16, entry.lid.into());
        set(&mut self.0, first + 16, 1, entry.valid.into());
        set(&mut self.0, first + 24, 8, entry.port.into());
        Ok(())
    }
}

impl Default for RandomForwardingTable {
    fn default() -> Self {
        Self([0; DATA])
    }
}

impl fmt::Debug for RandomForwardingTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RandomForwardingTable")
            .field(&self.entries())
            .finish()
    }
}
