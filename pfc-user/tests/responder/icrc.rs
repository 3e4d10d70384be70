//! The invariant CRC compared with scapy's, and bit by bit.

use pfc_ebpf::wire::{Octets, ethernet, roce};
use validator_core::roce::{icrc, icrc_of, is_intact};

use crate::common::need_tool;
use crate::responder::{QUEUE_PAIR, scapy, unhex};
use crate::roce_frames::{Request, shapes};

#[test]
fn frames_of_scapy_have_the_icrc_that_we_make() {
    if !need_tool("frames_of_scapy_have_the_icrc_that_we_make", "scapy") {
        return;
    }
    const COUNT: usize = 300;
    let output = scapy::run(&["make", &COUNT.to_string()], String::new());
    let (mut v4, mut v6) = (0, 0);
    for line in output.lines() {
        let (frame, expected) = line.split_once(' ').unwrap();
        let frame = unhex(frame);
        let expected = u32::from_le_bytes(unhex(expected).try_into().unwrap());
        assert_eq!(icrc_of(&frame), Some(expected), "{line}");
        assert_eq!(icrc(&frame), Some(expected), "{line}");
        assert_eq!(is_intact(&frame), Some(true));
        match ethernet::parse(&*frame).unwrap().ethertype {
            ethernet::IPV4 => v4 += 1,
            _ => v6 += 1,
        }
    }
    assert_eq!(v4 + v6, COUNT);
    assert!(
        v4 > COUNT / 4 && v6 > COUNT / 4,
        "{v4} of IPv4, {v6} of IPv6"
    );
}

/// A frame with a computed ICRC.
fn intact(request: &Request) -> Vec<u8> {
    let mut frame = request.octets();
    let icrc = icrc(&frame).unwrap();
    let at = frame.len() - 4;
    frame[at..].copy_from_slice(&icrc.to_le_bytes());
    assert_eq!(is_intact(&frame), Some(true));
    frame
}

/// Recomputes the checksum, as a router does after changing the header.
fn with_checksum(mut frame: Vec<u8>, ip: usize) -> Vec<u8> {
    let header = (frame[ip] & 15) as usize * 4;
    frame[ip + 10..][..2].fill(0);
    if let Some(sum) = frame[..].sum(ip, header) {
        frame[ip + 10..][..2].copy_from_slice(&(!sum).to_be_bytes());
    }
    frame
}

/// Octets of the headers at `ip` and `bth` that may change on the way, with the bits that may.
fn variant(v6: bool, ip: usize, bth: usize) -> Vec<(usize, u8)> {
    let mut octets = if v6 {
        vec![
            (ip, 0x0f),
            (ip + 1, 0xff),
            (ip + 2, 0xff),
            (ip + 3, 0xff),
            (ip + 7, 0xff),
        ]
    } else {
        // IPv4's checksum changes with the others.
        vec![(ip + 1, 0xff), (ip + 8, 0xff)]
    };
    octets.extend([(bth - 2, 0xff), (bth - 1, 0xff), (bth + 4, 0xff)]);
    octets
}

#[test]
fn each_bit_counts_unless_it_may_change_on_the_way() {
    for shape in shapes(QUEUE_PAIR) {
        let frame = intact(&Request {
            payload: vec![0x5a; 8],
            ..shape.clone()
        });
        let ip = ethernet::parse(&*frame).unwrap().payload;
        let bth = roce::parse(&*frame).unwrap().at;
        let variant = variant(shape.v6, ip, bth);
        for bit in 0..frame.len() * 8 {
            let (octet, mask) = (bit / 8, 1 << (bit % 8));
            let mut changed = frame.clone();
            changed[octet] ^= mask;
            if !shape.v6 && octet >= ip && !(ip + 10..ip + 12).contains(&octet) {
                changed = with_checksum(changed, ip);
            }
            let invariant = octet >= ip
                && !variant
                    .iter()
                    .any(|(at, bits)| *at == octet && bits & mask != 0);
            let found = is_intact(&changed);
            if invariant {
                // A different length, version, protocol or IP checksum makes it no packet.
                assert_ne!(
                    found,
                    Some(true),
                    "octet {octet} bit {mask:#04x} of {shape:?}"
                );
            } else if octet >= ip {
                assert_eq!(
                    found,
                    Some(true),
                    "octet {octet} bit {mask:#04x} of {shape:?}"
                );
            }
        }
    }
}

#[test]
fn addresses_and_tags_of_ethernet_and_its_padding_are_no_part() {
    let frame = intact(&Request {
        tags: vec![(0x8100, 5)],
        ..Request::new(QUEUE_PAIR)
    });
    let mut other = frame.clone();
    other[..12].fill(0xab);
    other[14..16].fill(0x12);
    other.extend([0xff; 7]);
    assert_eq!(
        (icrc(&other), is_intact(&other)),
        (icrc(&frame), Some(true))
    );
}

#[test]
fn where_there_is_no_packet_there_is_no_icrc() {
    let frame = intact(&Request::new(QUEUE_PAIR));
    for frame in [&frame[..frame.len() - 1], &frame[..20], &[]] {
        assert_eq!(
            (icrc(frame), icrc_of(frame), is_intact(frame)),
            (None, None, None)
        );
    }
}
