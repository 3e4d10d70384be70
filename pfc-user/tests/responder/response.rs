//! The response to a READ as scapy and tshark decode it.

use std::fs::File;
use std::process::Command;
use std::time::Duration;

use pcap_file::pcap::{PcapPacket, PcapWriter};
use serde_json::{Value, json};
use validator_core::roce::build::read_response;
use validator_core::roce::is_intact;

use crate::common::need_tool;
use crate::responder::{QUEUE_PAIR, hex, scapy};
use crate::roce_frames::{Request, shapes};

/// The DUT's queue pair.
const REQUESTER: u32 = 0x65_4321;

fn payload(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at * 5 + 1) as u8).collect()
}

/// Requests and their responses: every shape, every padding, the smallest and the largest.
fn answered() -> Vec<(Request, Vec<u8>)> {
    let mut requests = shapes(QUEUE_PAIR);
    for length in [0, 1, 2, 3, 4, 256, 4096] {
        for v6 in [false, true] {
            requests.push(Request {
                v6,
                length,
                ..Request::new(QUEUE_PAIR)
            });
        }
    }
    let answer = |request: Request| {
        let frame = read_response(
            &request.octets(),
            REQUESTER,
            &payload(request.length as usize),
        )
        .unwrap();
        (request, frame)
    };
    requests.into_iter().map(answer).collect()
}

#[test]
fn an_answer_is_intact() {
    for (request, frame) in answered() {
        assert_eq!(is_intact(&frame), Some(true), "{request:?}");
    }
}

/// The expected fields of the response to `request`, as scapy names them.
fn expected(request: &Request, icrc: &Value) -> Value {
    let padding = request.length.wrapping_neg() % 4;
    let datagram = 8 + 12 + 4 + request.length + padding + 4;
    let ip = if request.v6 {
        json!({
            "version": 6, "tc": 0, "fl": 0, "nh": 17, "hlim": 64, "plen": datagram,
            "src": "1112:1314:1516:1718:191a:1b1c:1d1e:1f20",
            "dst": "102:304:506:708:90a:b0c:d0e:f10",
        })
    } else {
        json!({
            "version": 4, "ihl": 5, "tos": 0, "ttl": 64, "proto": 17, "len": 20 + datagram,
            "frag": 0, "flags": "DF", "chksum": true,
            "src": "192.0.2.2", "dst": "192.0.2.1",
        })
    };
    let mut data = payload(request.length as usize);
    data.resize(data.len() + padding as usize, 0);
    json!({
        "src": "02:00:00:00:00:01", "dst": "02:00:00:00:00:02",
        "tags": request.tags, "ip": ip,
        "udp": {"sport": 0xc123, "dport": 4791, "len": datagram, "chksum": 0},
        "bth": {
            "opcode": 0x10, "solicited": 0, "migreq": 0, "padcount": padding, "version": 0,
            "pkey": 0xffff, "fecn": 0, "becn": 0,
            "resv6": 0, "dqpn": REQUESTER, "ackreq": 0, "resv7": 0, "psn": request.psn,
        },
        "aeth": {"syndrome": 0x1f, "msn": 1},
        "payload": hex(&data),
        "icrc": icrc, "icrc of scapy": icrc,
    })
}

#[test]
fn scapy_finds_in_an_answer_what_was_put_there() {
    if !need_tool("scapy_finds_in_an_answer_what_was_put_there", "scapy") {
        return;
    }
    let answered = answered();
    let input = answered
        .iter()
        .map(|(_, frame)| hex(frame) + "\n")
        .collect();
    let output = scapy::run(&["read"], input);
    assert_eq!(output.lines().count(), answered.len());
    for ((request, frame), line) in answered.iter().zip(output.lines()) {
        let found: Value = serde_json::from_str(line).unwrap();
        let icrc = json!(hex(&frame[frame.len() - 4..]));
        assert_eq!(found, expected(request, &icrc), "{request:?}");
    }
}

#[test]
fn tshark_reads_an_answer_without_complaint() {
    if !need_tool("tshark_reads_an_answer_without_complaint", "tshark") {
        return;
    }
    let answered = answered();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("answers.pcap");
    let mut file = PcapWriter::new(File::create(&path).unwrap()).unwrap();
    for (_, frame) in &answered {
        file.write_packet(&PcapPacket::new(Duration::ZERO, frame.len() as u32, frame))
            .unwrap();
    }
    drop(file);
    let mut tshark = Command::new("tshark");
    // RFC 6935 allows a checksum of zero over IPv6 for tunnels.
    tshark.arg("-r").arg(&path).args([
        "-o",
        "ip.check_checksum:TRUE",
        "-o",
        "udp.ignore_ipv6_zero_checksum:TRUE",
    ]);
    tshark.args(["-T", "fields", "-E", "separator=,", "-E", "occurrence=l"]);
    for field in [
        "bth.opcode",
        "bth.destqp",
        "bth.psn",
        "bth.padcnt",
        "aeth.syndrome.credit_count",
        "aeth.msn",
    ] {
        tshark.args(["-e", &format!("infiniband.{field}")]);
    }
    tshark.args([
        "-e",
        "ip.checksum.status",
        "-e",
        "_ws.malformed",
        "-e",
        "_ws.expert.message",
    ]);
    let output = tshark.output().unwrap();
    let (stdout, stderr) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(output.status.success(), "{stderr}");
    assert_eq!(stdout.lines().count(), answered.len());
    for ((request, _), line) in answered.iter().zip(stdout.lines()) {
        let padding = request.length.wrapping_neg() % 4;
        let checksum = if request.v6 { "" } else { "1" };
        assert_eq!(
            line,
            format!(
                "16,0x{REQUESTER:06x},{},{padding},31,1,{checksum},,",
                request.psn
            ),
            "{request:?}"
        );
    }
}

#[test]
fn what_cannot_be_answered_is_refused() {
    let request = Request::new(QUEUE_PAIR);
    let long = Request {
        length: 4097,
        ..request.clone()
    };
    let opcode = Request {
        opcode: 0x0a,
        ..request.clone()
    };
    let port = Request {
        port: 4790,
        ..request.clone()
    };
    for (refused, queue_pair, length) in [
        (&request, REQUESTER, 1023),
        (&long, REQUESTER, 4097),
        (&request, 1 << 24, 1024),
        (&opcode, REQUESTER, 1024),
        (&port, REQUESTER, 1024),
    ] {
        let answer = read_response(&refused.octets(), queue_pair, &payload(length));
        assert_eq!(answer, None, "{refused:?}");
    }
    let mut short = request.octets();
    short[38..40].copy_from_slice(&[0, 8 + 12 + 4]);
    assert_eq!(read_response(&short, REQUESTER, &[]), None, "no RETH");
}

#[test]
fn the_requesters_state_of_migration_and_its_marks_are_kept() {
    let mut request = Request {
        v6: true,
        ..Request::new(QUEUE_PAIR)
    }
    .octets();
    // Traffic class 0x68 and a flow label; migrated.
    request[14..18].copy_from_slice(&[0x66, 0x81, 0x23, 0x45]);
    request[63] |= 0x40;
    let answer = read_response(&request, REQUESTER, &payload(1024)).unwrap();
    assert_eq!(answer[14..18], [0x66, 0x80, 0, 0]);
    assert_eq!(answer[63], 0x40);
}
