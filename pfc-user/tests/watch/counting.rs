//! On the wire: every frame is counted, and the host goes on receiving what it received before.

use std::fs::File;
use std::net::UdpSocket;
use std::thread;

use pcap_file::pcapng::{Block, PcapNgReader};
use pfc_ebpf::abi::Trust;
use pfc_ebpf::stamp::{self, Phase, Stamp};
use pfc_ebpf::wire::mac_control::MacControl;
use validator::driver::bpf::{AccountProgram, Sizes, XdpMode};
use validator::driver::kernel::link::{drop_rises, statistics};
use validator::driver::kernel::packet::{BATCH, PacketSocket};

use crate::common::need_root;
use crate::frames::TestFrame;
use crate::watch::lab::{BEYOND, Lab, MACS, PATIENCE, TESTER, with_room};
use crate::watch::settings;

/// A test frame with that DSCP and these tags.
pub fn tagged(dscp: u8, tags: &[(u16, u16)]) -> Vec<u8> {
    let stamp = Stamp {
        run: 1,
        flow: 0,
        phase: Phase::Baseline,
        sequence: 0,
        time: 0,
    };
    let frame = TestFrame {
        traffic_class: dscp << 2,
        tags: tags.to_vec(),
        ..TestFrame::new(stamp)
    };
    frame.octets()
}

/// A UDP frame to the tester's address, with that DSCP.
pub fn datagram(dscp: u8, tags: &[(u16, u16)]) -> Vec<u8> {
    let mut frame = tagged(dscp, tags);
    frame[..6].copy_from_slice(&MACS[0]);
    let ip = 14 + 4 * tags.len();
    // Addressed to t0, on a port other than that of test frames. The UDP checksum is left out, and
    // that of IP is computed anew.
    frame[ip + 12..ip + 20].copy_from_slice(&[192, 0, 2, 2, 192, 0, 2, 1]);
    frame[ip + 22..ip + 24].copy_from_slice(&9u16.to_be_bytes());
    frame[ip + 26..ip + 28].fill(0);
    frame[ip + 10..ip + 12].fill(0);
    let sum: u32 = frame[ip..ip + 20]
        .chunks(2)
        .map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])))
        .sum();
    let sum = (sum & 0xffff) + (sum >> 16);
    frame[ip + 10..ip + 12]
        .copy_from_slice(&(!(((sum & 0xffff) + (sum >> 16)) as u16)).to_be_bytes());
    frame
}

/// Sends `count` copies as fast as the port takes them; those that it refuses are sent again.
fn flood(socket: &PacketSocket, frame: &[u8], count: usize) {
    let mut left = 0;
    while left < count {
        left += socket
            .send_batch(std::iter::repeat_n(frame, BATCH.min(count - left)))
            .unwrap()
            .left;
    }
}

#[test]
fn root_at_the_highest_rate_every_frame_that_left_is_counted() {
    const NAME: &str = "root_at_the_highest_rate_every_frame_that_left_is_counted";
    const COUNT: usize = 300_000;
    /// Ethernet, IPv4, UDP and a stamp.
    const FRAME: u64 = (14 + 20 + 8 + stamp::LEN) as u64;
    if !need_root(NAME) {
        return;
    }
    for mode in ["driver", "skb", "tc"] {
        let lab = Lab::new();
        let before = statistics(&lab.tester, "t0").unwrap();
        let running = lab.watch(&format!(
            "t0 --interval 50ms --dscp-map dscp-mod-8 --attach {mode}"
        ));
        flood(&lab.device_port(), &datagram(3, &[]), COUNT);
        let drops = || {
            drop_rises("", &before, &statistics(&lab.tester, "t0").unwrap())
                .iter()
                .map(|drop| drop.rise)
                .sum::<u64>()
        };
        let mut running = running;
        let counted = |object: &serde_json::Value| object["total"]["frames"].as_u64().unwrap_or(0);
        running.wait_for("all frames", |object| {
            counted(object) + drops() >= COUNT as u64
        });
        let total = running.summary("t0");
        assert_eq!(
            total["frames"].as_u64().unwrap() + drops(),
            COUNT as u64,
            "{mode}: {total}"
        );
        assert_eq!(total["priority_frames"]["3"], total["frames"]);
        assert_eq!(
            total["dscp_bytes"]["3"].as_u64().unwrap(),
            total["frames"].as_u64().unwrap() * FRAME
        );
    }
}

#[test]
fn root_the_host_receives_all_that_it_would_without() {
    const COUNT: usize = 50_000;
    if !need_root("root_the_host_receives_all_that_it_would_without") {
        return;
    }
    for mode in ["driver", "skb", "tc"] {
        let lab = Lab::new();
        let socket = lab
            .tester
            .run(|| UdpSocket::bind((TESTER, 9)))
            .unwrap()
            .unwrap();
        with_room(&socket);
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        let running = lab.watch(&format!("t0 --attach {mode}"));
        let sender = lab.device_port();
        thread::scope(|scope| {
            scope.spawn(|| flood(&sender, &datagram(46, &[]), COUNT));
            let mut datagram = [0; 64];
            for number in 0..COUNT {
                assert_eq!(
                    socket
                        .recv(&mut datagram)
                        .unwrap_or_else(|error| panic!("datagram {number}: {error}")),
                    stamp::LEN,
                    "untouched"
                );
            }
        });
        assert_eq!(running.summary("t0")["dscp_frames"]["46"], COUNT);
    }
}

#[test]
fn root_behind_another_program_it_counts_at_tcx_and_says_what_it_does_not_see() {
    if !need_root("root_behind_another_program_it_counts_at_tcx_and_says_what_it_does_not_see") {
        return;
    }
    let lab = Lab::new();
    let sizes = Sizes {
        flows: 1,
        windows: 1,
    };
    let mut account = lab
        .tester
        .run(|| AccountProgram::attach("t0", XdpMode::Driver, sizes))
        .unwrap()
        .unwrap();
    let config = pfc_ebpf::abi::account::Config {
        window: 1,
        windows: 1,
        trust: Trust::Dscp as u8,
        line_rate: 1_000_000_000,
        verify_every: 1,
        dscp_to_priority: settings(Trust::Dscp)
            .dscp_map
            .map(|priority| priority.get()),
        ..pfc_ebpf::abi::account::Config::default()
    };
    account.configure(&config, &[]).unwrap();
    let mut running = lab.watch_from("t0 --interval 50ms --trust pcp", "occupied", |event| {
        let message = event["message"].as_str().unwrap();
        assert!(message.contains("`account` (id "), "{message}");
        assert!(
            message.contains("Not seen: frames that it drops"),
            "{message}"
        );
    });
    let sender = lab.device_port();
    let tagged = datagram(8, &[(0x88a8, 5 << 13 | 7), (0x8100, 2 << 13 | 8)]);
    for frame in [
        datagram(8, &[]),
        datagram(8, &[(0x8100, 5 << 13 | 7)]),
        tagged.clone(),
    ] {
        for _ in 0..100 {
            sender.send(&frame).unwrap();
        }
    }
    // That the program drops.
    sender
        .send(&MacControl::Pause { quanta: 5 }.emit([2; 6]))
        .unwrap();
    running.wait_for("all frames", |object| {
        object["total"]["frames"].as_u64() >= Some(300)
    });
    let total = running.summary("t0");
    assert_eq!(
        (&total["frames"], &total["pause_xoff_frames"]),
        (&300.into(), &0.into()),
        "{total}"
    );
    let octets = 3 * datagram(8, &[]).len() + 4 + 8;
    assert_eq!(
        total["bytes"],
        100 * octets,
        "tags beside the frame are octets of it"
    );
    assert_eq!(
        (&total["pcp_frames"]["5"], &total["double_tagged_frames"]),
        (&200.into(), &100.into()),
        "{total}"
    );
    assert_eq!(
        (&total["priority_frames"]["5"], &total["dscp_frames"]["8"]),
        (&200.into(), &300.into())
    );
    assert_eq!(
        account.port().unwrap().frames,
        301,
        "the other program sees what it saw"
    );
}

#[test]
fn root_pause_frames_are_captured_as_they_came() {
    if !need_root("root_pause_frames_are_captured_as_they_came") {
        return;
    }
    let lab = Lab::new();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pause.pcapng");
    let mut running = lab.watch(&format!(
        "t0 t1 --interval 50ms --line-rate 1G --pcap {}",
        file.display()
    ));
    let sender = lab.device_port();
    let pause = MacControl::Pause { quanta: 0x1234 }
        .emit([2, 0, 0, 0, 0, 9])
        .to_vec();
    let mut tagged = MacControl::Pfc {
        vector: 8,
        quanta: [9; 8],
    }
    .emit([2, 0, 0, 0, 0, 9])
    .to_vec();
    let pfc = tagged.clone();
    tagged.splice(12..12, [0x81, 0, 0x60, 1]);
    for frame in [&pause, &datagram(0, &[]), &pfc, &tagged] {
        sender.send(frame).unwrap();
    }
    let seen =
        |object: &serde_json::Value| object["total"]["malformed_frames"]["control-tagged"] == 1;
    let counters = running.wait_for("the last frame", seen);
    assert_eq!(counters["total"]["pfc_xoff_frames"]["3"], 1);
    let total = running.summary("t0");
    assert_eq!(total["pfc_paused_seconds"]["3"], 4.608e-6, "{total}");
    assert_eq!(total["control_records_lost"], 0);
    let mut reader = PcapNgReader::new(File::open(file).unwrap()).unwrap();
    let mut frames = Vec::new();
    while let Some(block) = reader.next_block() {
        if let Block::EnhancedPacket(packet) = block.unwrap() {
            frames.push((packet.interface_id, packet.data.into_owned()));
        }
    }
    assert_eq!(frames, [(0, pause), (0, pfc), (0, tagged)]);
}

#[test]
fn root_what_the_tester_sends_is_no_incoming_frame() {
    if !need_root("root_what_the_tester_sends_is_no_incoming_frame") {
        return;
    }
    let lab = Lab::new();
    let mut running = lab.watch("t0 --interval 50ms");
    let sender = lab.sender(10);
    for _ in 0..10 {
        sender.send_to(&[0; 22], (BEYOND, 9)).unwrap();
    }
    lab.device_port().send(&datagram(8, &[])).unwrap();
    running.wait_for("the frame from the device", |object| {
        object["total"]["frames"].as_u64() >= Some(1)
    });
    assert_eq!(
        running.summary("t0")["dscp_frames"],
        serde_json::json!({ "8": 1 })
    );
}
