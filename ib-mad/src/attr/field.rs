//! Fields of attributes: bits at an offset, typed.

use std::fmt;

use crate::mad::{AttributeId, MKey, Method};

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
    /// Value that does not fit.
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

/// A type that a field can have.
pub trait Field: Copy {
    /// Width in bits of the widest field that this type holds.
    const BITS: u32;
    /// Converts from the field's bits, at most [`Self::BITS`] of them.
    fn from_bits(bits: u64) -> Self;
    /// Converts to the field's bits.
    fn into_bits(self) -> u64;
}

macro_rules! unsigned_fields {
    ($($type:ty),*) => { $(
        impl Field for $type {
            const BITS: u32 = <$type>::BITS;
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

macro_rules! wrapped_fields {
    ($($type:ident($inner:ty)),*) => { $(
        impl Field for $type {
            const BITS: u32 = <$inner>::BITS;
            fn from_bits(bits: u64) -> Self {
                Self(bits as $inner)
            }
            fn into_bits(self) -> u64 {
                self.0.into()
            }
        }
    )* };
}
wrapped_fields!(MKey(u64), AttributeId(u16), Method(u8));

impl Field for bool {
    const BITS: u32 = 1;
    fn from_bits(bits: u64) -> Self {
        bits != 0
    }
    fn into_bits(self) -> u64 {
        self.into()
    }
}

/// True if the field lies within an attribute of `octets` octets and its type holds it.
pub(crate) const fn is_possible<F: Field>(offset: u32, width: u32, octets: usize) -> bool {
    0 < width && width <= F::BITS && (offset + width) as usize <= 8 * octets
}

/// The `width` bits (1 to 64) from bit `offset`, most significant first.
pub(crate) fn get(data: &[u8], offset: u32, width: u32) -> u64 {
    let (first, last) = (offset / 8, (offset + width - 1) / 8);
    let octets = data[first as usize..=last as usize]
        .iter()
        .fold(0u128, |value, octet| value << 8 | u128::from(*octet));
    let after = 8 * (last + 1) - (offset + width);
    (octets >> after) as u64 & (u64::MAX >> (64 - width))
}

/// Sets those bits to the low bits of `value`.
pub(crate) fn set(data: &mut [u8], offset: u32, width: u32, value: u64) {
    let (first, last) = ((offset / 8) as usize, ((offset + width - 1) / 8) as usize);
    let after = 8 * (last as u32 + 1) - (offset + width);
    let mask = u128::from(u64::MAX >> (64 - width)) << after;
    let value = u128::from(value) << after & mask;
    for (index, octet) in data[first..=last].iter_mut().rev().enumerate() {
        *octet = *octet & !((mask >> (8 * index)) as u8) | (value >> (8 * index)) as u8;
    }
}

/// Sets those bits to `value`. Returns an error if the value is wider.
pub(crate) fn try_set(
    data: &mut [u8],
    (attribute, field): (AttributeId, &'static str),
    (offset, width): (u32, u32),
    value: u64,
) -> Result<(), FieldError> {
    if value > u64::MAX >> (64 - width) {
        return Err(FieldError {
            attribute,
            field,
            width,
            value,
        });
    }
    set(data, offset, width, value);
    Ok(())
}

/// One accessor pair, for the property tests of all fields.
#[cfg(test)]
pub(crate) struct Accessor<T> {
    pub name: &'static str,
    pub offset: u32,
    pub width: u32,
    /// Calls the setter and returns its result.
    pub set: fn(&mut T, u64) -> Result<(), FieldError>,
    /// Converts a value to the field's type, which may be narrower than 64 bits, and back.
    pub typed: fn(u64) -> u64,
    pub get: fn(&T) -> u64,
}

/// Defines a table of fields over octets: `getter, setter: Type = "NameInTheSpecification" @
/// offset, width;`. Offset and width are in bits.
macro_rules! fields {
    (
        $(#[$doc:meta])*
        $name:ident [$octets:expr] of $id:expr;
        $(
            $(#[$field_doc:meta])*
            $getter:ident, $setter:ident: $type:ty =
                $spec:literal @ $offset:literal, $width:literal;
        )*
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq)]
        pub struct $name([u8; $octets]);

        impl Default for $name {
            fn default() -> Self {
                Self([0; $octets])
            }
        }

        $(
            const _: () = assert!(
                $crate::attr::field::is_possible::<$type>($offset, $width, $octets),
                concat!($spec, " is wider than its type, or leaves the attribute"),
            );
        )*

        impl $name {
            /// Iterates over all fields in the order of their offsets, with name, offset, width and
            /// value.
            pub fn fields(&self) -> impl Iterator<Item = $crate::attr::FieldValue> + '_ {
                let data = &self.0;
                [$( ($spec, $offset, $width), )*].into_iter().map(|(name, offset, width)| {
                    let value = $crate::attr::field::get(data, offset, width);
                    $crate::attr::FieldValue { name, offset, width, value }
                })
            }

            $(
                $(#[$field_doc])*
                #[doc = concat!("\n\n", $spec, ", at bit ", $offset, ", width ", $width, ".")]
                pub fn $getter(&self) -> $type {
                    let bits = $crate::attr::field::get(&self.0, $offset, $width);
                    $crate::attr::Field::from_bits(bits)
                }

                #[doc = concat!("Sets ", $spec, "; fails if the value exceeds ", $width, " bits.")]
                pub fn $setter(&mut self, value: $type) -> Result<(), $crate::attr::FieldError> {
                    let value = $crate::attr::Field::into_bits(value);
                    let place = ($offset, $width);
                    $crate::attr::field::try_set(&mut self.0, ($id, $spec), place, value)
                }
            )*

            #[cfg(test)]
            pub(crate) fn accessors() -> Vec<$crate::attr::field::Accessor<Self>> {
                vec![$( $crate::attr::field::Accessor {
                    name: $spec,
                    offset: $offset,
                    width: $width,
                    set: |attribute, value| {
                        attribute.$setter($crate::attr::Field::from_bits(value))
                    },
                    typed: |value| {
                        let typed = <$type as $crate::attr::Field>::from_bits(value);
                        $crate::attr::Field::into_bits(typed)
                    },
                    get: |attribute| $crate::attr::Field::into_bits(attribute.$getter()),
                }, )*]
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                $crate::attr::field::debug(f, stringify!($name), self.fields())
            }
        }
    };
}
pub(super) use fields;

/// Defines the codes of a field.
macro_rules! codes {
    (
        $(#[$doc:meta])*
        $name:ident { $($(#[$code_doc:meta])* $code:ident = $bits:literal,)* }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name {
            $($(#[$code_doc])* $code,)*
            /// Not in the specification.
            Unknown(u8),
        }

        impl $crate::attr::Field for $name {
            const BITS: u32 = 8;

            fn from_bits(bits: u64) -> Self {
                match bits {
                    $($bits => Self::$code,)*
                    other => Self::Unknown(other as u8),
                }
            }

            fn into_bits(self) -> u64 {
                match self {
                    $(Self::$code => $bits,)*
                    Self::Unknown(other) => other.into(),
                }
            }
        }
    };
}
pub(super) use codes;

/// Defines an attribute of 64 octets by its table of fields.
macro_rules! attribute {
    ($(#[$doc:meta])* $name:ident = $id:expr; $($table:tt)*) => {
        $crate::attr::field::fields! { $(#[$doc])* $name [$crate::smp::DATA] of $id; $($table)* }

        impl $crate::attr::Attribute for $name {
            const ID: $crate::mad::AttributeId = $id;
            fn from_data(data: [u8; $crate::smp::DATA]) -> Self {
                Self(data)
            }
            fn data(&self) -> &[u8; $crate::smp::DATA] {
                &self.0
            }
        }
    };
}
pub(super) use attribute;

pub(crate) fn debug(
    f: &mut fmt::Formatter<'_>,
    name: &str,
    fields: impl Iterator<Item = FieldValue>,
) -> fmt::Result {
    let mut out = f.debug_struct(name);
    for field in fields {
        out.field(field.name, &field.value);
    }
    out.finish()
}
