//! Reasons why a frame cannot be read.

numbered! {
    /// The defect of a frame that could not be read; indexes the counters of malformed frames.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
    #[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
    Malformed {
        /// Shorter than its Ethernet header or tags.
        EthernetTruncated = 0,
        /// More than two VLAN tags.
        TooManyTags = 1,
        /// IPv4 header cut short, or its length field below 20 or above the frame.
        Ipv4Truncated = 2,
        /// Version field is not what the EtherType says.
        IpVersion = 3,
        /// IPv6 header cut short, or its length above the frame.
        Ipv6Truncated = 4,
        /// UDP header cut short, or its length field does not fit.
        UdpTruncated = 5,
        /// A MAC control frame too short for its opcode.
        ControlTruncated = 6,
        /// A MAC control frame with an opcode that is neither PAUSE nor PFC.
        ControlOpcode = 7,
        /// A MAC control frame behind a VLAN tag: MACs ignore these.
        ControlTagged = 8,
        /// A PAUSE/PFC frame whose destination is not 01-80-C2-00-00-01: counted apart, not as
        /// PAUSE/PFC.
        ControlDestination = 9,
        /// A frame to the test port without a whole stamp: cannot be attributed to a flow.
        Stamp = 10,
        /// An IPv4 header whose checksum is wrong.
        Ipv4Checksum = 11,
        /// A test frame of the present run by its stamp or its addresses and ports, though its
        /// headers name another EtherType, protocol or port.
        Headers = 12,
    }
}

impl Malformed {
    /// True if it is a MAC control frame.
    pub const fn is_control(self) -> bool {
        matches!(
            self,
            Self::ControlTruncated
                | Self::ControlOpcode
                | Self::ControlTagged
                | Self::ControlDestination
        )
    }

    /// True if only a port of the tester's own has it, for elsewhere no frame is a test frame.
    #[inline(always)]
    pub const fn is_of_a_test(self) -> bool {
        matches!(self, Self::Stamp | Self::Headers)
    }

    /// True if the frame belongs to the test in spite of it.
    #[inline(always)]
    pub const fn is_consumed(self) -> bool {
        self.is_control() || self.is_of_a_test()
    }
}
