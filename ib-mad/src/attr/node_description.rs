//! NodeDescription (14.2.5.2).

use std::borrow::Cow;
use std::fmt;

use super::field::attribute;
use crate::mad::AttributeId;
use crate::smp::DATA;

/// A node's name in UTF-8, with zeros after it. The modifier is 0.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct NodeDescription([u8; DATA]);

attribute!(NodeDescription = AttributeId::NODE_DESCRIPTION);

/// A text that is longer than NodeDescription:NodeString.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("NodeDescription:NodeString has {DATA} octets, and a text of {0} does not fit")]
pub struct TextTooLong(pub usize);

impl NodeDescription {
    /// Makes one from a text of at most 64 octets.
    pub fn new(text: &str) -> Result<Self, TextTooLong> {
        let mut data = [0; DATA];
        data.get_mut(..text.len())
            .ok_or(TextTooLong(text.len()))?
            .copy_from_slice(text.as_bytes());
        Ok(Self(data))
    }

    /// Returns the octets before the first zero as text. Octets that are not UTF-8 are replaced;
    /// [`Attribute::data`](super::Attribute::data) has the original ones.
    pub fn text(&self) -> Cow<'_, str> {
        let end = self.0.iter().position(|octet| *octet == 0).unwrap_or(DATA);
        String::from_utf8_lossy(&self.0[..end])
    }
}

impl Default for NodeDescription {
    fn default() -> Self {
        Self([0; DATA])
    }
}

impl fmt::Debug for NodeDescription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("NodeDescription")
            .field(&self.text())
            .finish()
    }
}
