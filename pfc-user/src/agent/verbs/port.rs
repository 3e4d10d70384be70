//! Choice of the port and of its address.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};
use std::sync::Arc;

use pfc_ebpf::wire::roce;
use sideway::ibverbs::address::{Gid, GidType};
use sideway::ibverbs::device::DeviceInfo;
use sideway::ibverbs::device_context::{DeviceContext, LinkLayer, Mtu, PortState};

use super::{no_device, verbs};
use crate::agent::protocol::{Failure, FailureKind};

/// A port that is up.
pub struct Port {
    pub number: u8,
    pub active_mtu: Mtu,
}

/// An address of the port in the GID table.
pub struct Source {
    pub index: u8,
    pub address: IpAddr,
}

/// Finds port `wanted`, by default the first suitable one. It must be Ethernet and active.
pub fn find(context: &Arc<DeviceContext>, ports: u8, wanted: Option<u8>) -> Result<Port, Failure> {
    let name = context.name();
    let mut seen = Vec::new();
    for number in (1..=ports).filter(|number| wanted.is_none_or(|wanted| *number == wanted)) {
        let port = context
            .query_port(number)
            .map_err(|error| verbs(&format!("query port {number} of {name}"), &error))?;
        if port.link_layer() == LinkLayer::Ethernet && port.port_state() == PortState::Active {
            return Ok(Port {
                number,
                active_mtu: port.active_mtu(),
            });
        }
        seen.push(format!(
            "port {number} {:?}, {:?}",
            port.link_layer(),
            port.port_state()
        ));
    }
    let wanted = wanted.map_or_else(
        || "an active Ethernet port".to_owned(),
        |number| format!("port {number} to be active Ethernet"),
    );
    let found = if seen.is_empty() {
        format!("{ports} ports")
    } else {
        seen.join("; ")
    };
    Err(no_device(&format!(
        "{name}: expected {wanted}, found {found}"
    )))
}

/// Finds the port's RoCEv2 address at `index`. By default it is the one from which the kernel sends
/// to `remote`; if that belongs to another adapter, the first of the same family and scope.
pub fn source(
    context: &Arc<DeviceContext>,
    port: u8,
    index: Option<u8>,
    remote: IpAddr,
) -> Result<Source, Failure> {
    let name = context.name();
    let table = context
        .query_gid_table()
        .map_err(|error| verbs(&format!("query GID table of {name}"), &error))?;
    let all: Vec<Source> = table
        .iter()
        .filter(|entry| index.is_none_or(|index| entry.gid_index() == u32::from(index)))
        .filter(|entry| entry.port_num() == u32::from(port) && entry.gid_type() == GidType::RoceV2)
        .filter_map(|entry| {
            Some(Source {
                index: u8::try_from(entry.gid_index()).ok()?,
                address: address(entry.gid()),
            })
        })
        .collect();
    let addresses: Vec<IpAddr> = all.iter().map(|source| source.address).collect();
    match choose(&addresses, remote, sent_from(remote)) {
        Some(chosen) => Ok(all.into_iter().nth(chosen).expect("an index into it")),
        None => {
            let family = if remote.is_ipv4() { "IPv4" } else { "IPv6" };
            let found = if addresses.is_empty() {
                "none".to_owned()
            } else {
                format!("{addresses:?}")
            };
            let which = index.map_or_else(String::new, |index| format!(" at index {index}"));
            let message = format!(
                "expected a RoCEv2 GID of {name}{which} with an {family} address to reach {remote} \
                 from, found {found}"
            );
            Err(Failure::new(FailureKind::NoDevice, message))
        }
    }
}

fn choose(addresses: &[IpAddr], remote: IpAddr, sent_from: Option<IpAddr>) -> Option<usize> {
    let routed = addresses
        .iter()
        .position(|address| Some(*address) == sent_from);
    routed.or_else(|| {
        addresses
            .iter()
            .position(|address| scope(*address) == scope(remote))
    })
}

/// Distinguishes IPv4, IPv6 link-local, and IPv6 of any other scope.
fn scope(address: IpAddr) -> (bool, bool) {
    match address {
        IpAddr::V4(_) => (true, false),
        IpAddr::V6(address) => (false, address.is_unicast_link_local()),
    }
}

/// Returns the address that the kernel would send from. Connecting a datagram socket sends nothing.
fn sent_from(remote: IpAddr) -> Option<IpAddr> {
    let any: IpAddr = if remote.is_ipv4() {
        Ipv4Addr::UNSPECIFIED.into()
    } else {
        Ipv6Addr::UNSPECIFIED.into()
    };
    let socket = UdpSocket::bind((any, 0)).ok()?;
    socket.connect((remote, roce::UDP_PORT)).ok()?;
    Some(socket.local_addr().ok()?.ip())
}

fn address(gid: Gid) -> IpAddr {
    IpAddr::V6(gid.into()).to_canonical()
}

/// Converts an address to a GID: IPv4 is mapped into IPv6 (A17.4.2).
pub fn gid(address: IpAddr) -> Gid {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().into(),
        IpAddr::V6(address) => address.into(),
    }
}

/// A path MTU in octets.
pub fn octets(mtu: Mtu) -> u16 {
    match mtu {
        Mtu::Mtu256 => 256,
        Mtu::Mtu512 => 512,
        Mtu::Mtu1024 => 1024,
        Mtu::Mtu2048 => 2048,
        Mtu::Mtu4096 => 4096,
    }
}

/// Converts a number of octets to a path MTU, if it is one.
pub fn mtu(octets: u16) -> Option<Mtu> {
    [
        Mtu::Mtu256,
        Mtu::Mtu512,
        Mtu::Mtu1024,
        Mtu::Mtu2048,
        Mtu::Mtu4096,
    ]
    .into_iter()
    .find(|mtu| self::octets(*mtu) == octets)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gids_map_addresses() {
        let v4: IpAddr = "198.18.16.1".parse().unwrap();
        assert_eq!(
            gid(v4).raw,
            [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 198, 18, 16, 1]
        );
        assert_eq!(address(gid(v4)), v4);
        let v6: IpAddr = "2001:2::1".parse().unwrap();
        assert_eq!(address(gid(v6)), v6);
    }

    #[test]
    fn the_source_is_of_the_remote_s_family_and_route() {
        let ip = |text: &str| text.parse::<IpAddr>().unwrap();
        let addresses = [
            ip("fe80::1"),
            ip("198.18.16.2"),
            ip("198.18.17.2"),
            ip("2001:2::2"),
        ];
        assert_eq!(
            choose(&addresses, ip("198.18.17.1"), Some(ip("198.18.17.2"))),
            Some(2)
        );
        assert_eq!(choose(&addresses, ip("198.18.17.1"), None), Some(1));
        assert_eq!(choose(&addresses, ip("2001:2::1"), None), Some(3));
        assert_eq!(choose(&addresses, ip("fe80::9"), None), Some(0));
        assert_eq!(
            choose(&addresses[..1], ip("198.18.17.1"), Some(ip("198.18.17.2"))),
            None
        );
    }

    #[test]
    fn only_the_specification_s_mtus_are_mtus() {
        for octets in [256, 512, 1024, 2048, 4096] {
            assert_eq!(mtu(octets).map(self::octets), Some(octets));
        }
        assert_eq!(mtu(1500), None);
    }
}
