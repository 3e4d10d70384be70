//! Addresses of the test frames.

use std::net::{IpAddr, Ipv4Addr};

use serde::Deserialize;
use validator_core::keys;

use crate::config::ConfigError;
use crate::config::address::{UnicastMac, is_of_a_host};
use crate::config::document::Document;

/// Addresses of the test frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Addresses {
    /// Source address, of the same family as the destination.
    pub source_ip: IpAddr,
    /// Destination address.
    pub destination_ip: IpAddr,
    /// Source MAC address; `None`: the tx port's own.
    pub source_mac: Option<[u8; 6]>,
    /// Destination on the tx port's link.
    pub destination: Destination,
}

/// Destination MAC address of the test frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Destination {
    /// The DUT bridges: to the rx port's own address.
    RxPort,
    /// The DUT bridges: to this address.
    Mac([u8; 6]),
    /// The DUT routes, and this is its address: MAC addresses, TTL and checksum may change.
    Gateway([u8; 6]),
}

keys::table! {
    /// Addresses of the test frames.
    #[derive(Default, Deserialize)]
    pub(super) struct Table: "addresses", "addresses." {
        /// Source address, IPv4 or IPv6.
        source_ip: Option<IpAddr> = "IP address", "\"198.18.0.1\"";
        /// Destination address, of the same family.
        destination_ip: Option<IpAddr> = "IP address", "\"198.18.0.2\"";
        /// Source MAC address.
        source_mac: Option<UnicastMac> = "MAC address", "the tx port's own";
        /// Destination MAC address, where the DUT bridges.
        destination_mac: Option<UnicastMac> = "MAC address", "the rx port's own";
        /// The DUT's MAC address, where it routes: MAC addresses, TTL and checksum may then change.
        /// Not together with `destination_mac`.
        gateway_mac: Option<UnicastMac> = "MAC address", "";
    }
}

/// The addresses in `table`, checked.
pub(super) fn read(document: &Document, table: &Table) -> Result<Addresses, ConfigError> {
    // RFC 2544 sets 198.18.0.0/15 aside for tests of network devices.
    let source_ip = table
        .source_ip
        .unwrap_or(Ipv4Addr::new(198, 18, 0, 1).into());
    let destination_ip = table
        .destination_ip
        .unwrap_or(Ipv4Addr::new(198, 18, 0, 2).into());
    if source_ip.is_ipv4() != destination_ip.is_ipv4() {
        let key = if table.destination_ip.is_some() {
            "addresses.destination_ip"
        } else {
            "addresses.source_ip"
        };
        let problem = format!(
            "source {source_ip} and destination {destination_ip} must be of one family, IPv4 or \
             IPv6"
        );
        return Err(document.error(key, problem));
    }
    if source_ip == destination_ip {
        let problem = format!("source and destination must differ, both are {source_ip}");
        return Err(document.error("addresses.destination_ip", problem));
    }
    for (key, address) in [
        ("addresses.source_ip", source_ip),
        ("addresses.destination_ip", destination_ip),
    ] {
        if !is_of_a_host(address) {
            let problem = format!("expected the unicast address of a host, found {address}");
            return Err(document.error(key, problem));
        }
    }
    let destination = match (table.destination_mac, table.gateway_mac) {
        (None, None) => Destination::RxPort,
        (Some(mac), None) => Destination::Mac(mac.0),
        (None, Some(mac)) => Destination::Gateway(mac.0),
        (Some(_), Some(_)) => {
            return Err(document.error(
                "addresses.gateway_mac",
                "expected either destination_mac (the DUT bridges) or gateway_mac (the DUT \
                 routes), found both",
            ));
        }
    };
    Ok(Addresses {
        source_ip,
        destination_ip,
        source_mac: table.source_mac.map(|mac| mac.0),
        destination,
    })
}
