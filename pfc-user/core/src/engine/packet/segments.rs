//! The segment routing header of IPv6 (RFC 8754, 2), and the segments behind it, each a header of
//! its own.

use super::Protocol::{Ipv6, Segment, SegmentRouting};
use super::ipv6;
use super::table::{Field, LeftAlone, Table, computed, value};

/// Routing type (RFC 8754, 2).
const SEGMENT_ROUTING: u128 = 4;

/// The header up to its segments. `segments_left` is what the OTG model says of it.
pub const TABLE: Table = Table {
    name: "segment_routing",
    octets: 8,
    number: Some(43),
    behind: &[Ipv6, Segment],
    fields: &[
        computed("next_header", 0, 8, LeftAlone::Protocol(ipv6::NOTHING)),
        // Length in units of 8 octets, without the first (RFC 8200, 4.4).
        segments("hdr_ext_len", 8, 2, 0),
        value("routing_type", 16, 8, SEGMENT_ROUTING),
        segments("segments_left", 24, 1, 0),
        segments("last_entry", 32, 1, 1),
        value("protected", 41, 1, 0),
        value("oam", 42, 1, 0),
        value("alert", 43, 1, 0),
        value("tag", 48, 16, 0),
    ],
    ..Table::BASE
};

/// A segment.
pub const SEGMENT: Table = Table {
    name: "segment",
    octets: 16,
    behind: &[SegmentRouting, Segment],
    fields: &[value("segment", 0, 128, 0)],
    ..Table::BASE
};

const fn segments(name: &'static str, at: usize, each: u128, less: u128) -> Field {
    computed(name, at, 8, LeftAlone::Segments { each, less })
}
