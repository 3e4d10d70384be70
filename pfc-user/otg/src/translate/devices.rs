//! Devices: addresses that the ports answer for.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use validator_core::engine::plan::{Interface, PortIndex};

use super::headers::mac;
use super::names::Names;
use super::ports::Ports;
use crate::reader::Reader;

/// Ethernet and next hop of an interface of the plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// The Ethernet that it belongs to.
    pub ethernet: String,
    /// The next hop.
    pub gateway: IpAddr,
}

/// Interfaces of a configuration.
#[derive(Debug, Default)]
pub struct Interfaces {
    /// Places in the list by the names of devices, Ethernets and addresses.
    by_name: HashMap<String, Vec<usize>>,
    list: Vec<(Interface, Address)>,
}

impl Interfaces {
    /// The interfaces of a device, an Ethernet or an address; `None` if there is none of that name.
    pub fn find(&self, name: &str) -> Option<Vec<(usize, &Interface)>> {
        let places = self.by_name.get(name)?;
        Some(
            places
                .iter()
                .map(|place| (*place, &self.list[*place].0))
                .collect(),
        )
    }

    /// Returns the interfaces for the plan, with their addresses.
    pub fn into_plan(self) -> (Vec<Interface>, Vec<Address>) {
        self.list.into_iter().unzip()
    }

    fn add(&mut self, names: [&str; 3], interface: Interface) {
        let place = self.list.len();
        for name in names {
            self.by_name.entry(name.to_owned()).or_default().push(place);
        }
        let address = Address {
            ethernet: names[1].to_owned(),
            gateway: interface.gateway,
        };
        self.list.push((interface, address));
    }
}

/// Protocols of a device, all out of reach.
const PROTOCOLS: [&str; 12] = [
    "ipv4_loopbacks",
    "ipv6_loopbacks",
    "isis",
    "bgp",
    "vxlan",
    "rsvp",
    "dhcp_server",
    "ospfv2",
    "macsec",
    "ospfv3",
    "rocev2",
    "bmp",
];

/// Properties that all addresses of an Ethernet share.
struct Ethernet<'a> {
    device: &'a str,
    name: &'a str,
    port: PortIndex,
    mac: [u8; 6],
    vlans: Vec<u16>,
}

/// Reads the devices.
pub fn read(config: &Reader<'_>, ports: &Ports, names: &mut Names) -> Interfaces {
    let mut interfaces = Interfaces::default();
    for device in config.children("devices") {
        let name = names.take(&device);
        interfaces.by_name.entry(name.to_owned()).or_default();
        for protocol in PROTOCOLS {
            device.refuse(
                protocol,
                "it needs a control plane; devices answer ARP and ND alone",
            );
        }
        for ethernet in device.children("ethernets") {
            read_ethernet(&ethernet, name, ports, names, &mut interfaces);
        }
    }
    interfaces
}

fn read_ethernet(
    reader: &Reader<'_>,
    device: &str,
    ports: &Ports,
    names: &mut Names,
    interfaces: &mut Interfaces,
) {
    let name = names.take(reader);
    interfaces.by_name.entry(name.to_owned()).or_default();
    for field in ["dhcpv4_interfaces", "dhcpv6_interfaces"] {
        reader.refuse(field, "it needs a DHCP client; set addresses");
    }
    if reader.integer("mtu").is_some_and(|mtu| mtu != 1500) {
        reader.warn("mtu", "changes nothing: layer1.mtu is the port's");
    }
    let ethernet = Ethernet {
        device,
        name,
        port: connection(reader, ports).unwrap_or(PortIndex(0)),
        mac: unicast(reader).unwrap_or_default(),
        vlans: reader
            .children("vlans")
            .iter()
            .map(|vlan| tag(vlan, names))
            .collect(),
    };
    for address in reader.children("ipv4_addresses") {
        read_address::<Ipv4Addr>(&address, &ethernet, (24, 32), names, interfaces);
    }
    for address in reader.children("ipv6_addresses") {
        read_address::<Ipv6Addr>(&address, &ethernet, (64, 128), names, interfaces);
    }
}

/// The port that an Ethernet is on.
fn connection(reader: &Reader<'_>, ports: &Ports) -> Option<PortIndex> {
    let connection = reader.child("connection");
    let connection = reader.or_error("connection", connection, || "is missing")?;
    if !connection.chooses("port_name", "connect it by port_name") {
        return None;
    }
    let port = connection.required("port_name")?;
    ports.find(&connection, "port_name", port)
}

/// A MAC address of a station.
fn unicast(reader: &Reader<'_>) -> Option<[u8; 6]> {
    let text = reader.required("mac")?;
    let found = mac(text).filter(|mac| mac[0] & 1 == 0 && *mac != [0; 6]);
    reader.or_error("mac", found, || {
        format!("must be an address of a station like 02:00:00:00:00:01, found {text}")
    })
}

/// The identifier of a VLAN tag.
fn tag(reader: &Reader<'_>, names: &mut Names) -> u16 {
    names.take(reader);
    if let Some(tpid) = reader.enumeration("tpid")
        && tpid != "x8100"
    {
        reader.error("tpid", format!("{tpid} is not supported: x8100 is"));
    }
    if reader.integer("priority").is_some_and(|value| value != 0) {
        reader.error("priority", "is not supported for ARP and ND: set 0");
    }
    // The model's default is 1.
    let id = reader.integer("id").unwrap_or(1);
    reader.within("id", id, 0..=4094).unwrap_or(0)
}

fn read_address<A: std::str::FromStr + Into<IpAddr>>(
    reader: &Reader<'_>,
    ethernet: &Ethernet<'_>,
    (default_prefix, bits): (u64, u64),
    names: &mut Names,
    interfaces: &mut Interfaces,
) {
    let name = names.take(reader);
    if let Some(resolution) = reader.child("gateway_mac") {
        let needs = "it needs next hops that are not asked for by ARP and ND; auto is";
        if resolution.chooses("auto", needs) {
            resolution.leave("auto");
        }
    }
    let prefix = reader.integer("prefix").unwrap_or(default_prefix);
    let prefix: Option<u8> = reader.within("prefix", prefix, 0..=bits);
    let (Some(address), Some(gateway)) = (
        parsed::<A>(reader, "address"),
        parsed::<A>(reader, "gateway"),
    ) else {
        return;
    };
    if let Some(prefix) = prefix
        && !is_near(address, gateway, prefix)
    {
        // A client that errs in either would wait for an answer in vain.
        reader.warn(
            "gateway",
            format!(
                "{gateway} is not in the subnet of {address}/{prefix}; it is asked for on its link"
            ),
        );
    }
    interfaces.add(
        [ethernet.device, ethernet.name, name],
        Interface {
            name: name.to_owned(),
            port: ethernet.port,
            mac: ethernet.mac,
            vlans: ethernet.vlans.clone(),
            address,
            prefix: prefix.unwrap_or(0),
            gateway,
        },
    );
}

/// Returns true if an address of that prefix reaches the next hop without another.
fn is_near(address: IpAddr, gateway: IpAddr, prefix: u8) -> bool {
    let (difference, bits) = match (address, gateway) {
        (IpAddr::V4(address), IpAddr::V4(gateway)) => {
            (u128::from(address.to_bits() ^ gateway.to_bits()), 32)
        }
        // Each link has the same link-local prefix.
        (_, IpAddr::V6(gateway)) if gateway.is_unicast_link_local() => return true,
        (IpAddr::V6(address), IpAddr::V6(gateway)) => (address.to_bits() ^ gateway.to_bits(), 128),
        _ => return false,
    };
    // A shift by the whole width is none.
    difference
        .checked_shr(bits - u32::from(prefix))
        .unwrap_or(0)
        == 0
}

fn parsed<A: std::str::FromStr + Into<IpAddr>>(reader: &Reader<'_>, field: &str) -> Option<IpAddr> {
    let text = reader.required(field)?;
    let address = text.parse::<A>().ok().map(Into::into);
    reader.or_error(field, address, || {
        format!("is \"{text}\", which is no such address")
    })
}
