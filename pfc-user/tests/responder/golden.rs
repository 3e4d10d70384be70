//! READ requests of rdma_rxe: see golden/roce/README.md.

use std::fs;
use std::path::Path;

use pfc_ebpf::abi::responder::Counters;
use pfc_ebpf::wire::roce::{Bth, RC_READ_REQUEST, Reth, parse};
use validator::driver::bpf::responder::Responder;
use validator_core::roce::build::read_response;
use validator_core::roce::{icrc, icrc_of, is_intact};

use crate::common::need_root;
use crate::responder::unhex;

/// The responder's queue pair.
const QUEUE_PAIR: u32 = 0x1234;
const PATH_MTUS: [u32; 5] = [256, 512, 1024, 2048, 4096];

/// The four requests of one READ.
fn requests(family: &str, mtu: u32) -> Vec<Vec<u8>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join(format!("tests/golden/roce/read-{family}-pmtu-{mtu}.hex"));
    let text =
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let requests: Vec<_> = text.lines().map(unhex).collect();
    assert_eq!(requests.len(), 4, "{}", path.display());
    requests
}

#[test]
fn requests_of_rxe_are_read_and_intact() {
    for mtu in PATH_MTUS {
        for family in ["ipv4", "ipv6"] {
            for frame in requests(family, mtu) {
                let packet = parse(&*frame).unwrap();
                let bth = Bth {
                    opcode: RC_READ_REQUEST,
                    pad: 0,
                    version: 0,
                    partition: 0xffff,
                    destination: QUEUE_PAIR,
                    ack_request: true,
                    psn: 0x0a_bc00 + mtu,
                };
                assert_eq!(packet.bth, bth);
                assert_eq!(
                    packet.reth(&*frame),
                    Some(Reth {
                        address: 0x99_9000,
                        r_key: 0x12345,
                        length: mtu
                    })
                );
                assert_eq!(packet.at + packet.length, frame.len());
                assert_eq!(icrc(&frame), icrc_of(&frame), "{family}, path MTU {mtu}");
                let last = frame.last_chunk().copied().map(u32::from_le_bytes);
                assert_eq!(icrc(&frame), last, "{family}, path MTU {mtu}");
                let answer = read_response(&frame, 0x11, &vec![7; mtu as usize]).unwrap();
                assert_eq!(is_intact(&answer), Some(true));
            }
        }
    }
}

#[test]
fn over_ipv4_the_icrc_covers_the_identification() {
    for mtu in PATH_MTUS {
        let sums = |family| {
            requests(family, mtu)
                .iter()
                .map(|frame| icrc(frame).unwrap())
                .collect::<Vec<_>>()
        };
        let mut v4 = sums("ipv4");
        v4.sort_unstable();
        v4.dedup();
        assert_eq!(v4.len(), 4);
        assert!(sums("ipv6").windows(2).all(|pair| pair[0] == pair[1]));
    }
}

#[test]
fn root_requests_of_rxe_are_dropped_and_recorded() {
    if !need_root("root_requests_of_rxe_are_dropped_and_recorded") {
        return;
    }
    let mut responder = Responder::load().unwrap();
    responder.configure(QUEUE_PAIR).unwrap();
    let mut sent = Vec::new();
    for mtu in PATH_MTUS {
        for frame in ["ipv4", "ipv6"]
            .into_iter()
            .flat_map(|family| requests(family, mtu))
        {
            responder.test_run(&frame, 1).unwrap();
            sent.push(frame);
        }
    }
    let recorded: Vec<_> = responder
        .records()
        .unwrap()
        .into_iter()
        .map(|record| record.octets)
        .collect();
    assert_eq!(recorded, sent);
    assert_eq!(
        responder.counters().unwrap(),
        Counters {
            dropped: sent.len() as u64,
            ..Counters::default()
        }
    );
}
