//! Addresses in a testbed file.

use std::net::IpAddr;

use serde::de::{self, Deserialize, Deserializer};
use validator_core::quantity::mac;

/// A unicast MAC address, written as `02:00:00:00:00:01`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct UnicastMac(pub [u8; 6]);

impl<'de> Deserialize<'de> for UnicastMac {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        match mac(&text, 2..=2) {
            Some(octets) if octets[0] & 1 == 0 && octets != [0; 6] => Ok(Self(octets)),
            _ => Err(de::Error::invalid_value(
                de::Unexpected::Str(&text),
                &"a unicast MAC address, such as \"02:00:00:00:00:01\"",
            )),
        }
    }
}

/// Returns true for a unicast address that may stand in a packet on a wire.
pub(super) fn is_of_a_host(address: IpAddr) -> bool {
    let special = address.is_multicast() || address.is_unspecified() || address.is_loopback();
    !special
        && match address {
            // 0.0.0.0/8 is "this network", 240.0.0.0/4 reserved, with the broadcast address
            // (RFC 6890).
            IpAddr::V4(address) => (1..240).contains(&address.octets()[0]),
            IpAddr::V6(address) => address.to_ipv4_mapped().is_none(),
        }
}
