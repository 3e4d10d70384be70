//! RoCEv2: InfiniBand transport headers in UDP (InfiniBand Architecture Specification, annex A17).

use super::{Octets, ethernet, ip, udp};

/// UDP destination port.
pub const UDP_PORT: u16 = 4791;
/// Opcode of an RDMA READ request on a reliable connection (9.2.1, table 38).
pub const RC_READ_REQUEST: u8 = 0x0c;
/// Opcode of a READ response of a single packet.
pub const RC_READ_RESPONSE_ONLY: u8 = 0x10;
/// Octets of the invariant CRC behind the payload.
pub const ICRC: usize = 4;

/// Base transport header, 12 octets (9.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bth {
    /// Operation.
    pub opcode: u8,
    /// Octets of padding, 0 to 3.
    pub pad: u8,
    /// Header version; 0 is the only one.
    pub version: u8,
    /// Partition key.
    pub partition: u16,
    /// Destination queue pair, 24 bits.
    pub destination: u32,
    /// An acknowledgement is asked for.
    pub ack_request: bool,
    /// Packet sequence number, 24 bits.
    pub psn: u32,
}

/// RDMA extended transport header, 16 octets (9.3.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reth {
    /// Virtual address.
    pub address: u64,
    /// R_Key.
    pub r_key: u32,
    /// Octets to read.
    pub length: u32,
}

/// A RoCEv2 packet in a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Its IP header.
    pub ip: ip::Header,
    /// Offset of the BTH in the frame.
    pub at: usize,
    /// Octets from the BTH to the end of the ICRC.
    pub length: usize,
    /// Base transport header.
    pub bth: Bth,
}

impl Bth {
    /// Octets.
    pub const LEN: usize = 12;

    /// From its octets.
    #[inline(always)]
    pub const fn from_octets(octets: [u8; Self::LEN]) -> Self {
        Self {
            opcode: octets[0],
            pad: octets[1] >> 4 & 3,
            version: octets[1] & 15,
            partition: u16::from_be_bytes([octets[2], octets[3]]),
            destination: u32::from_be_bytes([0, octets[5], octets[6], octets[7]]),
            ack_request: octets[8] & 0x80 != 0,
            psn: u32::from_be_bytes([0, octets[9], octets[10], octets[11]]),
        }
    }
}

impl Reth {
    /// Octets.
    pub const LEN: usize = 16;

    /// From its octets.
    pub const fn from_octets(octets: [u8; Self::LEN]) -> Self {
        let [a, b, c, d, e, f, g, h, key @ .., i, j, k, l] = octets;
        Self {
            address: u64::from_be_bytes([a, b, c, d, e, f, g, h]),
            r_key: u32::from_be_bytes(key),
            length: u32::from_be_bytes([i, j, k, l]),
        }
    }
}

impl Packet {
    /// Octets of the frame that the RETH is read from; `None` where the packet has no room for one.
    pub fn reth(&self, frame: &(impl Octets + ?Sized)) -> Option<Reth> {
        if self.length < Bth::LEN + Reth::LEN + ICRC {
            return None;
        }
        frame.get(self.at + Bth::LEN).map(Reth::from_octets)
    }
}

/// The RoCEv2 packet in `frame`; `None` where there is none, or not a whole one.
#[inline(always)]
pub fn parse(frame: &(impl Octets + ?Sized)) -> Option<Packet> {
    let header = ethernet::parse(frame).ok()?;
    let ip = match header.ethertype {
        ethernet::IPV4 => ip::parse_v4(frame, header.payload).ok()?,
        ethernet::IPV6 => ip::parse_v6(frame, header.payload).ok()?,
        _ => return None,
    };
    if ip.protocol != ip::UDP || ip.fragment {
        return None;
    }
    let datagram = udp::parse(frame, &ip).ok()?;
    let length = datagram.length - udp::LEN;
    if datagram.destination != UDP_PORT || length < Bth::LEN + ICRC {
        return None;
    }
    let at = ip.payload + udp::LEN;
    Some(Packet {
        ip,
        at,
        length,
        bth: Bth::from_octets(frame.get(at)?),
    })
}
