//! The datagrams' encoding.

use crate::mad::{LENGTH, Lid};

/// Octets of a control datagram's data.
pub const CONTROL_DATA: usize = 64;

/// Kind of a control datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// In an answer: refused.
    Error,
    Connect,
    Disconnect,
    GetPort,
    GetVendor,
    GetGid,
    GetGuid,
    GetNodeInfo,
    GetPortInfo,
    SetIsSm,
    GetPkeys,
}

impl Kind {
    /// Indexed by number.
    const ALL: [Self; 11] = [
        Self::Error,
        Self::Connect,
        Self::Disconnect,
        Self::GetPort,
        Self::GetVendor,
        Self::GetGid,
        Self::GetGuid,
        Self::GetNodeInfo,
        Self::GetPortInfo,
        Self::SetIsSm,
        Self::GetPkeys,
    ];
}

/// A control datagram: magic, slot, kind, length of the data, data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Control {
    /// The client's slot; without meaning in Connect.
    pub slot: u32,
    pub kind: Kind,
    pub data: [u8; CONTROL_DATA],
}

impl Control {
    pub const LENGTH: usize = 16 + CONTROL_DATA;
    const MAGIC: u32 = 0xdead_beef;

    pub fn new(slot: u32, kind: Kind) -> Self {
        Self {
            slot,
            kind,
            data: [0; CONTROL_DATA],
        }
    }

    /// Returns `None` unless it is a control datagram of a known kind.
    pub fn parse(octets: &[u8]) -> Option<Self> {
        let octets: &[u8; Self::LENGTH] = octets.try_into().ok()?;
        if u32_at(octets, 0) != Self::MAGIC || u32_at(octets, 12) > CONTROL_DATA as u32 {
            return None;
        }
        let kind = *Kind::ALL.get(u32_at(octets, 8) as usize)?;
        Some(Self {
            slot: u32_at(octets, 4),
            kind,
            data: array_at(octets, 16),
        })
    }

    pub fn octets(&self) -> [u8; Self::LENGTH] {
        let mut octets = [0; Self::LENGTH];
        octets[..4].copy_from_slice(&Self::MAGIC.to_ne_bytes());
        octets[4..8].copy_from_slice(&self.slot.to_ne_bytes());
        octets[8..12].copy_from_slice(&(self.kind as u32).to_ne_bytes());
        // libumad2sim writes the length of the kind's data; ibsim ignores it.
        octets[12..16].copy_from_slice(&(CONTROL_DATA as u32).to_ne_bytes());
        octets[16..].copy_from_slice(&self.data);
        octets
    }
}

/// Data of Connect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientInfo {
    /// The client's own number; in the answer its slot.
    pub id: u32,
    pub qp: u32,
    /// True if requests to the node go to this client.
    pub is_sm: bool,
    /// Name of a node, empty for the server's choice. The answer names the chosen node.
    pub node: Vec<u8>,
}

impl ClientInfo {
    /// Octets of a name, including a zero at the end.
    pub const NAME: usize = 32;

    pub fn from_data(data: &[u8; CONTROL_DATA]) -> Self {
        let name = &data[12..12 + Self::NAME];
        let node = name
            .split(|octet| *octet == 0)
            .next()
            .unwrap_or_default()
            .to_vec();
        Self {
            id: u32_at(data, 0),
            qp: u32_at(data, 4),
            is_sm: u32_at(data, 8) != 0,
            node,
        }
    }

    /// Returns `None` if the name is too long.
    pub fn data(&self) -> Option<[u8; CONTROL_DATA]> {
        let mut data = [0; CONTROL_DATA];
        data[..4].copy_from_slice(&self.id.to_ne_bytes());
        data[4..8].copy_from_slice(&self.qp.to_ne_bytes());
        data[8..12].copy_from_slice(&u32::from(self.is_sm).to_ne_bytes());
        data[12..12 + Self::NAME - 1]
            .get_mut(..self.node.len())?
            .copy_from_slice(&self.node);
        Some(data)
    }
}

/// A MAD with its addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Datagram {
    pub to: Lid,
    /// 0 makes ibsim fill it in.
    pub from: Lid,
    /// At most [`LENGTH`] octets.
    pub mad: Vec<u8>,
}

impl Datagram {
    /// Two LIDs, two QPs and a status of 4 octets each, 4 octets of padding, a length of 8 octets,
    /// and the MAD.
    pub const LENGTH: usize = 32 + LENGTH;

    /// Returns `None` unless it is such a datagram. ibsim leaves too large a length in some
    /// answers; it is cut to that of a MAD.
    pub fn parse(octets: &[u8]) -> Option<Self> {
        let octets: &[u8; Self::LENGTH] = octets.try_into().ok()?;
        let length = u64::from_be_bytes(array_at(octets, 24)).min(LENGTH as u64) as usize;
        let lid = |at| Lid(u16::from_be((u32_at(octets, at) & 0xffff) as u16));
        Some(Self {
            to: lid(0),
            from: lid(4),
            mad: octets[32..32 + length].to_vec(),
        })
    }

    pub fn octets(&self) -> [u8; Self::LENGTH] {
        let mut octets = [0; Self::LENGTH];
        // 16 bits in network order, stored as a number in a 32-bit field in host order.
        octets[..4].copy_from_slice(&u32::from(self.to.0.to_be()).to_ne_bytes());
        octets[4..8].copy_from_slice(&u32::from(self.from.0.to_be()).to_ne_bytes());
        let mad = &self.mad[..self.mad.len().min(LENGTH)];
        octets[24..32].copy_from_slice(&(mad.len() as u64).to_be_bytes());
        octets[32..32 + mad.len()].copy_from_slice(mad);
        octets
    }
}

/// Data of GetVendor: vendor, device, hardware version, padding, firmware version.
pub fn vendor(vendor: u32, device: u32, hardware: u32) -> [u8; CONTROL_DATA] {
    const FIRMWARE: u64 = 1;
    let mut data = [0; CONTROL_DATA];
    data[..4].copy_from_slice(&vendor.to_ne_bytes());
    data[4..8].copy_from_slice(&device.to_ne_bytes());
    data[8..12].copy_from_slice(&hardware.to_ne_bytes());
    data[16..24].copy_from_slice(&FIRMWARE.to_ne_bytes());
    data
}

pub fn u32_at(octets: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes(array_at(octets, at))
}

pub fn array_at<const N: usize>(octets: &[u8], at: usize) -> [u8; N] {
    std::array::from_fn(|index| octets[at + index])
}

#[cfg(all(test, target_endian = "little"))]
mod tests {
    use super::*;

    /// Recorded with `strace`: smpquery under libumad2sim of ibsim 0.10, process 3839, and ibsim's
    /// answer.
    const QUESTION: &[u8; 32] =
        b"\xef\xbe\xad\xde\0\0\0\0\x01\0\0\0,\0\0\0\xff\x0e\0\0\0\0\0\0\0\0\0\0Hca1";
    const ANSWER: &[u8; 32] =
        b"\xef\xbe\xad\xde\0\0\0\0\x01\0\0\0,\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0Hca1";
    /// The data of GetVendor, recorded alike.
    const VENDOR: &[u8; 24] = b"\0\0\0\0\0\0\0\0\xa1\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0";

    fn padded(head: &[u8]) -> Vec<u8> {
        [head, &vec![0; Control::LENGTH - head.len()]].concat()
    }

    #[test]
    fn connecting_is_as_libumad2sim_and_ibsim_write_it() {
        for (octets, id) in [(QUESTION, 3839), (ANSWER, 0)] {
            let control = Control::parse(&padded(octets)).unwrap();
            assert_eq!((control.slot, control.kind), (0, Kind::Connect));
            let info = ClientInfo {
                id,
                qp: 0,
                is_sm: false,
                node: b"Hca1".to_vec(),
            };
            assert_eq!(ClientInfo::from_data(&control.data), info);
            assert_eq!(info.data(), Some(control.data));
            // All but the length field is equal.
            let written = control.octets();
            assert_eq!(
                (&written[..12], &written[16..]),
                (&octets[..12], &padded(octets)[16..])
            );
        }
        assert_eq!(vendor(0, 0, 0xa1)[..24], *VENDOR);
    }

    #[test]
    fn names_leave_room_for_the_octet_at_their_end() {
        let info = |length| ClientInfo {
            id: 1,
            qp: 0,
            is_sm: true,
            node: vec![b'n'; length],
        };
        let data = info(31).data().unwrap();
        assert_eq!(ClientInfo::from_data(&data), info(31));
        assert_eq!(info(32).data(), None);
        // A peer may write a name without the zero at its end.
        assert_eq!(ClientInfo::from_data(&[b'n'; CONTROL_DATA]).node.len(), 32);
    }

    #[test]
    fn lids_are_in_network_order_and_the_length_is_that_of_the_mad() {
        let datagram = Datagram {
            to: Lid(0x0102),
            from: Lid::PERMISSIVE,
            mad: vec![7; 200],
        };
        let octets = datagram.octets();
        assert_eq!(octets[..8], [1, 2, 0, 0, 0xff, 0xff, 0, 0]);
        assert_eq!(octets[24..33], [0, 0, 0, 0, 0, 0, 0, 200, 7]);
        assert_eq!(octets[231..233], [7, 0]);
        assert_eq!(Datagram::parse(&octets), Some(datagram));
        assert_eq!(Datagram::parse(&octets[1..]), None);
        let mut long = octets;
        long[24..32].fill(0xff);
        assert_eq!(Datagram::parse(&long).unwrap().mad.len(), LENGTH);
    }
}
