//! Offending frames in captures.

use std::path::Path;
use std::process::Command;

use validator::report;
use validator_core::verdict::Exit;

use super::samples::evidence;
use crate::common;

#[test]
fn offending_frames_are_captured_in_order_with_port_time_and_reason() {
    use pcap_file::pcapng::{Block, PcapNgReader};

    let evidence = evidence();
    let captures = report::pcapng::captures(&evidence);
    assert_eq!(
        captures
            .iter()
            .map(|(name, _)| name.as_str())
            .collect::<Vec<_>>(),
        ["pfc.x-lossless-3+4-storm-on-3.pcapng"]
    );
    let mut out = Vec::new();
    const BOOT: u64 = 1_800_000_000_000_000_000;
    report::pcapng::write(&mut out, captures[0].1, BOOT).unwrap();
    let mut reader = PcapNgReader::new(&out[..]).unwrap();
    let mut frames = Vec::new();
    while let Some(block) = reader.next_block() {
        if let Block::EnhancedPacket(packet) = block.unwrap() {
            frames.push((
                packet.interface_id,
                packet.timestamp.as_nanos() - u128::from(BOOT),
                packet.data.len(),
                packet.original_len,
            ));
        }
    }
    assert_eq!(
        frames,
        [(1, 5_000_000_122, 60, 60), (0, 5_000_000_123, 60, 60)]
    );
}

#[test]
fn tshark_reads_the_capture() {
    if !common::need_tool("tshark_reads_the_capture", "tshark") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    report::write(dir.path(), &evidence(), &[], Exit::Undecided).unwrap();
    let capture = dir
        .path()
        .join("captures/pfc.x-lossless-3+4-storm-on-3.pcapng");
    let fields = [
        "frame.interface_name",
        "frame.time_epoch",
        "macc.opcode",
        "frame.comment",
        "_ws.malformed",
    ];
    let output = tshark(&capture, &fields);
    let forwarded = "forwarded: a PAUSE or PFC frame of the tester's own";
    assert_eq!(
        output,
        format!("rx|5.000000122|0x0001|{forwarded}|\ntx|5.000000123|0x0101|{forwarded}|\n")
    );
}

fn tshark(capture: &Path, fields: &[&str]) -> String {
    let mut command = Command::new("tshark");
    command
        .arg("-r")
        .arg(capture)
        .args(["-T", "fields", "-E", "separator=|"]);
    for field in fields {
        command.args(["-e", field]);
    }
    let output = command.output().unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}
