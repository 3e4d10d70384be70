//! The form of a header: its length and its fields, one protocol a file beside this one.

use super::{
    Header, Protocol, arp, ethernet, gre, icmp, ipv4, ipv6, mpls, pause, segments, tcp, udp, vlan,
    vxlan,
};

/// Fields of a protocol's header.
#[derive(Debug)]
pub struct Table {
    /// Name in messages.
    pub name: &'static str,
    /// Octets of the header.
    pub octets: usize,
    /// Fields.
    pub fields: &'static [Field],
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

impl Protocol {
    /// Returns the protocol's table; `None` where octets are as they are.
    pub(super) const fn table(self) -> Option<&'static Table> {
        Some(match self {
            Self::Ethernet => &ethernet::TABLE,
            Self::Vlan => &vlan::TABLE,
            Self::Ipv4 => &ipv4::TABLE,
            Self::Ipv6 => &ipv6::TABLE,
            Self::SegmentRouting => &segments::TABLE,
            Self::Segment => &segments::SEGMENT,
            Self::Udp => &udp::TABLE,
            Self::Tcp => &tcp::TABLE,
            Self::Vxlan => &vxlan::TABLE,
            Self::Arp => &arp::TABLE,
            Self::Icmp => &icmp::V4,
            Self::Icmpv6 => &icmp::V6,
            Self::Gre => &gre::PLAIN,
            Self::GreSum => &gre::WITH_SUM,
            Self::Mpls => &mpls::TABLE,
            Self::PfcPause => &pause::PFC,
            Self::EthernetPause => &pause::PAUSE,
            Self::Custom => return None,
        })
    }

    /// Name in messages.
    pub fn name(self) -> &'static str {
        self.table().map_or("custom", |table| table.name)
    }

    /// EtherType by which the header before announces this one; a tag has a field for its own.
    pub(super) const fn ether_type(self) -> Option<u128> {
        Some(match self {
            Self::Ipv4 => 0x0800,
            Self::Ipv6 => 0x86dd,
            Self::Vlan => vlan::TPID,
            Self::Arp => 0x0806,
            // Unicast with downstream-assigned labels (RFC 5332).
            Self::Mpls => 0x8847,
            Self::Ethernet => gre::ETHERNET,
            _ => return None,
        })
    }

    /// Number by which an IP header announces this one.
    pub(super) const fn number(self) -> Option<u128> {
        Some(match self {
            Self::Icmp => 1,
            Self::Ipv4 => 4,
            Self::Tcp => 6,
            Self::Udp => 17,
            Self::Ipv6 => 41,
            Self::SegmentRouting => 43,
            Self::Gre | Self::GreSum => 47,
            Self::Icmpv6 => 58,
            _ => return None,
        })
    }
}

impl Header {
    /// Octets of the header on the wire.
    pub(super) fn length(&self) -> usize {
        self.protocol
            .table()
            .map_or(self.octets.len(), |table| table.octets)
    }
}
