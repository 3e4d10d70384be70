//! Addresses in a testbed file.

use std::net::IpAddr;

use serde::de::{self, Deserialize, Deserializer};

/// A unicast MAC address, written as `02:00:00:00:00:01`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct UnicastMac(pub [u8; 6]);

fn parse(text: &str) -> Option<[u8; 6]> {
    let mut octets = [0; 6];
    let mut parts = text.split([':', '-']);
    for octet in &mut octets {
        let part = parts
            .next()
            .filter(|part| part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
        *octet = u8::from_str_radix(part, 16).ok()?;
    }
    parts.next().is_none().then_some(octets)
}

impl<'de> Deserialize<'de> for UnicastMac {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        match parse(&text) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_spellings_are_read_and_others_are_not() {
        assert_eq!(
            parse("02:00:5e:10:FF:01"),
            Some([2, 0, 0x5e, 0x10, 0xff, 1])
        );
        assert_eq!(parse("02-00-00-00-00-01"), Some([2, 0, 0, 0, 0, 1]));
        for text in [
            "",
            "02:00:00:00:00",
            "02:00:00:00:00:01:02",
            "2:0:0:0:0:1",
            "+2:00:00:00:00:01",
            "0200.0000.0001",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
