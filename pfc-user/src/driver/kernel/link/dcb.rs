//! PFC settings and counters of a NIC: data center bridging by rtnetlink, as IEEE 802.1Qaz has it.
//! No crate knows these messages.

use std::io;

use netlink_packet_core::{DecodeError, NetlinkDeserializable, NetlinkHeader, NetlinkSerializable};
use netlink_sys::protocols::NETLINK_ROUTE;
use validator_core::evidence::preflight::Pfc;

use super::netlink::{ask, attribute, find};

// `linux/rtnetlink.h`, `linux/dcbnl.h`.
const RTM_GETDCB: u16 = 78;
const CMD_IEEE_GET: u8 = 21;
const ATTR_IFNAME: u16 = 1;
const ATTR_IEEE: u16 = 13;
const ATTR_IEEE_PFC: u16 = 2;
/// Octets of `struct dcbmsg`: family, command, padding.
const DCBMSG: usize = 4;
/// Offsets of `requests` and `indications` in `struct ieee_pfc`, behind three octets, padding and a
/// 16-bit delay; and its length.
const REQUESTS: usize = 8;
const INDICATIONS: usize = 72;
const IEEE_PFC: usize = 136;

/// A DCB message: attributes of a command.
#[derive(Clone, Debug)]
struct Message(Vec<u8>);

impl NetlinkSerializable for Message {
    fn message_type(&self) -> u16 {
        RTM_GETDCB
    }

    fn buffer_len(&self) -> usize {
        DCBMSG + self.0.len()
    }

    fn serialize(&self, buffer: &mut [u8]) {
        buffer[..DCBMSG].copy_from_slice(&[0, CMD_IEEE_GET, 0, 0]);
        buffer[DCBMSG..DCBMSG + self.0.len()].copy_from_slice(&self.0);
    }
}

impl NetlinkDeserializable for Message {
    type Error = DecodeError;

    fn deserialize(_: &NetlinkHeader, payload: &[u8]) -> Result<Self, DecodeError> {
        Ok(Self(payload.get(DCBMSG..).unwrap_or_default().to_vec()))
    }
}

/// The PFC settings of `interface`; `None` where its driver has none. `EOPNOTSUPP` where it knows
/// no DCB.
pub fn pfc(interface: &str) -> io::Result<Option<Pfc>> {
    let answer = ask(
        NETLINK_ROUTE,
        Message(attribute(
            ATTR_IFNAME,
            &[interface.as_bytes(), &[0]].concat(),
        )),
    )?;
    Ok(find(&answer.0, ATTR_IEEE)
        .and_then(|ieee| find(ieee, ATTR_IEEE_PFC))
        .and_then(read_pfc))
}

/// A `struct ieee_pfc`; `None` where it is shorter than that.
fn read_pfc(octets: &[u8]) -> Option<Pfc> {
    let octets = octets.get(..IEEE_PFC)?;
    let counts = |at: usize| {
        std::array::from_fn(|class| {
            u64::from_ne_bytes(octets[at + 8 * class..][..8].try_into().expect("8 octets"))
        })
    };
    Some(Pfc {
        capacity: octets[0],
        enabled: octets[1],
        requests: counts(REQUESTS),
        indications: counts(INDICATIONS),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_structure_of_the_kernel_is_read() {
        // cap 8, enabled 3 and 4, no MACsec bypass, padding, delay 0x1234, then two times eight
        // counters.
        let mut octets = vec![8, 0b0001_1000, 0, 0xff];
        octets.extend(0x1234u16.to_ne_bytes());
        octets.extend([0xff; 2]);
        octets.extend((0..8u64).flat_map(|class| (100 + class).to_ne_bytes()));
        octets.extend((0..8u64).flat_map(|class| (1 << 40 | class).to_ne_bytes()));
        let pfc = read_pfc(&octets).unwrap();
        assert_eq!((pfc.capacity, pfc.enabled), (8, 0x18));
        assert_eq!(pfc.requests, [100, 101, 102, 103, 104, 105, 106, 107]);
        assert_eq!(pfc.indications[7], 1 << 40 | 7);
        assert_eq!(read_pfc(&octets[..135]), None);
        octets.push(0);
        assert_eq!(read_pfc(&octets), Some(pfc), "a newer kernel may append");
    }
}
