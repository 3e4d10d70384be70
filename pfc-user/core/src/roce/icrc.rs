//! The invariant CRC (InfiniBand Architecture Specification, 7.8.1 and annex A17).

use crc32fast::Hasher;
use pfc_ebpf::wire::roce::{self, ICRC, Packet};

/// All ones in place of the local route header, which RoCEv2 does not have.
const NO_LOCAL_ROUTE: [u8; 8] = [0xff; 8];

// Offsets of the header fields that may change on the way; they count as ones.
const IPV4_TYPE_OF_SERVICE: usize = 1;
const IPV4_TIME_TO_LIVE: usize = 8;
const IPV4_CHECKSUM: usize = 10;
const IPV6_HOP_LIMIT: usize = 7;
const UDP_CHECKSUM: usize = 6;
const BTH_RESV8A: usize = 4;

/// Octets from the start of the IP header to its addresses.
const IPV4_TO_ADDRESSES: usize = 12;
const IPV6_TO_ADDRESSES: usize = 8;
/// Source and destination address of IPv6.
const IPV6_ADDRESSES: usize = 32;

/// Computes the CRC of the RoCEv2 packet in `frame`; `None` if the packet is incomplete. VLAN tags
/// and Ethernet padding do not count.
pub fn icrc(frame: &[u8]) -> Option<u32> {
    let packet = roce::parse(frame)?;
    let v6 = packet.ip.addresses.length == IPV6_ADDRESSES;
    let start = packet.ip.addresses.at
        - if v6 {
            IPV6_TO_ADDRESSES
        } else {
            IPV4_TO_ADDRESSES
        };
    let mut octets = frame[start..at(&packet)].to_vec();
    if v6 {
        // Traffic class and flow label; the version counts.
        octets[0] |= 0x0f;
        octets[1..4].fill(0xff);
        octets[IPV6_HOP_LIMIT] = 0xff;
    } else {
        octets[IPV4_TYPE_OF_SERVICE] = 0xff;
        octets[IPV4_TIME_TO_LIVE] = 0xff;
        octets[IPV4_CHECKSUM..][..2].fill(0xff);
    }
    octets[packet.ip.payload - start + UDP_CHECKSUM..][..2].fill(0xff);
    octets[packet.at - start + BTH_RESV8A] = 0xff;
    let mut hasher = Hasher::new();
    hasher.update(&NO_LOCAL_ROUTE);
    hasher.update(&octets);
    Some(hasher.finalize())
}

/// Reads the CRC of the RoCEv2 packet in `frame`; `None` if the packet is incomplete.
pub fn icrc_of(frame: &[u8]) -> Option<u32> {
    let packet = roce::parse(frame)?;
    // In the octet order of Ethernet's FCS: least significant octet first.
    frame[at(&packet)..]
        .first_chunk()
        .copied()
        .map(u32::from_le_bytes)
}

/// True if the CRC of the RoCEv2 packet in `frame` is right; `None` if the packet is incomplete.
pub fn is_intact(frame: &[u8]) -> Option<bool> {
    Some(icrc(frame)? == icrc_of(frame)?)
}

/// Returns the offset of the CRC.
fn at(packet: &Packet) -> usize {
    packet.at + packet.length - ICRC
}
