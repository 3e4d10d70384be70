//! LinearForwardingTable (14.2.5.10).

use super::field::attribute;
use crate::mad::{AttributeId, Lid};
use crate::smp::DATA;

/// The egress ports of 64 successive LIDs; 255 means no port. The modifier is the block's number, 0
/// to 767.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinearForwardingTable([u8; DATA]);

attribute!(LinearForwardingTable = AttributeId::LINEAR_FORWARDING_TABLE);

impl LinearForwardingTable {
    /// Entries of a block.
    pub const ENTRIES: usize = DATA;

    /// Makes a block of these entries.
    pub const fn new(ports: [u8; Self::ENTRIES]) -> Self {
        Self(ports)
    }

    /// Returns the block of `lid`'s entry and the index in that block.
    pub const fn position(lid: Lid) -> (u32, usize) {
        (
            lid.0 as u32 / Self::ENTRIES as u32,
            lid.0 as usize % Self::ENTRIES,
        )
    }

    /// The entries.
    pub const fn ports(&self) -> &[u8; Self::ENTRIES] {
        &self.0
    }
}

impl Default for LinearForwardingTable {
    fn default() -> Self {
        Self([0; DATA])
    }
}
