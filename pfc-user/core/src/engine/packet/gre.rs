//! GRE (RFC 2784), without a checksum and with one.

use pfc_ebpf::wire::wrap;

use super::Protocol::{Ethernet, Ipv4, Ipv6, Segment};
use super::table::{Field, LeftAlone, Table, computed, value};

const RESERVED0: Field = value("reserved0", 1, 12, 0);
const VERSION: Field = value("version", 13, 3, 0);
const PROTOCOL: Field = computed("protocol", 16, 16, LeftAlone::EtherType);

/// GRE without a checksum.
pub const PLAIN: Table = Table {
    name: "gre",
    octets: 4,
    number: Some(47),
    wrap: wrap::GRE,
    behind: &[Ipv4, Ipv6, Segment],
    bears: &[Ethernet, Ipv4, Ipv6],
    fields: &[
        value("checksum_present", 0, 1, 0),
        RESERVED0,
        VERSION,
        PROTOCOL,
    ],
    ..Table::BASE
};

/// GRE with a checksum of the header and all that follows.
pub const WITH_SUM: Table = Table {
    name: "gre with a checksum",
    octets: 8,
    fields: &[
        value("checksum_present", 0, 1, 1),
        RESERVED0,
        VERSION,
        PROTOCOL,
        computed("checksum", 32, 16, LeftAlone::MessageSum),
        value("reserved1", 48, 16, 0),
    ],
    ..PLAIN
};
