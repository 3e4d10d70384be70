//! Attributes: 64 octets with accessors for every field. One table an attribute, with offsets and widths in bits as the
//! specification's own tables have them. Values that the specification does not know are kept.

mod port_info;

use std::fmt;

pub use port_info::{PortInfo, PortState};

use crate::mad::{AttributeId, MKey};
use crate::smp::{DATA, Smp};

/// An attribute of subnet management.
pub trait Attribute: Sized {
    /// Its id.
    const ID: AttributeId;
    /// From the 64 octets of an SMP.
    fn from_data(data: [u8; DATA]) -> Self;
    /// The 64 octets.
    fn data(&self) -> &[u8; DATA];
}

/// An SMP that carries another attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{expected} expected, found {found}")]
pub struct OtherAttribute {
    /// The attribute asked for.
    pub expected: AttributeId,
    /// The attribute of the packet.
    pub found: AttributeId,
}

/// A value that does not fit its field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{attribute}:{field} has {width} bits, and {value:#x} does not fit")]
pub struct FieldError {
    /// Attribute.
    pub attribute: AttributeId,
    /// Field.
    pub field: &'static str,
    /// Width in bits.
    pub width: u32,
    /// What did not fit.
    pub value: u64,
}

/// A field as it stands in an attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldValue {
    /// Name.
    pub name: &'static str,
    /// First bit, counted from the attribute's first.
    pub offset: u32,
    /// Width in bits, at most 64.
    pub width: u32,
    /// Value.
    pub value: u64,
}

impl Smp {
    /// The attribute, typed.
    pub fn decode<A: Attribute>(&self) -> Result<A, OtherAttribute> {
        if self.attribute() != A::ID {
            return Err(OtherAttribute { expected: A::ID, found: self.attribute() });
        }
        Ok(A::from_data(*self.data()))
    }

    /// Puts an attribute in. Id and modifier are the caller's affair.
    pub fn encode<A: Attribute>(&mut self, attribute: &A) {
        *self.data_mut() = *attribute.data();
    }
}

/// What a field can be typed as.
pub trait Field: Copy {
    /// From the value of its bits.
    fn from_bits(bits: u64) -> Self;
    /// To the value of its bits.
    fn into_bits(self) -> u64;
}

macro_rules! unsigned_fields {
    ($($type:ty),*) => { $(
        impl Field for $type {
            fn from_bits(bits: u64) -> Self {
                bits as Self
            }
            fn into_bits(self) -> u64 {
                self.into()
            }
        }
    )* };
}
unsigned_fields!(u8, u16, u32, u64);

impl Field for bool {
    fn from_bits(bits: u64) -> Self {
        bits != 0
    }
    fn into_bits(self) -> u64 {
        self.into()
    }
}

impl Field for MKey {
    fn from_bits(bits: u64) -> Self {
        Self(bits)
    }
    fn into_bits(self) -> u64 {
        self.0
    }
}

/// The `width` bits (at most 64) from bit `offset`, most significant first.
pub(crate) fn get(data: &[u8; DATA], offset: u32, width: u32) -> u64 {
    let (first, last) = (offset / 8, (offset + width - 1) / 8);
    let octets = data[first as usize..=last as usize].iter().fold(0u128, |value, octet| value << 8 | u128::from(*octet));
    let after = 8 * (last + 1) - (offset + width);
    (octets >> after) as u64 & (u64::MAX >> (64 - width))
}

/// Sets those bits to `value`, of which more are ignored.
pub(crate) fn set(data: &mut [u8; DATA], offset: u32, width: u32, value: u64) {
    let (first, last) = ((offset / 8) as usize, ((offset + width - 1) / 8) as usize);
    let after = 8 * (last as u32 + 1) - (offset + width);
    let mask = u128::from(u64::MAX >> (64 - width)) << after;
    let value = u128::from(value) << after & mask;
    for (index, octet) in data[first..=last].iter_mut().rev().enumerate() {
        *octet = *octet & !((mask >> (8 * index)) as u8) | (value >> (8 * index)) as u8;
    }
}

/// Defines an attribute by its table: `getter, setter: Type = "NameInTheSpecification" @ offset, width;`, in bits.
macro_rules! attribute {
    (
        $(#[$doc:meta])*
        $name:ident = $id:expr;
        $( $(#[$field_doc:meta])* $getter:ident, $setter:ident: $type:ty = $spec:literal @ $offset:literal, $width:literal; )*
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq)]
        pub struct $name([u8; $crate::smp::DATA]);

        impl $crate::attr::Attribute for $name {
            const ID: $crate::mad::AttributeId = $id;
            fn from_data(data: [u8; $crate::smp::DATA]) -> Self {
                Self(data)
            }
            fn data(&self) -> &[u8; $crate::smp::DATA] {
                &self.0
            }
        }

        impl Default for $name {
            fn default() -> Self {
                Self([0; $crate::smp::DATA])
            }
        }

        impl $name {
            /// Name, offset and width of every field, with its value here.
            pub fn fields(&self) -> impl Iterator<Item = $crate::attr::FieldValue> + '_ {
                [$( ($spec, $offset, $width), )*].into_iter().map(|(name, offset, width)| $crate::attr::FieldValue {
                    name, offset, width, value: $crate::attr::get(&self.0, offset, width),
                })
            }

            $(
                $(#[$field_doc])*
                pub fn $getter(&self) -> $type {
                    $crate::attr::Field::from_bits($crate::attr::get(&self.0, $offset, $width))
                }

                #[doc = concat!("Sets ", $spec, "; an error unless the value fits its ", stringify!($width), " bits.")]
                pub fn $setter(&mut self, value: $type) -> Result<(), $crate::attr::FieldError> {
                    let value = $crate::attr::Field::into_bits(value);
                    if value > u64::MAX >> (64 - $width) {
                        let attribute = <Self as $crate::attr::Attribute>::ID;
                        return Err($crate::attr::FieldError { attribute, field: $spec, width: $width, value });
                    }
                    $crate::attr::set(&mut self.0, $offset, $width, value);
                    Ok(())
                }
            )*
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                $crate::attr::debug(f, stringify!($name), self.fields())
            }
        }
    };
}
use attribute;

fn debug(f: &mut fmt::Formatter<'_>, name: &str, fields: impl Iterator<Item = FieldValue>) -> fmt::Result {
    let mut out = f.debug_struct(name);
    for field in fields {
        out.field(field.name, &field.value);
    }
    out.finish()
}
