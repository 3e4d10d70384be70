//! Ends of a flow: the ports that its frames come from and go to.

use std::net::IpAddr;

use pfc_ebpf::wire::mac_control::number;
use validator_core::engine::packet::{Header, Protocol, Value};
use validator_core::engine::plan::{Interface, PortIndex};

use super::super::devices::Interfaces;
use super::super::headers::Headers;
use super::super::ports::Ports;
use crate::reader::Reader;

/// The ends of a flow.
pub struct Ends {
    /// Sending port.
    pub from: PortIndex,
    /// Receiving ports.
    pub to: Vec<PortIndex>,
    /// The interfaces whose next hops frames go to, in turn.
    pub next_hops: Vec<usize>,
}

/// Reads the ends of a flow. Between devices, fields that its headers leave out are the devices'.
pub fn read(
    flow: &Reader<'_>,
    ports: &Ports,
    interfaces: &Interfaces,
    headers: &mut Headers,
) -> Option<Ends> {
    let reader = flow.or_error(
        "tx_rx",
        flow.child("tx_rx"),
        || "is missing: name the ports of the flow",
    )?;
    match &*reader.choice("port") {
        "port" => of_ports(&reader.object("port"), ports),
        "device" => of_devices(&reader.object("device"), interfaces, headers),
        other => reader.refuse_choice(other, "port and device are"),
    }
}

fn of_ports(reader: &Reader<'_>, ports: &Ports) -> Option<Ends> {
    let tx = reader.required("tx_name");
    let from = tx.and_then(|name| ports.find(reader, "tx_name", name));
    let mut to = Vec::new();
    let single = reader
        .text("rx_name")
        .into_iter()
        .map(|name| ("rx_name", name));
    let several = reader.texts("rx_names").into_iter();
    let several = several.map(|name| ("rx_names", name));
    for (field, name) in single.chain(several) {
        if let Some(port) = ports.find(reader, field, name)
            && !to.contains(&port)
        {
            to.push(port);
        }
    }
    Some(Ends {
        from: from?,
        to,
        next_hops: Vec::new(),
    })
}

/// An interface and its place in the plan.
type Placed<'i> = (usize, &'i Interface);

/// Reads the ends from a device to another: frames walk through all pairs, as the model has it.
fn of_devices(reader: &Reader<'_>, interfaces: &Interfaces, headers: &mut Headers) -> Option<Ends> {
    reader.refuse_true("bidirectional", "make a flow for each direction");
    let family = headers
        .packet
        .headers
        .iter()
        .find_map(|header| match header.protocol {
            Protocol::Ipv4 => Some(true),
            Protocol::Ipv6 => Some(false),
            _ => None,
        });
    let one_to_one = reader.enumeration("mode").as_deref() == Some("one_to_one");
    let tx = named(reader, "tx_names", interfaces, family);
    let rx = named(reader, "rx_names", interfaces, family);
    let pairs = pairs(reader, one_to_one, &tx?, &rx?)?;
    let from = pairs[0].0.1.port;
    let resolves = complete(&mut headers.packet.headers, &pairs);
    let mut to = Vec::new();
    for (_, (_, rx)) in &pairs {
        if !to.contains(&rx.port) {
            to.push(rx.port);
        }
    }
    let places = pairs.iter().map(|((place, _), _)| *place);
    let next_hops = if resolves {
        places.collect()
    } else {
        Vec::new()
    };
    Some(Ends {
        from,
        to,
        next_hops,
    })
}

/// The pairs that the mode makes of both ends.
fn pairs<'i>(
    reader: &Reader<'_>,
    one_to_one: bool,
    tx: &[Placed<'i>],
    rx: &[Placed<'i>],
) -> Option<Vec<(Placed<'i>, Placed<'i>)>> {
    if one_to_one && tx.len() != rx.len() {
        let text = format!(
            "has {} names, and tx_names has {}: the mode one_to_one needs as many",
            rx.len(),
            tx.len()
        );
        return reader.fail("rx_names", text);
    }
    let pairs: Vec<_> = if one_to_one {
        tx.iter().copied().zip(rx.iter().copied()).collect()
    } else {
        let to_each = |tx: &Placed<'i>| {
            let tx = *tx;
            rx.iter().map(move |rx| (tx, *rx))
        };
        tx.iter().flat_map(to_each).collect()
    };
    if let Some(((_, same), _)) = pairs.iter().find(|(tx, rx)| tx.0 == rx.0) {
        let text = format!("has \"{}\", as tx_names has for the same frames", same.name);
        return reader.fail("rx_names", text);
    }
    if tx.iter().any(|(_, other)| other.port != tx[0].1.port) {
        let text = "has devices of several ports: make a flow for each port";
        return reader.fail("tx_names", text);
    }
    Some(pairs)
}

/// The interfaces of that family that the names of a field have, one each.
fn named<'i>(
    reader: &Reader<'_>,
    field: &str,
    interfaces: &'i Interfaces,
    ipv4: Option<bool>,
) -> Option<Vec<Placed<'i>>> {
    let names = reader.texts(field);
    if names.is_empty() {
        return reader.fail(field, "has no name: expected at least one");
    }
    let found: Vec<_> = names
        .into_iter()
        .map(|name| of_name(reader, field, name, interfaces, ipv4))
        .collect();
    found.into_iter().collect()
}

/// The one interface of that family that a name has.
fn of_name<'i>(
    reader: &Reader<'_>,
    field: &str,
    name: &str,
    interfaces: &'i Interfaces,
    ipv4: Option<bool>,
) -> Option<Placed<'i>> {
    let mut found = reader.or_error(field, interfaces.find(name), || {
        format!("names \"{name}\", which is no device, Ethernet or address")
    })?;
    found.retain(|(_, interface)| ipv4.is_none_or(|ipv4| interface.address.is_ipv4() == ipv4));
    let [one] = found[..] else {
        let text = format!(
            "names \"{name}\", which has {} addresses of the flow's family: name one address",
            found.len()
        );
        return reader.fail(field, text);
    };
    Some(one)
}

/// Completes headers by the devices of a flow; true if the destination MAC address is left to the
/// next hops.
fn complete(headers: &mut [Header], pairs: &[(Placed<'_>, Placed<'_>)]) -> bool {
    let of_each = |value: &dyn Fn(&Interface, &Interface) -> u128| {
        Value::of_each(pairs.iter().map(|((_, tx), (_, rx))| value(tx, rx)))
    };
    let mut resolves = false;
    if let Some(ethernet) = first(headers, Protocol::Ethernet) {
        let source = of_each(&|tx, _| u128::from(number(tx.mac)));
        set(ethernet, "src", source);
        resolves = ethernet.fields.iter().all(|(name, _)| *name != "dst");
    }
    let ip = match pairs[0].0.1.address {
        IpAddr::V4(_) => Protocol::Ipv4,
        IpAddr::V6(_) => Protocol::Ipv6,
    };
    if let Some(ip) = first(headers, ip) {
        set(ip, "src", of_each(&|tx, _| bits(tx.address)));
        set(ip, "dst", of_each(&|_, rx| bits(rx.address)));
    }
    resolves
}

fn first(headers: &mut [Header], protocol: Protocol) -> Option<&mut Header> {
    headers
        .iter_mut()
        .find(|header| header.protocol == protocol)
}

/// Sets a field that is left out.
fn set(header: &mut Header, field: &'static str, value: Value) {
    if header.fields.iter().all(|(name, _)| *name != field) {
        header.fields.push((field, value));
    }
}

fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u128::from(address.to_bits()),
        IpAddr::V6(address) => address.to_bits(),
    }
}
