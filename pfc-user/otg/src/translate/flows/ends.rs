//! Where a flow's frames come from and go to.

use std::net::IpAddr;

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
    /// The interface whose next hop frames go to.
    pub next_hop: Option<usize>,
}

/// Reads the ends of a flow. Between devices, what its headers leave out is theirs.
pub fn read(
    flow: &Reader<'_>,
    ports: &Ports,
    interfaces: &Interfaces,
    headers: &mut Headers,
) -> Option<Ends> {
    let Some(reader) = flow.child("tx_rx") else {
        flow.error("tx_rx", "is missing: name the ports of the flow");
        return None;
    };
    match &*reader.choice("port") {
        "port" => of_ports(&reader.object("port"), ports),
        "device" => of_devices(&reader.object("device"), interfaces, headers),
        other => {
            reader.refuse_choice(other, "port and device are");
            None
        }
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
        next_hop: None,
    })
}

fn of_devices(reader: &Reader<'_>, interfaces: &Interfaces, headers: &mut Headers) -> Option<Ends> {
    // With one device at each end, both modes are the same.
    reader.enumeration("mode");
    if reader.truth("bidirectional") == Some(true) {
        reader.error(
            "bidirectional",
            "is not supported: make a flow for each direction",
        );
    }
    let family = headers
        .packet
        .headers
        .iter()
        .find_map(|header| match header.protocol {
            Protocol::Ipv4 => Some(true),
            Protocol::Ipv6 => Some(false),
            _ => None,
        });
    let tx = end(reader, "tx_names", interfaces, family);
    let rx = end(reader, "rx_names", interfaces, family);
    let ((place, tx), (_, rx)) = (tx?, rx?);
    let resolves = complete(&mut headers.packet.headers, tx, rx);
    Some(Ends {
        from: tx.port,
        to: vec![rx.port],
        next_hop: resolves.then_some(place),
    })
}

/// The one interface of that family that the one name of a field has.
fn end<'i>(
    reader: &Reader<'_>,
    field: &str,
    interfaces: &'i Interfaces,
    ipv4: Option<bool>,
) -> Option<(usize, &'i Interface)> {
    let names = reader.texts(field);
    let [name] = names[..] else {
        let text = format!(
            "has {} names: one is supported; make a flow for each",
            names.len()
        );
        reader.error(field, text);
        return None;
    };
    let Some(mut found) = interfaces.find(name) else {
        let text = format!("names \"{name}\", which is no device, Ethernet or address");
        reader.error(field, text);
        return None;
    };
    found.retain(|(_, interface)| ipv4.is_none_or(|ipv4| interface.address.is_ipv4() == ipv4));
    let [one] = found[..] else {
        let text = format!(
            "names \"{name}\", which has {} addresses of the flow's family: name one address",
            found.len()
        );
        reader.error(field, text);
        return None;
    };
    Some(one)
}

/// Completes headers by the devices of a flow; true if the destination MAC address is left to the
/// next hop.
fn complete(headers: &mut [Header], tx: &Interface, rx: &Interface) -> bool {
    let mac = tx
        .mac
        .iter()
        .fold(0, |mac, octet| mac << 8 | u128::from(*octet));
    let mut resolves = false;
    if let Some(ethernet) = first(headers, Protocol::Ethernet) {
        set(ethernet, "src", mac);
        resolves = ethernet.fields.iter().all(|(name, _)| *name != "dst");
    }
    let ip = match tx.address {
        IpAddr::V4(_) => Protocol::Ipv4,
        IpAddr::V6(_) => Protocol::Ipv6,
    };
    if let Some(ip) = first(headers, ip) {
        set(ip, "src", bits(tx.address));
        set(ip, "dst", bits(rx.address));
    }
    resolves
}

fn first(headers: &mut [Header], protocol: Protocol) -> Option<&mut Header> {
    headers
        .iter_mut()
        .find(|header| header.protocol == protocol)
}

/// Sets a field that is left out.
fn set(header: &mut Header, field: &'static str, value: u128) {
    if header.fields.iter().all(|(name, _)| *name != field) {
        header.fields.push((field, Value::Fixed(value)));
    }
}

fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u128::from(address.to_bits()),
        IpAddr::V6(address) => address.to_bits(),
    }
}
