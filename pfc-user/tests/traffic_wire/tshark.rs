//! Frames of the senders, as tshark reads them.

use std::fs::File;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use pcap_file::pcap::{PcapPacket, PcapWriter};
use pfc_ebpf::stamp::Phase;
use pfc_ebpf::units::Quanta;
use validator::driver::kernel::clock;
use validator::driver::storm::{ControlSender, Storm};
use validator::driver::traffic::sendmmsg::Sendmmsg;
use validator::driver::traffic::{FlowControl, Source};
use validator_core::pacing::storm::placement::Placement;
use validator_core::plan::{StormKind, StormPlan};

use crate::common::need_tool;
use crate::traffic_wire::wire::{Capture, on_a_wire};
use crate::traffic_wire::{
    MS, STORM_SOURCE, burst, flow, line_rate, of, plan, priority, total, v4, v6,
};

/// Fields of the frames as tshark reads them, one line a frame. `None` without tshark, with `test`
/// noted as skipped.
fn tshark(test: &str, frames: &[Vec<u8>], fields: &[&str]) -> Option<Vec<String>> {
    if !need_tool(test, "tshark") {
        return None;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("frames.pcap");
    write_pcap(&path, frames);
    let fields = fields.iter().flat_map(|field| ["-e", field]);
    let output = Command::new("tshark")
        .args([
            "-o",
            "udp.check_checksum:TRUE",
            "-o",
            "ip.check_checksum:TRUE",
            "-T",
            "fields",
            "-E",
            "separator= ",
            "-r",
        ])
        .arg(&path)
        .args(fields)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    Some(
        String::from_utf8(output.stdout)
            .unwrap()
            .lines()
            .map(str::to_owned)
            .collect(),
    )
}

fn write_pcap(path: &Path, frames: &[Vec<u8>]) {
    let mut writer = PcapWriter::new(File::create(path).unwrap()).unwrap();
    for frame in frames {
        writer
            .write_packet(&PcapPacket::new(Duration::ZERO, frame.len() as u32, frame))
            .unwrap();
    }
}

#[test]
fn root_tshark_reads_the_test_frames_as_intended() {
    on_a_wire(|| {
        let flows = [
            flow(0, 46, None, 10_000_000, 1024),
            flow(1, 26, Some(6), 10_000_000, 333),
        ];
        for (addresses, dscp, checksum) in [
            (v4(), "ip.dsfield.dscp", "ip.checksum.status"),
            (v6(), "ipv6.tclass.dscp", "ipv6.version"),
        ] {
            let capture = Capture::open();
            let mut sender = Sendmmsg::open(
                &plan(&flows, addresses, clock::now()),
                FlowControl::Unaware(String::new()),
            )
            .unwrap();
            burst(&mut sender, Phase::Baseline, 100 * MS);
            let frames = capture.test_frames(total(&sender.report().unwrap()));
            let octets: Vec<_> = frames.iter().map(|frame| frame.octets.clone()).collect();
            let fields = [
                dscp,
                checksum,
                "udp.checksum.status",
                "udp.srcport",
                "udp.dstport",
                "vlan.priority",
                "frame.len",
            ];
            let Some(lines) = tshark(
                "root_tshark_reads_the_test_frames_as_intended",
                &octets,
                &fields,
            ) else {
                return;
            };
            assert_eq!(lines.len(), frames.len());
            assert!(flows.iter().all(|flow| !of(&frames, flow.id).is_empty()));
            // Status 1 is "good".
            let third = if addresses.source_ip.is_ipv4() { 1 } else { 6 };
            for (line, frame) in lines.iter().zip(&frames) {
                let expected = if frame.stamp.flow == 0 {
                    format!("46 {third} 1 49152 50000  1024")
                } else {
                    format!("26 {third} 1 49153 50000 6 333")
                };
                assert_eq!(*line, expected);
            }
        }
    });
}

#[test]
fn root_tshark_reads_the_storms_frames_as_intended() {
    on_a_wire(|| {
        let storm = |kind, quanta| StormPlan {
            kind,
            quanta: Quanta(quanta),
            interval: 2 * MS,
        };
        let storms = [
            (
                storm(StormKind::Pfc(vec![priority(3)]), 0xffff),
                "0x0101 0x0008  8191 12287 16383 65535 24575 28671 32767 36863",
            ),
            (
                storm(
                    StormKind::Pfc([0, 1, 2, 3, 4, 5, 6].map(priority).to_vec()),
                    0x1fff,
                ),
                "0x0101 0x007f  8191 8191 8191 8191 8191 8191 8191 4607",
            ),
            (
                storm(StormKind::Vector(vec![]), 0xffff),
                "0x0101 0x0000  65535 65535 65535 65535 65535 65535 65535 65535",
            ),
            (
                storm(StormKind::Vector(vec![priority(4)]), 0xffff),
                "0x0101 0x0010  65535 65535 65535 65535 65535 65535 65535 65535",
            ),
            (
                storm(StormKind::Vector((0..8).map(priority).collect()), 0),
                "0x0101 0x00ff  0 0 0 0 0 0 0 0",
            ),
            (storm(StormKind::Pause, 0xffff), "0x0001  65535        "),
        ];
        let times = (0..8).map(|class| format!("macc.cbfc.pause_time.c{class}"));
        let fields: Vec<_> = ["macc.opcode", "macc.cbfc.enbv", "macc.pause_time"]
            .map(String::from)
            .into_iter()
            .chain(times)
            .collect();
        let fields: Vec<_> = fields
            .iter()
            .map(String::as_str)
            .chain(["eth.dst", "eth.src", "frame.len"])
            .collect();
        for (plan, expected) in storms {
            let capture = Capture::open();
            let control = |capture: &Capture| {
                std::iter::from_fn(|| capture.next()).find(|frame| frame[12..14] == [0x88, 0x08])
            };
            let started = clock::now();
            let sender = ControlSender::open("a", STORM_SOURCE).unwrap();
            let storm = Storm::start_on(sender, &plan, line_rate(), Placement::Single).unwrap();
            let mut frames: Vec<_> = (0..20).map_while(|_| control(&capture)).collect();
            let report = storm.stop();
            frames.extend((frames.len() as u64..report.frames).map_while(|_| control(&capture)));
            assert_eq!((report.frames, report.errors), (frames.len() as u64, 0));
            assert!(
                std::iter::from_fn(|| capture.at_hand()).all(|frame| frame[12..14] != [0x88, 0x08])
            );
            // Never ahead of the schedule, which began after `started`.
            assert!((report.frames - 1) * plan.interval <= report.last.after - started);
            assert_eq!(report.histogram.count(), report.frames - 1);
            assert_eq!(
                report.gaps.is_empty(),
                report.max_gap <= plan.lapse(line_rate())
            );
            println!(
                "{} frames, largest gap {} us",
                report.frames,
                report.max_gap / 1000
            );
            let Some(lines) = tshark(
                "root_tshark_reads_the_storms_frames_as_intended",
                &frames,
                &fields,
            ) else {
                return;
            };
            assert_eq!(
                lines,
                vec![format!("{expected} 01:80:c2:00:00:01 02:00:00:00:00:09 60"); frames.len()]
            );
        }
    });
}
