//! Which header may stand behind which.

use super::Protocol;

impl Protocol {
    /// Returns true if this header may follow `before`; for `None`, if it may begin a frame.
    pub fn may_follow(self, before: Option<Self>) -> bool {
        use Protocol::{
            Arp, Custom, Ethernet, EthernetPause, Gre, GreSum, Icmp, Icmpv6, Ipv4, Ipv6, Mpls,
            PfcPause, Segment, SegmentRouting, Tcp, Udp, Vlan, Vxlan,
        };
        let Some(before) = before else {
            return matches!(self, Ethernet | PfcPause | EthernetPause | Custom);
        };
        if self == Custom {
            return !matches!(before, PfcPause | EthernetPause | SegmentRouting);
        }
        match before {
            Ethernet | Vlan => matches!(self, Vlan | Ipv4 | Ipv6 | Arp | Mpls),
            Mpls => matches!(self, Mpls | Ipv4 | Ipv6 | Ethernet),
            Ipv4 => matches!(self, Udp | Tcp | Ipv4 | Ipv6 | Icmp | Gre | GreSum),
            Segment if self == Segment => true,
            Ipv6 | Segment => matches!(
                self,
                Udp | Tcp | Ipv4 | Ipv6 | Icmpv6 | Gre | GreSum | SegmentRouting
            ),
            SegmentRouting => self == Segment,
            Gre | GreSum => matches!(self, Ipv4 | Ipv6 | Mpls | Ethernet),
            Udp => self == Vxlan,
            Vxlan => self == Ethernet,
            Tcp | Arp | Icmp | Icmpv6 | PfcPause | EthernetPause => false,
            Custom => true,
        }
    }
}
