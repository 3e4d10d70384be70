//! The fields of each header.

use validator_core::engine::packet::Protocol;

/// A field of a header.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// Name, here as in the model.
    pub name: &'static str,
    /// Width in bits.
    pub bits: u32,
    /// Notation in the model.
    pub kind: Kind,
    /// Start of a walk that names none.
    pub start: u128,
}

/// Notation of a field in the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A number.
    Number,
    /// A MAC address.
    Mac,
    /// An IPv4 address.
    Ipv4,
    /// An IPv6 address.
    Ipv6,
    /// Good, bad, or a number.
    Checksum,
    /// The octet of DSCP and ECN.
    TrafficClass,
    /// A queue of the port, on no wire.
    Queue,
}

const fn number(name: &'static str, bits: u32) -> Field {
    from(name, bits, 0)
}

const fn from(name: &'static str, bits: u32, start: u128) -> Field {
    Field {
        name,
        bits,
        kind: Kind::Number,
        start,
    }
}

const fn kind(name: &'static str, bits: u32, kind: Kind) -> Field {
    Field {
        name,
        bits,
        kind,
        start: 0,
    }
}

/// The address of pause frames (IEEE 802.3, 31B.1).
const PAUSE_DESTINATION: Field = Field {
    name: "dst",
    bits: 48,
    kind: Kind::Mac,
    start: 0x0180_c200_0001,
};

const ETHERNET: [Field; 4] = [
    kind("dst", 48, Kind::Mac),
    kind("src", 48, Kind::Mac),
    from("ether_type", 16, 0xffff),
    kind("pfc_queue", 3, Kind::Queue),
];
const VLAN: [Field; 4] = [
    number("priority", 3),
    number("cfi", 1),
    number("id", 12),
    from("tpid", 16, 0xffff),
];
const VXLAN: [Field; 4] = [
    from("flags", 8, 8),
    number("reserved0", 24),
    number("vni", 24),
    number("reserved1", 8),
];
const IPV4: [Field; 14] = [
    from("version", 4, 4),
    from("header_length", 4, 5),
    kind("priority", 8, Kind::TrafficClass),
    from("total_length", 16, 46),
    number("identification", 16),
    number("reserved", 1),
    number("dont_fragment", 1),
    number("more_fragments", 1),
    number("fragment_offset", 13),
    from("time_to_live", 8, 64),
    from("protocol", 8, 61),
    kind("header_checksum", 16, Kind::Checksum),
    kind("src", 32, Kind::Ipv4),
    kind("dst", 32, Kind::Ipv4),
];
const IPV6: [Field; 8] = [
    from("version", 4, 6),
    number("traffic_class", 8),
    number("flow_label", 20),
    number("payload_length", 16),
    from("next_header", 8, 59),
    from("hop_limit", 8, 64),
    kind("src", 128, Kind::Ipv6),
    kind("dst", 128, Kind::Ipv6),
];
const UDP: [Field; 4] = [
    number("src_port", 16),
    number("dst_port", 16),
    number("length", 16),
    kind("checksum", 16, Kind::Checksum),
];
const TCP: [Field; 16] = [
    number("src_port", 16),
    number("dst_port", 16),
    number("seq_num", 32),
    number("ack_num", 32),
    number("data_offset", 4),
    number("ecn_ns", 1),
    number("ecn_cwr", 1),
    number("ecn_echo", 1),
    number("ctl_urg", 1),
    number("ctl_ack", 1),
    number("ctl_psh", 1),
    number("ctl_rst", 1),
    number("ctl_syn", 1),
    number("ctl_fin", 1),
    number("window", 16),
    kind("checksum", 16, Kind::Checksum),
];
const ARP: [Field; 9] = [
    from("hardware_type", 16, 1),
    from("protocol_type", 16, 0x0800),
    from("hardware_length", 8, 6),
    from("protocol_length", 8, 4),
    from("operation", 16, 1),
    kind("sender_hardware_addr", 48, Kind::Mac),
    kind("sender_protocol_addr", 32, Kind::Ipv4),
    kind("target_hardware_addr", 48, Kind::Mac),
    kind("target_protocol_addr", 32, Kind::Ipv4),
];
const ICMP: [Field; 5] = icmp(8);
const ICMPV6: [Field; 5] = icmp(128);
const GRE: [Field; 4] = [
    number("checksum_present", 1),
    number("reserved0", 12),
    number("version", 3),
    from("protocol", 16, 0x0800),
];
/// Fields of GRE with a checksum.
pub const GRE_WITH_SUM: [Field; 6] = [
    number("checksum_present", 1),
    number("reserved0", 12),
    number("version", 3),
    from("protocol", 16, 0x0800),
    kind("checksum", 16, Kind::Checksum),
    number("reserved1", 16),
];
const MPLS: [Field; 4] = [
    from("label", 20, 16),
    number("traffic_class", 3),
    from("bottom_of_stack", 1, 1),
    from("time_to_live", 8, 64),
];

const fn icmp(request: u128) -> [Field; 5] {
    [
        from("type", 8, request),
        number("code", 8),
        kind("checksum", 16, Kind::Checksum),
        number("identifier", 16),
        number("sequence_number", 16),
    ]
}

/// Fields of an extension header of IPv6.
pub const EXTENSION: [Field; 2] = [from("next_header", 8, 59), number("hdr_ext_len", 8)];
/// Fields of a segment routing header.
pub const SEGMENT_ROUTING: [Field; 3] = [
    number("segments_left", 8),
    number("last_entry", 8),
    number("tag", 16),
];
/// Flags of a segment routing header.
pub const SEGMENT_ROUTING_FLAGS: [Field; 3] =
    [number("protected", 1), number("oam", 1), number("alert", 1)];
/// Fields of a segment.
pub const SEGMENT: [Field; 1] = [kind("segment", 128, Kind::Ipv6)];

const PFC_PAUSE: [Field; 13] = [
    PAUSE_DESTINATION,
    kind("src", 48, Kind::Mac),
    from("ether_type", 16, 0x8808),
    from("control_op_code", 16, 0x0101),
    number("class_enable_vector", 16),
    number("pause_class_0", 16),
    number("pause_class_1", 16),
    number("pause_class_2", 16),
    number("pause_class_3", 16),
    number("pause_class_4", 16),
    number("pause_class_5", 16),
    number("pause_class_6", 16),
    number("pause_class_7", 16),
];
const ETHERNET_PAUSE: [Field; 5] = [
    PAUSE_DESTINATION,
    kind("src", 48, Kind::Mac),
    from("ether_type", 16, 0x8808),
    from("control_op_code", 16, 1),
    number("time", 16),
];

/// The protocol of a choice of the model, and its fields in the order of the wire.
pub fn of(choice: &str) -> Option<(Protocol, &'static [Field])> {
    Some(match choice {
        "ethernet" => (Protocol::Ethernet, &ETHERNET),
        "vlan" => (Protocol::Vlan, &VLAN),
        "vxlan" => (Protocol::Vxlan, &VXLAN),
        "ipv4" => (Protocol::Ipv4, &IPV4),
        "ipv6" => (Protocol::Ipv6, &IPV6),
        "udp" => (Protocol::Udp, &UDP),
        "tcp" => (Protocol::Tcp, &TCP),
        "arp" => (Protocol::Arp, &ARP),
        "icmp" => (Protocol::Icmp, &ICMP),
        "icmpv6" => (Protocol::Icmpv6, &ICMPV6),
        "gre" => (Protocol::Gre, &GRE),
        "mpls" => (Protocol::Mpls, &MPLS),
        "pfcpause" => (Protocol::PfcPause, &PFC_PAUSE),
        "ethernetpause" => (Protocol::EthernetPause, &ETHERNET_PAUSE),
        _ => return None,
    })
}
