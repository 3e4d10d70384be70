//! The table of each protocol, one a file beside this one, and the numbers that announce it.

use super::table::Table;
use super::{
    Header, Protocol, arp, ethernet, gre, icmp, ipv4, ipv6, mpls, pause, segments, tcp, udp, vlan,
    vxlan,
};

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
