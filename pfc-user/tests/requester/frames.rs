//! Frames compared with another implementation, scapy.

use std::fmt::Write as _;
use std::fs;
use std::io::Write;
use std::net::IpAddr;
use std::process::{Command, Stdio};

use validator::agent::protocol::OpenChannel;
use validator::dut::requester::frame::{Path, ReadResponse};
use validator::dut::requester::model::Adapter;

use crate::common::{self, PYTHON};
use crate::requester::virtual_time::{Lab, READ, adapter, settings};

/// Returns scapy's reading of `frames`.
pub fn scapy(frames: &[Vec<u8>]) -> String {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/requester/scapy_roce.py");
    let mut child = Command::new(PYTHON)
        .arg(script)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = String::new();
    for frame in frames {
        frame
            .iter()
            .for_each(|octet| write!(input, "{octet:02x}").unwrap());
        input.push('\n');
    }
    child
        .stdin
        .take()
        .unwrap()
        .write_all(input.as_bytes())
        .unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap()
}

fn addresses(v6: bool) -> (IpAddr, IpAddr) {
    if v6 {
        ("fd00::1".parse().unwrap(), "fd00::2".parse().unwrap())
    } else {
        (adapter().address, settings(0, 1).remote)
    }
}

#[test]
fn scapy_reads_the_requests_and_finds_their_icrc_right() {
    if !common::need_tool(
        "scapy_reads_the_requests_and_finds_their_icrc_right",
        "scapy",
    ) {
        return;
    }
    for v6 in [false, true] {
        let (address, remote) = addresses(v6);
        let mut lab = Lab::on(
            Adapter {
                address,
                ..adapter()
            },
            &[],
            &OpenChannel {
                remote,
                ..settings(2, 14)
            },
        );
        lab.post(READ);
        lab.run();
        let frames: Vec<Vec<u8>> = lab.sent.into_iter().map(|(_, frame)| frame).collect();
        let line = |icrc| {
            format!(
                "02:00:00:00:00:02 02:00:00:00:00:01 {address} {remote} 4791 opcode=0xc \
                 dqpn=0xabcdef psn=0xffffff ackreq=1 pkey=0xffff va=0x999000 rkey=0x12345 \
                 dlen=1024 rest=0 checksum=True icrc={icrc}\n"
            )
        };
        assert_eq!(scapy(&frames), line("True").repeat(3));
        let mut spoiled = frames[0].clone();
        *spoiled.last_mut().unwrap() ^= 0x80;
        assert_eq!(scapy(&[spoiled]), line("False"));
    }
}

#[test]
fn responses_of_scapy_are_taken_if_they_are_right() {
    if !common::need_tool("responses_of_scapy_are_taken_if_they_are_right", "scapy") {
        return;
    }
    let text = scapy(&[]);
    assert_eq!(text.lines().count(), 9);
    for line in text.lines() {
        let [name, validity, octets] = line.split(' ').collect::<Vec<_>>()[..] else {
            panic!("{line}")
        };
        let frame: Vec<u8> = (0..octets.len())
            .step_by(2)
            .map(|at| u8::from_str_radix(&octets[at..at + 2], 16).unwrap())
            .collect();
        let (address, peer) = addresses(name.starts_with("v6"));
        let Adapter { mac, peer_mac, .. } = adapter();
        let length = if name.ends_with("short") { 5 } else { 256 };
        let expected = (validity == "right").then_some(ReadResponse {
            destination: 0x11,
            psn: 7,
            length,
        });
        assert_eq!(
            Path {
                mac,
                peer_mac,
                address,
                peer
            }
            .read_response(&frame),
            expected,
            "{name}"
        );
    }
}

#[test]
fn frames_of_rdma_rxe_are_built_octet_for_octet() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/roce");
    let mut frames = 0;
    for file in fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
    {
        let name = file.file_name().unwrap().to_str().unwrap();
        let Some(v6) = name
            .strip_prefix("read-")
            .map(|rest| rest.starts_with("ipv6"))
        else {
            continue;
        };
        let (address, peer) = if v6 {
            ("2001:2:0:16::2", "2001:2:0:16::1")
        } else {
            ("198.18.16.2", "198.18.16.1")
        };
        let (address, peer) = (address.parse().unwrap(), peer.parse().unwrap());
        let path = Path {
            mac: [2, 0, 0, 0, 0x16, 2],
            peer_mac: [2, 0, 0, 0, 0x16, 1],
            address,
            peer,
        };
        let udp = if v6 { 54 } else { 34 };
        for line in fs::read_to_string(&file).unwrap().lines() {
            let frame: Vec<u8> = (0..line.len())
                .step_by(2)
                .map(|at| u8::from_str_radix(&line[at..at + 2], 16).unwrap())
                .collect();
            let [identification, port] =
                [18, udp].map(|at| u16::from_be_bytes([frame[at], frame[at + 1]]));
            let ours = path.frame(identification, port, &frame[udp + 8..frame.len() - 4]);
            assert_eq!(ours, frame, "{name}");
            frames += 1;
        }
    }
    assert_eq!(frames, 40);
}
