//! Attributes: 64 octets with an accessor for every field. Each attribute is one table of offsets
//! and widths in bits, as in the specification's own tables: bit 0 is the most significant bit of
//! the first octet. Reserved bits and values unknown to the specification are kept.

mod field;
mod node_info;
mod notice;
mod port_info;
#[cfg(test)]
mod properties;
mod switch_info;

pub use field::{Field, FieldError, FieldValue};
pub use node_info::{NodeInfo, NodeType};
pub use notice::{BadMKey, Notice, NoticeSource, NoticeType};
pub use port_info::{PortInfo, PortState};
pub use switch_info::SwitchInfo;

use crate::mad::{AttributeId, Status};
use crate::smp::{DATA, Smp};

/// An attribute of subnet management.
pub trait Attribute: Sized {
    /// Its id.
    const ID: AttributeId;
    /// Reads the 64 octets of an SMP's data.
    fn from_data(data: [u8; DATA]) -> Self;
    /// The 64 octets.
    fn data(&self) -> &[u8; DATA];
}

/// Another attribute than the one asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{expected} expected, found {found}")]
pub struct OtherAttribute {
    /// The attribute asked for.
    pub expected: AttributeId,
    /// The attribute of the packet.
    pub found: AttributeId,
}

impl Smp {
    /// Decodes the attribute.
    pub fn decode<A: Attribute>(&self) -> Result<A, OtherAttribute> {
        if self.attribute() != A::ID {
            return Err(OtherAttribute {
                expected: A::ID,
                found: self.attribute(),
            });
        }
        Ok(A::from_data(*self.data()))
    }

    /// Decodes the attribute of a response with status 0; `None` for any other.
    pub fn granted<A: Attribute>(&self) -> Option<A> {
        self.decode().ok().filter(|_| self.status() == Status::OK)
    }

    /// Writes an attribute into the packet. The caller sets id and modifier.
    pub fn encode<A: Attribute>(&mut self, attribute: &A) {
        *self.data_mut() = *attribute.data();
    }
}
