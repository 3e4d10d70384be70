//! The response to a READ request, for the positive control of the RC cases.

use pfc_ebpf::wire::roce::{self, Bth, ICRC, Packet, RC_READ_REQUEST, RC_READ_RESPONSE_ONLY};
use pfc_ebpf::wire::{Octets, ip, udp};

use super::icrc;

/// Most octets of payload in a packet: the largest path MTU.
pub const MAX_PAYLOAD: usize = 4096;
/// Syndrome of an ACK (9.7.5.1.1) without end-to-end credits.
const ACK_NO_CREDITS: u8 = 0x1f;
/// The responder's message sequence number (9.7.7): the request is the first that it completes.
const MESSAGES: u32 = 1;
/// Octets of the ACK extended transport header.
pub(crate) const AETH: usize = 4;
/// Bit of the BTH with the sender's state of path migration.
const MIGRATED: u8 = 0x40;
/// Hops.
const TIME_TO_LIVE: u8 = 64;
/// Do not fragment.
const DONT_FRAGMENT: u16 = 0x4000;

/// Builds the frame that answers the READ request in `request` with `payload`. The requester's
/// queue pair is `queue_pair`; a request does not carry it. `None` if the frame holds no whole
/// RoCEv2 READ request for as many octets, which one packet can carry, or if the queue pair has no
/// number of 24 bits.
pub fn read_response(request: &[u8], queue_pair: u32, payload: &[u8]) -> Option<Vec<u8>> {
    let packet = roce::parse(request)?;
    let asked = packet.reth(request)?.length as usize;
    let is_answerable = packet.bth.opcode == RC_READ_REQUEST
        && asked == payload.len()
        && asked <= MAX_PAYLOAD
        && queue_pair < 1 << 24;
    if !is_answerable {
        return None;
    }
    let transport = transport(request, &packet, queue_pair, payload);
    let datagram = udp::LEN + transport.len() + ICRC;
    let mut frame = ethernet(request);
    frame.extend(internet(request, &packet.ip, datagram as u16));
    // The source port distinguishes flows in the network (A17.9.2), so both directions may use the
    // same one. Adapters send a UDP checksum of zero, over IPv6 too (RFC 6935): the ICRC covers
    // more.
    let source = &request[packet.ip.payload..][..2];
    frame.extend(
        [
            source,
            &roce::UDP_PORT.to_be_bytes(),
            &(datagram as u16).to_be_bytes(),
            &[0; 2],
        ]
        .concat(),
    );
    frame.extend(transport);
    frame.extend([0; ICRC]);
    let sum = icrc(&frame).expect("a whole RoCEv2 packet was just made");
    let at = frame.len() - ICRC;
    frame[at..].copy_from_slice(&sum.to_le_bytes());
    Some(frame)
}

/// Swaps the addresses; tags and EtherType are kept.
fn ethernet(request: &[u8]) -> Vec<u8> {
    let payload = pfc_ebpf::wire::ethernet::parse(request).map_or(0, |header| header.payload);
    [&request[6..12], &request[..6], &request[12..payload]].concat()
}

/// Makes an IP header of `length` octets with swapped addresses, no options, and the request's
/// traffic class.
fn internet(request: &[u8], ip: &ip::Header, length: u16) -> Vec<u8> {
    let (source, destination) =
        request[ip.addresses.at..][..ip.addresses.length].split_at(ip.addresses.length / 2);
    if ip.addresses.length == 32 {
        let class = &request[ip.addresses.at - 8..][..2];
        let mut header = vec![class[0], class[1] & 0xf0, 0, 0];
        header.extend(length.to_be_bytes());
        header.extend([ip::UDP, TIME_TO_LIVE]);
        header.extend([destination, source].concat());
        return header;
    }
    let class = request[ip.addresses.at - 11];
    let mut header = vec![0x45, class];
    header.extend((20 + length).to_be_bytes());
    header.extend([0; 2]);
    header.extend(DONT_FRAGMENT.to_be_bytes());
    header.extend([TIME_TO_LIVE, ip::UDP, 0, 0]);
    header.extend([destination, source].concat());
    let sum = header[..]
        .sum(0, header.len())
        .expect("within its own length");
    header[10..12].copy_from_slice(&(!sum).to_be_bytes());
    header
}

/// Makes BTH, AETH and the payload, padded to a multiple of four octets.
fn transport(request: &[u8], packet: &Packet, queue_pair: u32, payload: &[u8]) -> Vec<u8> {
    let bth = &packet.bth;
    let padding = payload.len().wrapping_neg() % 4;
    // The requester's own state of migration: another one would ask it to migrate.
    let migrated = request[packet.at + 1] & MIGRATED;
    let mut octets = Vec::with_capacity(Bth::LEN + AETH + payload.len() + padding);
    octets.extend([RC_READ_RESPONSE_ONLY, migrated | (padding as u8) << 4]);
    octets.extend(bth.partition.to_be_bytes());
    octets.extend(queue_pair.to_be_bytes());
    octets.extend(bth.psn.to_be_bytes());
    octets.extend((u32::from(ACK_NO_CREDITS) << 24 | MESSAGES).to_be_bytes());
    octets.extend(payload);
    octets.extend(&[0; 4][..padding]);
    octets
}
