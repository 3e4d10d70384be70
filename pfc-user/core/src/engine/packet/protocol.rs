//! All protocols, each with its table.

use super::table::{Field, Table};
use super::{
    Header, arp, ethernet, gre, icmp, ipv4, ipv6, mpls, pause, segments, tcp, udp, vlan, vxlan,
};

/// Declares the protocols, each with its table.
macro_rules! protocols {
    ($($(#[$doc:meta])* $protocol:ident: $table:expr,)*) => {
        /// A protocol that headers are known of.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Protocol {
            $($(#[$doc])* $protocol,)*
            /// Octets as they are.
            Custom,
        }

        impl Protocol {
            /// All protocols.
            pub const ALL: &'static [Self] = &[$(Self::$protocol,)* Self::Custom];

            /// Returns the protocol's table; `None` where octets are as they are.
            pub(super) const fn table(self) -> Option<&'static Table> {
                match self {
                    $(Self::$protocol => Some(&$table),)*
                    Self::Custom => None,
                }
            }
        }
    };
}

protocols! {
    /// Ethernet II.
    Ethernet: ethernet::TABLE,
    /// IEEE 802.1Q tag.
    Vlan: vlan::TABLE,
    /// An entry of an MPLS label stack.
    Mpls: mpls::TABLE,
    /// ARP.
    Arp: arp::TABLE,
    /// IPv4 without options.
    Ipv4: ipv4::TABLE,
    /// IPv6 without extension headers.
    Ipv6: ipv6::TABLE,
    /// Segment routing header of IPv6, without its segments.
    SegmentRouting: segments::TABLE,
    /// A segment of such a header.
    Segment: segments::SEGMENT,
    /// Echo of ICMP.
    Icmp: icmp::V4,
    /// Echo of ICMPv6.
    Icmpv6: icmp::V6,
    /// UDP.
    Udp: udp::TABLE,
    /// TCP without options.
    Tcp: tcp::TABLE,
    /// GRE without a checksum.
    Gre: gre::PLAIN,
    /// GRE with a checksum.
    GreSum: gre::WITH_SUM,
    /// VXLAN.
    Vxlan: vxlan::TABLE,
    /// Priority-based flow control (IEEE 802.1Qbb).
    PfcPause: pause::PFC,
    /// PAUSE (IEEE 802.3, annex 31B).
    EthernetPause: pause::PAUSE,
}

impl Protocol {
    /// Name in messages.
    pub fn name(self) -> &'static str {
        self.table().map_or("custom", |table| table.name)
    }

    /// The fields of its header.
    pub fn fields(self) -> &'static [Field] {
        self.table()
            .map_or(Table::BASE.fields, |table| table.fields)
    }

    /// Returns true for PAUSE and PFC, which are whole frames.
    pub const fn is_pause(self) -> bool {
        matches!(self, Self::PfcPause | Self::EthernetPause)
    }

    /// Returns true if this header may follow `before`; for `None`, if it may begin a frame.
    pub fn may_follow(self, before: Option<Self>) -> bool {
        let Some(before) = before else {
            return self.is_pause() || matches!(self, Self::Ethernet | Self::Custom);
        };
        match (before.table(), self.table()) {
            (None, _) => true,
            (_, None) => !before.is_pause() && before != Self::SegmentRouting,
            (Some(table), Some(own)) => {
                own.follows.contains(&before) || table.carries.contains(&self)
            }
        }
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
