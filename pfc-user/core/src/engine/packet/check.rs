//! Defects of packets that cannot be made into frames, each with its header and field.

use pfc_ebpf::flow_stamp::{Form, INNER_FCS};
use pfc_ebpf::units::LineRate;

use super::table::{Field, Table};
use super::value::mask;
use super::{Header, Packet, Protocol, Value};

impl Packet {
    /// The defects of a packet whose shortest frame has `shortest` octets with FCS, and by whose
    /// `stamp` frames are counted.
    pub fn check(&self, shortest: u32, stamp: Option<Form>) -> Vec<String> {
        let mut wrong = Vec::new();
        for (place, header) in self.headers.iter().enumerate() {
            let name = header.protocol.name();
            wrong.extend(
                check_header(header)
                    .into_iter()
                    .map(|what| format!("header {} ({name}): {what}", place + 1)),
            );
        }
        wrong.extend(self.check_order());
        if stamp == Some(Form::Short) && self.needs_whole_stamp() {
            wrong.push(
                "a frame within a tunnel, of ARP or of ICMPv6 is counted by a whole stamp alone"
                    .into(),
            );
        }
        let needed = self.shortest(stamp);
        if shortest < needed {
            let what = if stamp.is_some() && !self.is_pause() {
                "headers, stamp and FCS: a flow that is counted"
            } else {
                "headers and FCS: such a packet"
            };
            wrong.push(format!(
                "frames of {shortest} octets have no room for {what} needs at least {needed}"
            ));
        }
        wrong
    }

    /// Octets of the shortest frame, with FCS, that holds the headers and such a stamp.
    pub fn shortest(&self, stamp: Option<Form>) -> u32 {
        let stamp = stamp.filter(|_| !self.is_pause()).map_or(0, Form::len);
        (self.header_octets() + self.inner_fcs() + stamp) as u32 + LineRate::FCS as u32
    }

    /// Returns true for PAUSE and PFC frames: they are neither held nor stamped.
    pub fn is_pause(&self) -> bool {
        let first = self.headers.first();
        first.is_some_and(|header| header.protocol.is_pause())
    }

    /// Octets of all headers.
    pub(super) fn header_octets(&self) -> usize {
        self.headers.iter().map(Header::length).sum()
    }

    /// Returns true if a short stamp would not be found: before the FCS of a frame within a tunnel,
    /// or in frames that may be a host's to find its neighbours.
    pub fn needs_whole_stamp(&self) -> bool {
        let is_neighbours =
            |header: &Header| matches!(header.protocol, Protocol::Arp | Protocol::Icmpv6);
        self.inner_fcs() > 0 || self.headers.iter().any(is_neighbours)
    }

    /// Octets at the end that the packet in a tunnel leaves for an FCS of its own.
    pub(super) fn inner_fcs(&self) -> usize {
        let is_tunnel = |header: &&Header| header.protocol == Protocol::Vxlan;
        self.headers.iter().filter(is_tunnel).count() * INNER_FCS
    }

    fn check_order(&self) -> Vec<String> {
        let mut wrong = Vec::new();
        if self.headers.is_empty() {
            return vec!["a packet has at least one header, found none".into()];
        }
        for (place, header) in self.headers.iter().enumerate() {
            let name = header.protocol.name();
            let before = place
                .checked_sub(1)
                .map(|before| self.headers[before].protocol);
            if header.protocol.may_follow(before) {
                continue;
            }
            wrong.push(match before {
                None => format!(
                    "header 1 is {name}: expected ethernet, pfc_pause, ethernet_pause or custom"
                ),
                Some(_) if header.protocol.is_pause() => format!(
                    "header {} ({name}): it is a whole frame, expected it first and alone",
                    place + 1
                ),
                Some(before) => format!(
                    "header {} ({name}): it cannot stand behind {}",
                    place + 1,
                    before.name()
                ),
            });
        }
        if self.inner_fcs() > INNER_FCS {
            wrong.push("two vxlan headers: expected one at most".into());
        }
        wrong
    }

    /// Returns true if each frame is a UDP datagram in one IP packet with right lengths and
    /// checksums, so that a wrong checksum at the receiver is damage.
    pub fn is_right_udp(&self) -> bool {
        let mut inner = self
            .headers
            .iter()
            .filter(|header| !matches!(header.protocol, Protocol::Ethernet | Protocol::Vlan));
        let (ip, udp) = (inner.next(), inner.next());
        let is_ip = |header: &Header| matches!(header.protocol, Protocol::Ipv4 | Protocol::Ipv6);
        let untouched = |header: &Header, names: &[&str]| {
            header.fields.iter().all(|(name, _)| !names.contains(name))
        };
        let fragments = ["more_fragments", "fragment_offset"];
        ip.is_some_and(|ip| {
            is_ip(ip)
                && untouched(
                    ip,
                    &["version", "header_length", "total_length", "payload_length"],
                )
                && untouched(ip, &["protocol", "next_header", "header_checksum"])
                && untouched(ip, &fragments)
        }) && udp.is_some_and(|udp| {
            udp.protocol == Protocol::Udp && untouched(udp, &["length", "checksum"])
        })
    }
}

fn check_header(header: &Header) -> Vec<String> {
    let Some(table) = header.protocol.table() else {
        return match header.fields.first() {
            Some((name, _)) => vec![format!("field \"{name}\": octets have no fields")],
            None => Vec::new(),
        };
    };
    let mut wrong = Vec::new();
    if !header.octets.is_empty() {
        wrong.push("octets are of custom headers alone".into());
    }
    for (place, (name, value)) in header.fields.iter().enumerate() {
        if header.fields[..place]
            .iter()
            .any(|(other, _)| other == name)
        {
            wrong.push(format!("field \"{name}\" is set twice"));
        }
        let defect = match table.field(name) {
            None => Some(format!("no such field; there are {}", table.names())),
            Some(field) => check_value(field, value),
        };
        wrong.extend(defect.map(|what| format!("field \"{name}\": {what}")));
    }
    wrong
}

/// The defect of a value.
fn check_value(field: &Field, value: &Value) -> Option<String> {
    let largest = mask(field.bits);
    let above = |values: &[u128]| {
        let found = values.iter().find(|value| **value > largest)?;
        Some(format!(
            "expected at most {largest} in {} bits, found {found}",
            field.bits
        ))
    };
    match value {
        Value::Fixed(value) => above(&[*value]),
        Value::List(values) if values.is_empty() => Some("the list of values is empty".into()),
        Value::List(values) => above(values),
        Value::Increment { count: 0, .. }
        | Value::Decrement { count: 0, .. }
        | Value::Random { count: 0, .. } => Some("expected a count above 0".into()),
        Value::Increment { start, step, .. } | Value::Decrement { start, step, .. } => {
            above(&[*start, *step])
        }
        Value::Random { min, max, .. } if min > max => Some(format!(
            "expected min to be at most max, found {min} and {max}"
        )),
        Value::Random { min, max, .. } => above(&[*min, *max]),
        Value::Bad if field.left_alone.is_sum() => None,
        Value::Bad => Some("only a checksum can be wrong on purpose".into()),
    }
}

impl Table {
    /// The field of that name.
    pub fn field(&self, name: &str) -> Option<&'static Field> {
        self.fields.iter().find(|field| field.name == name)
    }

    fn names(&self) -> String {
        let names: Vec<_> = self.fields.iter().map(|field| field.name).collect();
        names.join(", ")
    }
}
