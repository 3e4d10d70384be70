//! Echo of ICMP (RFC 792) and of ICMPv6 (RFC 4443, 4).

use super::Protocol::{Ipv4, Ipv6, Segment};
use super::table::{LeftAlone, Table, computed, value};

/// Types of the requests.
const REQUEST: u128 = 8;
const REQUEST_V6: u128 = 128;

/// ICMP, whose checksum covers the message alone.
pub const V4: Table = Table {
    name: "icmp",
    octets: 8,
    number: Some(1),
    behind: &[Ipv4],
    fields: &[
        value("type", 0, 8, REQUEST),
        value("code", 8, 8, 0),
        computed("checksum", 16, 16, LeftAlone::MessageSum),
        value("identifier", 32, 16, 0),
        value("sequence_number", 48, 16, 0),
    ],
    ..Table::BASE
};

/// ICMPv6, whose checksum covers a pseudo-header, too.
pub const V6: Table = Table {
    name: "icmpv6",
    octets: 8,
    number: Some(58),
    behind: &[Ipv6, Segment],
    fields: &[
        value("type", 0, 8, REQUEST_V6),
        value("code", 8, 8, 0),
        computed("checksum", 16, 16, LeftAlone::PayloadSum),
        value("identifier", 32, 16, 0),
        value("sequence_number", 48, 16, 0),
    ],
    ..Table::BASE
};
