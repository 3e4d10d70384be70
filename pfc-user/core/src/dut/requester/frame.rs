//! RoCEv2 frames as an adapter builds and takes them. On purpose nothing of the tester's own codec
//! is used here: were the two the same code, an error in it would not be seen.

use std::net::IpAddr;

/// Opcodes of a reliable connection (9.2.1, table 38).
pub const RDMA_WRITE_ONLY: u8 = 0x0a;
/// RDMA READ Request.
pub const RDMA_READ_REQUEST: u8 = 0x0c;
/// RDMA READ Response Only.
pub const RDMA_READ_RESPONSE_ONLY: u8 = 0x10;

const ROCE_V2: u16 = 4791;
const ETHERNET: usize = 14;
const ETHERTYPE_IPV4: u16 = 0x0800;
const ETHERTYPE_IPV6: u16 = 0x86dd;
const IPV4: usize = 20;
const IPV6: usize = 40;
const UDP: usize = 8;
const PROTOCOL_UDP: u8 = 17;
const TIME_TO_LIVE: u8 = 64;
const BTH: usize = 12;
const AETH: usize = 4;
const ICRC: usize = 4;
/// The partition that every port is a full member of (10.9).
const DEFAULT_PARTITION: u16 = 0xffff;
const ACK_REQUEST: u8 = 0x80;
/// A port without Automatic Path Migration is always in the state Migrated (17.2.8).
const MIGRATED: u8 = 0x40;
/// Queue pair numbers and PSNs have 24 bits.
pub const MASK: u32 = 0xff_ffff;

/// The two ends of a path, from the adapter's point of view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Path {
    /// The adapter's own MAC address.
    pub mac: [u8; 6],
    /// MAC address of the other end, or of the router to it.
    pub peer_mac: [u8; 6],
    /// The adapter's own IP address.
    pub address: IpAddr,
    /// IP address of the other end, of the same version.
    pub peer: IpAddr,
}

/// A request with an RETH and no payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Opcode.
    pub opcode: u8,
    /// Queue pair of the other end.
    pub destination: u32,
    /// PSN.
    pub psn: u32,
    /// Virtual address.
    pub address: u64,
    /// R_Key.
    pub r_key: u32,
    /// Octets.
    pub length: u32,
}

/// A READ response of one packet, valid in all but what is compared with the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadResponse {
    /// Queue pair that it is for.
    pub destination: u32,
    /// PSN.
    pub psn: u32,
    /// Octets of payload.
    pub length: usize,
}

impl Path {
    /// Returns the same path from its other end.
    pub const fn reversed(&self) -> Self {
        Self {
            mac: self.peer_mac,
            peer_mac: self.mac,
            address: self.peer,
            peer: self.address,
        }
    }

    /// A frame with these transport headers and payload, and the ICRC behind them. `identification`
    /// is that of IPv4.
    ///
    /// # Panics
    /// If the addresses are of different IP versions.
    pub fn frame(&self, identification: u16, source_port: u16, transport: &[u8]) -> Vec<u8> {
        let datagram = (UDP + transport.len() + ICRC) as u16;
        let mut frame = [self.peer_mac, self.mac].concat();
        match (self.address, self.peer) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                frame.extend(ETHERTYPE_IPV4.to_be_bytes());
                frame.extend([0x45, 0]);
                frame.extend((IPV4 as u16 + datagram).to_be_bytes());
                frame.extend(identification.to_be_bytes());
                // Don't Fragment.
                frame.extend([0x40, 0, TIME_TO_LIVE, PROTOCOL_UDP, 0, 0]);
                frame.extend(source.octets());
                frame.extend(destination.octets());
                let checksum = !sum(&frame[ETHERNET..]);
                frame[ETHERNET + 10..ETHERNET + 12].copy_from_slice(&checksum.to_be_bytes());
            }
            (IpAddr::V6(source), IpAddr::V6(destination)) => {
                frame.extend(ETHERTYPE_IPV6.to_be_bytes());
                frame.extend([0x60, 0, 0, 0]);
                frame.extend(datagram.to_be_bytes());
                frame.extend([PROTOCOL_UDP, TIME_TO_LIVE]);
                frame.extend(source.octets());
                frame.extend(destination.octets());
            }
            (own, peer) => panic!("{own} and {peer} are addresses of different versions"),
        }
        for word in [source_port, ROCE_V2, datagram, 0] {
            frame.extend(word.to_be_bytes());
        }
        frame.extend_from_slice(transport);
        let icrc = icrc(&frame[ETHERNET..]);
        frame.extend(icrc.to_le_bytes());
        frame
    }

    /// The READ response in `frame`; `None` where there is none, or not one for this end of the
    /// path.
    pub fn read_response(&self, frame: &[u8]) -> Option<ReadResponse> {
        let (ethernet, packet) = frame.split_at_checked(ETHERNET)?;
        if ethernet[..6] != self.mac {
            return None;
        }
        let ethertype = u16::from_be_bytes([ethernet[12], ethernet[13]]);
        let packet = self.ip_packet(ethertype, packet)?;
        let udp = packet.get(ip_header(packet)..)?;
        let (header, transport) = udp.split_at_checked(UDP)?;
        let [port, length] = [2, 4].map(|at| u16::from_be_bytes([header[at], header[at + 1]]));
        if port != ROCE_V2 || usize::from(length) != udp.len() {
            return None;
        }
        let (covered, found) = packet.split_at_checked(packet.len().checked_sub(ICRC)?)?;
        if icrc(covered).to_le_bytes() != found {
            return None;
        }
        ReadResponse::read(transport)
    }

    /// The IP packet from the peer to this end, at the length that its header says.
    fn ip_packet<'a>(&self, ethertype: u16, packet: &'a [u8]) -> Option<&'a [u8]> {
        match (ethertype, self.address, self.peer) {
            (ETHERTYPE_IPV4, IpAddr::V4(own), IpAddr::V4(peer)) => {
                let header = packet.first_chunk::<IPV4>()?;
                // RoCEv2 has no options and no fragments; an IP layer discards a wrong checksum.
                let plain = header[0] == 0x45
                    && header[6] & 0x3f == 0
                    && header[7] == 0
                    && header[9] == PROTOCOL_UDP
                    && sum(header) == 0xffff;
                let ours = header[12..16] == peer.octets() && header[16..] == own.octets();
                let length = usize::from(u16::from_be_bytes([header[2], header[3]]));
                (plain && ours).then(|| packet.get(..length))?
            }
            (ETHERTYPE_IPV6, IpAddr::V6(own), IpAddr::V6(peer)) => {
                let header = packet.first_chunk::<IPV6>()?;
                let plain = header[0] >> 4 == 6 && header[6] == PROTOCOL_UDP;
                let ours = header[8..24] == peer.octets() && header[24..] == own.octets();
                let payload = usize::from(u16::from_be_bytes([header[4], header[5]]));
                (plain && ours).then(|| packet.get(..IPV6 + payload))?
            }
            _ => None,
        }
    }
}

impl ReadResponse {
    /// Reads BTH, AETH and payload; `None` for anything but an RDMA READ response only with an ACK.
    fn read(transport: &[u8]) -> Option<Self> {
        let payload = transport.len().checked_sub(BTH + AETH + ICRC)?;
        let pad = usize::from(transport[1] >> 4 & 3);
        let version = transport[1] & 15;
        // Bit 15 tells a full member; the rest is the key (10.9).
        let partition = u16::from_be_bytes([transport[2], transport[3]]) | 0x8000;
        // Bits 6:5 of the syndrome: 0 is ACK (9.3.5).
        let ack = transport[BTH] & 0xe0 == 0;
        let wanted = transport[0] == RDMA_READ_RESPONSE_ONLY
            && version == 0
            && partition == DEFAULT_PARTITION
            && ack;
        let number =
            |at| u32::from_be_bytes([0, transport[at], transport[at + 1], transport[at + 2]]);
        let response = Self {
            destination: number(5),
            psn: number(9),
            length: payload.checked_sub(pad)?,
        };
        wanted.then_some(response)
    }
}

impl Request {
    /// BTH and RETH.
    pub fn transport(&self) -> Vec<u8> {
        let mut octets = vec![self.opcode, MIGRATED];
        octets.extend(DEFAULT_PARTITION.to_be_bytes());
        octets.extend((self.destination & MASK).to_be_bytes());
        octets.extend((u32::from(ACK_REQUEST) << 24 | self.psn & MASK).to_be_bytes());
        octets.extend(self.address.to_be_bytes());
        octets.extend(self.r_key.to_be_bytes());
        octets.extend(self.length.to_be_bytes());
        octets
    }
}

/// Octets of an IP header without options or extensions.
const fn ip_header(packet: &[u8]) -> usize {
    if packet[0] >> 4 == 4 { IPV4 } else { IPV6 }
}

/// The invariant CRC of an IP packet that ends before it (annex A17): Ethernet's CRC-32, over eight
/// octets of ones in place of the LRH, then the packet with ones in the fields that change on the
/// way.
fn icrc(packet: &[u8]) -> u32 {
    let udp = ip_header(packet);
    let (headers, rest) = packet.split_at(udp + UDP + BTH);
    let mut headers = headers.to_vec();
    if udp == IPV4 {
        // Type of Service, Time to Live, header checksum.
        for at in [1, 8, 10, 11] {
            headers[at] = 0xff;
        }
    } else {
        // Traffic Class, Flow Label, Hop Limit.
        headers[0] |= 0x0f;
        for at in [1, 2, 3, 7] {
            headers[at] = 0xff;
        }
    }
    // The UDP checksum, and what congestion notification changes in the BTH.
    for at in [udp + 6, udp + 7, udp + UDP + 4] {
        headers[at] = 0xff;
    }
    let mut crc = crc32fast::Hasher::new();
    for part in [&[0xff; 8], &headers[..], rest] {
        crc.update(part);
    }
    crc.finalize()
}

/// The ones' complement sum of 16-bit words (RFC 1071).
fn sum(words: &[u8]) -> u16 {
    let sum: u32 = words
        .chunks_exact(2)
        .map(|word| u32::from(u16::from_be_bytes([word[0], word[1]])))
        .sum();
    let sum = (sum & 0xffff) + (sum >> 16);
    ((sum & 0xffff) + (sum >> 16)) as u16
}
