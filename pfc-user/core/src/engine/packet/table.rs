//! The form of a header: its length, its place among others and its fields.

use pfc_ebpf::wire::wrap;

use super::Protocol;

/// Fields of a protocol's header.
#[derive(Debug)]
pub struct Table {
    /// Name in messages.
    pub name: &'static str,
    /// Octets of the header.
    pub octets: usize,
    /// EtherType by which the header before announces this one.
    pub ether_type: Option<u128>,
    /// Number by which an IP header announces it.
    pub number: Option<u128>,
    /// Port by which UDP announces it.
    pub port: Option<u128>,
    /// Bit of [`wrap`] that says how frames are wrapped in it.
    pub wrap: u64,
    /// Headers that it may stand behind, beside those that name it in `carries`.
    pub follows: &'static [Protocol],
    /// Headers that may stand behind it, beside those that name it in `follows`.
    pub carries: &'static [Protocol],
    /// Fields in the order of the wire, each by its name in the OTG model.
    pub fields: &'static [Field],
}

impl Table {
    /// Defaults of a table: nothing announces the header, and it stands behind nothing.
    pub const BASE: Self = Self {
        name: "",
        octets: 0,
        ether_type: None,
        number: None,
        port: None,
        wrap: wrap::PLAIN,
        follows: &[],
        carries: &[],
        fields: &[],
    };
}

/// A field.
#[derive(Debug)]
pub struct Field {
    /// Name by which a header sets it.
    pub name: &'static str,
    /// Place of the field.
    pub place: Place,
    /// Width in bits.
    pub bits: usize,
    /// Value where the field is left alone.
    pub left_alone: LeftAlone,
}

/// Place of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// At this bit of the header, the highest bit of its first octet being 0.
    Here(usize),
    /// In the type field of the header before, where that is left alone.
    TypeBefore,
}

/// Value of a field that is left alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeftAlone {
    /// A constant.
    Value(u128),
    /// The EtherType of the next header.
    EtherType,
    /// The protocol number of the next header; this one where there is none.
    Protocol(u128),
    /// Octets from the header's begin to the packet's end, less this number.
    Rest(usize),
    /// Checksum of the header.
    HeaderSum,
    /// Checksum of header, payload and pseudo-header.
    PayloadSum,
    /// Checksum of header and payload.
    MessageSum,
    /// 1 where no header of the same protocol follows.
    Bottom,
    /// The number of segments that follow, times `each`, less `less`.
    Segments {
        /// Factor of the number.
        each: u128,
        /// Number taken off the product.
        less: u128,
    },
    /// The well-known port of the next header; 0 where it has none.
    Port,
}

impl LeftAlone {
    /// Returns true for checksums, which alone may be wrong on purpose.
    pub const fn is_sum(self) -> bool {
        matches!(self, Self::HeaderSum | Self::PayloadSum | Self::MessageSum)
    }
}

/// A field with a constant.
pub const fn value(name: &'static str, at: usize, bits: usize, value: u128) -> Field {
    computed(name, at, bits, LeftAlone::Value(value))
}

/// A field that is computed where it is left alone.
pub const fn computed(name: &'static str, at: usize, bits: usize, left_alone: LeftAlone) -> Field {
    Field {
        name,
        place: Place::Here(at),
        bits,
        left_alone,
    }
}
