//! Content of a capture: the frames, whole and in order, as other tools read them.

use std::process::Command;

use pcap_file::DataLink;
use pcap_file::pcap::{PcapHeader, PcapPacket, PcapWriter};
use validator_core::engine::packet::{Packet, Protocol, Value};
use validator_core::engine::plan::{End, Flow, FlowIndex, Obeys, PortIndex, Rate};
use validator_core::engine::{Captured, Engine, Order};

use crate::common;
use crate::engine::bench::{Bench, flow, header, plan};

/// Sends these flows of a known number of frames one after the other, and returns what port 1
/// captured.
fn capture(flows: Vec<Flow>) -> Captured {
    let count = flows.len();
    let mut bench = Bench::new();
    bench.engine.configure(plan(Obeys::Nothing, flows)).unwrap();
    assert_eq!(bench.engine.captured(PortIndex(1)).unwrap(), None);
    bench.engine.capture(&[PortIndex(1)], true).unwrap();
    for flow in 0..count {
        bench
            .engine
            .transmit(&[FlowIndex(flow)], Order::Start)
            .unwrap();
        bench.until_done();
    }
    bench.engine.capture(&[PortIndex(1)], false).unwrap();
    bench.engine.captured(PortIndex(1)).unwrap().unwrap()
}

/// The fields of each frame, as tshark reads them; frames with a wrong checksum have it said.
fn decode(captured: &Captured, fields: &[&str]) -> Vec<Vec<String>> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("frames.pcap");
    let header = PcapHeader {
        datalink: DataLink::ETHERNET,
        ..PcapHeader::default()
    };
    let mut writer =
        PcapWriter::with_header(std::fs::File::create(&path).unwrap(), header).unwrap();
    for frame in captured.frames.iter() {
        let time = frame.at.duration_since(std::time::UNIX_EPOCH).unwrap();
        let length = frame.octets.len() as u32;
        let packet = PcapPacket::new(time, length, &frame.octets);
        writer.write_packet(&packet).unwrap();
    }
    drop(writer);
    let mut tshark = Command::new("tshark");
    tshark.arg("-r").arg(&path).args(["-T", "fields"]);
    for protocol in ["ip", "udp", "tcp"] {
        tshark.args(["-o", &format!("{protocol}.check_checksum:TRUE")]);
    }
    for field in fields {
        tshark.args(["-e", field]);
    }
    let output = tshark.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(|line| line.split('\t').map(str::to_owned).collect())
        .collect()
}

fn fixed(value: u128) -> Value {
    Value::Fixed(value)
}

#[test]
fn root_headers_are_as_asked_and_their_checksums_right() {
    let test = "root_headers_are_as_asked_and_their_checksums_right";
    if !common::need_root(test) || !common::need_tool(test, "tshark") {
        return;
    }
    let stack = |headers| Flow {
        packet: Packet {
            headers,
            ..Packet::default()
        },
        ..flow("stack", 150, Rate::FramesPerSecond(1000), End::Frames(3))
    };
    let ethernet = || {
        header(
            Protocol::Ethernet,
            &[
                ("dst", fixed(0x0200_0000_0002)),
                ("src", fixed(0x0200_0000_0001)),
            ],
        )
    };
    let v4 = || {
        header(
            Protocol::Ipv4,
            &[
                ("priority", Value::List(vec![0x28, 0x29, 0xb8])),
                ("src", fixed(0xc612_0001)),
                ("dst", fixed(0xc612_0102)),
                ("time_to_live", fixed(9)),
            ],
        )
    };
    let ports = [("src_port", fixed(50_001)), ("dst_port", fixed(50_002))];
    let vlan = header(
        Protocol::Vlan,
        &[("priority", fixed(5)), ("id", fixed(100))],
    );
    let v6 = header(
        Protocol::Ipv6,
        &[
            ("traffic_class", fixed(0x60)),
            ("flow_label", fixed(0x12345)),
            ("src", fixed(0x2001_0db8_0000_0000_0000_0000_0000_0001)),
            ("dst", fixed(0x2001_0db8_0000_0000_0000_0000_0000_0002)),
        ],
    );
    let captured = capture(vec![
        stack(vec![ethernet(), v4(), header(Protocol::Udp, &ports)]),
        stack(vec![ethernet(), vlan, v4(), header(Protocol::Tcp, &ports)]),
        stack(vec![ethernet(), v6, header(Protocol::Udp, &ports)]),
    ]);
    assert_eq!((captured.frames.len(), captured.missed), (9, 0));
    assert!(captured.frames.is_sorted_by_key(|frame| frame.at));
    assert!(
        captured
            .frames
            .iter()
            .all(|frame| frame.octets.len() == 146)
    );
    let udp = decode(
        &captured,
        &[
            "eth.dst",
            "ip.dsfield",
            "ip.dst",
            "ip.ttl",
            "ip.len",
            "ip.checksum.status",
            "udp.dstport",
            "udp.length",
            "udp.checksum.status",
            "tcp.dstport",
            "tcp.checksum.status",
            "vlan.id",
            "vlan.priority",
            "ipv6.tclass",
            "ipv6.flow",
            "ipv6.plen",
        ],
    );
    let row = |text: &str| text.split('|').map(str::to_owned).collect::<Vec<_>>();
    // Versions of tshark write labels with more or fewer zeros.
    let number = |hex: &str| u32::from_str_radix(hex.trim_start_matches("0x"), 16).ok();
    for (place, dscp) in ["0x28", "0x29", "0xb8"].into_iter().enumerate() {
        let v4 = format!("02:00:00:00:00:02|{dscp}|198.18.1.2|9");
        assert_eq!(udp[place], row(&format!("{v4}|132|1|50002|112|1|||||||")));
        assert_eq!(
            udp[3 + place],
            row(&format!("{v4}|128|1||||50002|1|100|5|||"))
        );
        let v6 = &udp[6 + place];
        assert_eq!(v6[..13], row("02:00:00:00:00:02||||||50002|92|1||||"));
        assert_eq!(
            [&v6[13], &v6[14]].map(|hex| number(hex)),
            [Some(0x60), Some(0x12345)]
        );
        assert_eq!(v6[15], "92");
    }
}

#[test]
fn root_a_capture_begins_anew_and_keeps_order_and_every_octet() {
    let test = "root_a_capture_begins_anew_and_keeps_order_and_every_octet";
    if !common::need_root(test) {
        return;
    }
    let mut walking = flow("walk", 64, Rate::FramesPerSecond(20_000), End::Frames(2000));
    walking.packet.headers[1].fields = vec![(
        "identification",
        Value::Increment {
            start: 0,
            step: 1,
            count: 65_536,
        },
    )];
    let mut bench = Bench::new();
    bench
        .engine
        .configure(plan(Obeys::Nothing, vec![walking]))
        .unwrap();
    for _ in 0..2 {
        bench.engine.capture(&[PortIndex(1)], true).unwrap();
        bench
            .engine
            .transmit(&[FlowIndex(0)], Order::Start)
            .unwrap();
        bench.until_done();
        let captured = bench.engine.captured(PortIndex(1)).unwrap().unwrap();
        assert_eq!((captured.frames.len(), captured.missed), (2000, 0));
        for (number, frame) in captured.frames.iter().enumerate() {
            assert_eq!(frame.octets.len(), 60);
            assert_eq!(frame.octets[18..20], (number as u16).to_be_bytes());
        }
    }
    assert!(bench.snapshot().ports[1].capturing);
    bench.engine.capture(&[PortIndex(1)], false).unwrap();
    assert!(!bench.snapshot().ports[1].capturing);
}
