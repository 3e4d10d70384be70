//! TCP without options (RFC 9293), with the bits of RFC 3168 and the nonce sum of RFC 3540.

use super::Protocol::{Ipv4, Ipv6, Segment};
use super::table::{LeftAlone, Table, computed, value};

/// The header.
pub const TABLE: Table = Table {
    name: "tcp",
    octets: 20,
    number: Some(6),
    follows: &[Ipv4, Ipv6, Segment],
    fields: &[
        value("src_port", 0, 16, 0),
        value("dst_port", 16, 16, 0),
        value("seq_num", 32, 32, 0),
        value("ack_num", 64, 32, 0),
        value("data_offset", 96, 4, 5),
        value("ecn_ns", 103, 1, 0),
        value("ecn_cwr", 104, 1, 0),
        value("ecn_echo", 105, 1, 0),
        value("ctl_urg", 106, 1, 0),
        value("ctl_ack", 107, 1, 0),
        value("ctl_psh", 108, 1, 0),
        value("ctl_rst", 109, 1, 0),
        value("ctl_syn", 110, 1, 0),
        value("ctl_fin", 111, 1, 0),
        value("window", 112, 16, 0),
        computed("checksum", 128, 16, LeftAlone::PayloadSum),
        value("urgent_pointer", 144, 16, 0),
    ],
    ..Table::BASE
};
