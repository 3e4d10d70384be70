//! The senders' counts, compared with the frames that arrive at the other end of a veth pair.
//!
//! lane: frames
//! lane: waiting: root_tshark

#[path = "../common/mod.rs"]
mod common;
mod wire;

use std::fs::File;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use pcap_file::pcap::{PcapPacket, PcapWriter};
use pfc_ebpf::abi::account::PauseState;
use pfc_ebpf::stamp::Phase;
use pfc_ebpf::units::{Dscp, LineRate, Priority, Quanta};
use pfc_ebpf::wire::mac_control::MacControl;
use validator::driver::kernel::clock;
use validator::driver::kernel::packet::{BATCH, PacketError};
use validator::driver::storm::{ControlSender, Storm};
use validator::driver::traffic::sendmmsg::Sendmmsg;
use validator::driver::traffic::{
    Addresses, Burst, FlowControl, PauseSource, Sent, Source, TrafficError, TrafficPlan,
};
use validator::evidence::pfc::Withheld;
use validator::pacing::storm::placement::Placement;
use validator::plan::{FlowPlan, Nanos, Role, StormKind, StormPlan};

use self::common::need_tool;
use self::wire::{Capture, TestFrame, ip, on_a_wire};

const MS: Nanos = 1_000_000;
const HOUR: Nanos = 3_600_000 * MS;
const MAX_BURST: Nanos = 4 * MS;
const STORM_SOURCE: [u8; 6] = [2, 0, 0, 0, 0, 9];

fn line_rate() -> LineRate {
    LineRate::from_bits_per_second(1_000_000_000).unwrap()
}

fn priority(value: u8) -> Priority {
    Priority::new(value).unwrap()
}

fn flow(id: u16, dscp: u8, pcp: Option<u8>, rate: u64, length: usize) -> FlowPlan {
    FlowPlan {
        id,
        role: Role::Test,
        priority: priority(dscp % 8),
        dscp: Dscp::new(dscp).unwrap(),
        pcp: pcp.map(priority),
        rate,
        length,
    }
}

fn v4() -> Addresses {
    addresses(
        Ipv4Addr::new(192, 0, 2, 1).into(),
        Ipv4Addr::new(192, 0, 2, 2).into(),
    )
}

fn v6() -> Addresses {
    addresses(
        Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1).into(),
        Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 2).into(),
    )
}

fn addresses(source_ip: IpAddr, destination_ip: IpAddr) -> Addresses {
    Addresses {
        source_mac: [2, 0, 0, 0, 0, 1],
        destination_mac: [2, 0, 0, 0, 0, 2],
        source_ip,
        destination_ip,
    }
}

fn plan(flows: &[FlowPlan], addresses: Addresses, epoch: Nanos) -> TrafficPlan<'_> {
    TrafficPlan {
        interface: "a",
        run: 0x5678,
        flows,
        addresses,
        line_rate: line_rate(),
        max_burst: MAX_BURST,
        epoch,
        width: 10 * MS,
        windows: 64,
        cpu: None,
    }
}

fn open(flows: &[FlowPlan]) -> Sendmmsg {
    Sendmmsg::open(
        &plan(flows, v4(), clock::now()),
        FlowControl::Unaware("no DUT".into()),
    )
    .unwrap()
}

/// Runs a burst of that length to its end.
fn burst(sender: &mut Sendmmsg, phase: Phase, length: Nanos) -> Burst {
    let from = clock::now() + MS;
    let burst = Burst {
        phase,
        from,
        to: from + length,
        load: 100,
    };
    sender.start(burst).unwrap();
    assert!(sender.wait(clock::now() + HOUR).unwrap());
    burst
}

fn total(sent: &Sent) -> u64 {
    sent.report.flows.iter().map(|flow| flow.frames).sum()
}

/// Frames of a flow in the order of their arrival.
fn of(frames: &[TestFrame], flow: u16) -> Vec<&TestFrame> {
    frames
        .iter()
        .filter(|frame| frame.stamp.flow == flow)
        .collect()
}

/// Each flow's sequence numbers count up from 0 without a gap, in the order of arrival.
fn assert_complete(frames: &[TestFrame], flows: &[FlowPlan]) {
    for flow in flows {
        for (expected, frame) in of(frames, flow.id).into_iter().enumerate() {
            assert_eq!(frame.stamp.sequence, expected as u64, "flow {}", flow.id);
        }
    }
}

/// Stands for the pause map and counts the reads.
#[derive(Clone, Default)]
struct FakePause {
    since: Arc<[AtomicU64; 8]>,
    until: Arc<[AtomicU64; 8]>,
    reads: Arc<AtomicU64>,
}

impl PauseSource for FakePause {
    fn state(&self, class: usize) -> PauseState {
        self.reads.fetch_add(1, Ordering::SeqCst);
        PauseState {
            until: self.until[class].load(Ordering::SeqCst),
            since: self.since[class].load(Ordering::SeqCst),
        }
    }
}

#[test]
fn root_every_frame_arrives_as_planned_and_as_accounted() {
    on_a_wire(|| {
        let flows = [
            flow(0, 3, None, 400_000_000, 1024),
            flow(1, 46, None, 200_000_000, 300),
            flow(2, 12, Some(5), 300_000_000, 1500),
            flow(7, 63, None, 100_000_000, 64),
        ];
        let capture = Capture::open();
        let epoch = clock::now();
        let mut sender = Sendmmsg::open(
            &plan(&flows, v4(), epoch),
            FlowControl::Unaware("no DUT".into()),
        )
        .unwrap();
        let bursts = [
            burst(&mut sender, Phase::Baseline, 100 * MS),
            burst(&mut sender, Phase::Resume, 100 * MS),
        ];
        let sent = sender.report().unwrap();
        println!(
            "{} frames, {} errors, stalls {:?}, largest burst {} us",
            total(&sent),
            sent.report.errors,
            sent.report.stalls,
            sent.report.max_burst / 1000
        );
        let frames = capture.test_frames(total(&sent));

        assert_complete(&frames, &flows);
        assert!(
            sent.report.max_burst > 0 && sent.report.max_burst <= MAX_BURST,
            "{}",
            sent.report.max_burst
        );
        assert_eq!(
            (
                sent.report.method.as_str(),
                sent.report.honours_pfc.as_str()
            ),
            ("sendmmsg", "no DUT")
        );
        let mut offered = vec![[0; 8]; 64];
        for flow in &flows {
            for burst in &bursts {
                let arrived: Vec<_> = of(&frames, flow.id)
                    .into_iter()
                    .filter(|frame| frame.stamp.phase == burst.phase)
                    .collect();
                let account = sent
                    .report
                    .flows
                    .iter()
                    .find(|sent| sent.flow == flow.id && sent.phase == burst.phase)
                    .expect("some left");
                assert_eq!(account.frames, arrived.len() as u64);
                assert_eq!(
                    (account.first, account.last),
                    (arrived[0].stamp.time, arrived[arrived.len() - 1].stamp.time)
                );
                for (before, frame) in arrived.iter().enumerate() {
                    let stamp = frame.stamp;
                    assert_eq!(
                        (stamp.run, frame.pcp, frame.traffic_class),
                        (
                            0x5678,
                            flow.pcp.map(Priority::get),
                            flow.dscp.get() << 2 | 1
                        )
                    );
                    assert_eq!(frame.octets.len(), flow.length);
                    assert!((burst.from..burst.to).contains(&stamp.time));
                    // Never above the rate, which allowed the bits before this frame when it was
                    // stamped: the first leaves within its time, for flows are staggered.
                    let bits = before as u128 * u128::from(LineRate::frame_bits(flow.length));
                    assert!(
                        bits * 1_000_000_000
                            <= u128::from(flow.rate) * u128::from(stamp.time - burst.from),
                        "{flow:?} {before}"
                    );
                    offered[((stamp.time - epoch) / (10 * MS)).min(63) as usize]
                        [flow.priority.index()] += 1;
                }
            }
        }
        assert_eq!(sent.offered, offered);
    });
}

#[test]
fn root_a_withheld_priority_sends_nothing_and_the_others_go_on() {
    on_a_wire(|| {
        let flows = [
            flow(0, 3, None, 300_000_000, 1024),
            flow(1, 4, None, 300_000_000, 1024),
        ];
        let capture = Capture::open();
        let pause = FakePause::default();
        pause.until[3].store(u64::MAX, Ordering::SeqCst);
        let mut sender = Sendmmsg::open(
            &plan(&flows, v4(), clock::now()),
            FlowControl::Software(Box::new(pause.clone())),
        )
        .unwrap();

        let held = burst(&mut sender, Phase::Storm, 100 * MS);
        let sent = sender.report().unwrap();
        assert!(
            sent.report.flows.iter().all(|sent| sent.flow == 1) && total(&sent) > 0,
            "{:?}",
            sent.report.flows
        );
        assert_eq!(
            sent.report.withheld,
            [Withheld {
                priority: priority(3),
                phase: Phase::Storm,
                from: held.from,
                to: held.to
            }]
        );

        pause.until[3].store(0, Ordering::SeqCst);
        burst(&mut sender, Phase::Resume, 100 * MS);
        let sent = sender.report().unwrap();
        let frames = capture.test_frames(total(&sent));
        assert_complete(&frames, &flows);
        assert!(
            !of(&frames, 0).is_empty()
                && of(&frames, 0)
                    .iter()
                    .all(|frame| frame.stamp.phase == Phase::Resume)
        );
        assert_eq!(
            (sent.report.withheld.len(), sent.report.after_xoff),
            (1, [0; 8])
        );
        assert_eq!(sent.report.honours_pfc, "software (XDP)");
    });
}

#[test]
fn root_a_stall_beside_a_pause_is_not_withheld() {
    on_a_wire(|| {
        let flows = [
            flow(0, 3, None, 300_000_000, 1024),
            flow(1, 4, None, 300_000_000, 1024),
        ];
        let pause = FakePause::default();
        let now = clock::now();
        // As a sender that did not run from long before the XOFF on.
        let (from, since, until) = (now - 50 * MS, now - 10 * MS, now + 10 * MS);
        pause.since[3].store(since, Ordering::SeqCst);
        pause.until[3].store(until, Ordering::SeqCst);
        let mut sender = Sendmmsg::open(
            &plan(&flows, v4(), from),
            FlowControl::Software(Box::new(pause)),
        )
        .unwrap();
        sender
            .start(Burst {
                phase: Phase::Storm,
                from,
                to: until + 10 * MS,
                load: 100,
            })
            .unwrap();
        assert!(sender.wait(clock::now() + HOUR).unwrap());
        let sent = sender.report().unwrap().report;
        assert_eq!(
            sent.withheld,
            [Withheld {
                priority: priority(3),
                phase: Phase::Storm,
                from: since,
                to: until
            }]
        );
        assert!(
            sent.stalls[0].from == from && sent.stalls[0].to > since,
            "{:?}",
            sent.stalls
        );
        assert!(
            sent.flows
                .iter()
                .find(|sent| sent.flow == 0)
                .is_none_or(|sent| sent.first >= until),
            "{:?}",
            sent.flows
        );
    });
}

/// Whenever it is asked another pause has come, and is over.
struct RestlessPause(AtomicU64);

impl PauseSource for RestlessPause {
    fn state(&self, _class: usize) -> PauseState {
        PauseState {
            until: 0,
            since: self.0.fetch_add(1, Ordering::SeqCst),
        }
    }
}

#[test]
fn root_what_left_while_an_xoff_came_counts_as_sent_after_it() {
    on_a_wire(|| {
        let flows = [
            flow(0, 3, None, 200_000_000, 1024),
            flow(1, 4, None, 100_000_000, 500),
        ];
        let pause = FlowControl::Software(Box::new(RestlessPause(AtomicU64::new(0))));
        let mut sender = Sendmmsg::open(&plan(&flows, v4(), clock::now()), pause).unwrap();
        burst(&mut sender, Phase::Baseline, 100 * MS);
        let sent = sender.report().unwrap();
        // Every batch left while a pause came, each while another one: the largest batch is told.
        let after_xoff = sent.report.after_xoff;
        for flow in &flows {
            let frames = sent
                .report
                .flows
                .iter()
                .find(|sent| sent.flow == flow.id)
                .expect("some left")
                .frames;
            let (octets, length) = (after_xoff[flow.priority.index()], flow.length as u64);
            assert!(
                octets > 0 && octets % length == 0 && octets <= length * frames.min(BATCH as u64),
                "{after_xoff:?}, {frames} frames"
            );
        }
        assert_eq!(
            after_xoff.iter().filter(|octets| **octets > 0).count(),
            flows.len()
        );
    });
}

#[test]
fn root_stop_ends_a_burst_and_the_next_goes_on_in_sequence() {
    on_a_wire(|| {
        let flows = [flow(0, 3, None, 900_000_000, 1024)];
        let capture = Capture::open();
        let mut sender = open(&flows);
        let from = clock::now();
        let endless = Burst {
            phase: Phase::Baseline,
            from,
            to: from + HOUR,
            load: 100,
        };
        sender.start(endless).unwrap();
        assert!(matches!(sender.start(endless), Err(TrafficError::Running)));
        let first = capture.next_test_frame().expect("traffic runs");
        assert!(!sender.wait(clock::now()).unwrap());
        sender.stop().unwrap();
        assert!(sender.wait(clock::now()).unwrap());
        let stopped = total(&sender.report().unwrap());

        // What had left at the stop is all there is; then a burst that has yet to begin is stopped.
        let mut frames = vec![first];
        frames.extend(capture.test_frames(stopped - 1));
        sender
            .start(Burst {
                phase: Phase::Storm,
                from: clock::now() + HOUR,
                to: clock::now() + 2 * HOUR,
                load: 100,
            })
            .unwrap();
        sender.stop().unwrap();
        burst(&mut sender, Phase::Resume, 100 * MS);
        let sent = sender.report().unwrap();
        frames.extend(capture.test_frames(total(&sent) - stopped));
        assert_complete(&frames, &flows);
        assert_eq!(frames.len() as u64, total(&sent));
    });
}

#[test]
fn root_frames_without_room_are_waited_for_and_leave_no_gap() {
    on_a_wire(|| {
        let flows = [
            flow(0, 3, None, 250_000_000, 1024),
            flow(1, 4, None, 250_000_000, 1024),
        ];
        let capture = Capture::open();
        let pause = FakePause::default();
        let mut sender = Sendmmsg::open(
            &plan(&flows, v4(), clock::now()),
            FlowControl::Software(Box::new(pause.clone())),
        )
        .unwrap();
        let from = clock::now();
        sender
            .start(Burst {
                phase: Phase::Baseline,
                from,
                to: from + HOUR,
                load: 100,
            })
            .unwrap();
        let mut frames = vec![capture.next_test_frame().expect("traffic runs")];
        ip("link set dev b down");
        // Each of the sender's rounds reads all eight states at least once, and has frames to send.
        let reads = pause.reads.load(Ordering::SeqCst);
        while pause.reads.load(Ordering::SeqCst) < reads + 100 {
            std::thread::yield_now();
        }
        ip("link set dev b up");
        let up = clock::now();
        while frames[frames.len() - 1].stamp.time < up {
            frames.push(capture.next_test_frame().expect("traffic runs again"));
        }
        sender.stop().unwrap();
        let sent = sender.report().unwrap();
        println!(
            "{} frames left, there was no room {} times",
            total(&sent),
            sent.report.waits
        );
        frames.extend(capture.test_frames(total(&sent) - frames.len() as u64));
        assert!(sent.report.waits > 0);
        assert_eq!(sent.report.errors, 0);
        assert!(sent.report.max_burst <= MAX_BURST, "{sent:?}");
        assert_eq!(frames.len() as u64, total(&sent));
        assert_complete(&frames, &flows);
    });
}

#[test]
fn root_what_the_interface_does_not_take_is_named() {
    on_a_wire(|| {
        let error = |length| {
            let mut sender = open(&[flow(0, 3, None, 100_000_000, length)]);
            let from = clock::now();
            sender
                .start(Burst {
                    phase: Phase::Baseline,
                    from,
                    to: from + HOUR,
                    load: 100,
                })
                .unwrap();
            let error = sender.wait(from + HOUR).unwrap_err();
            assert_eq!(total(&sender.report().unwrap()), 0);
            error
        };
        assert!(matches!(
            error(1515),
            TrafficError::Packet(PacketError::TooLong { interface, length: 1515 })
                if interface == "a"
        ));
        ip("link set dev a down");
        assert!(matches!(
            error(1514),
            TrafficError::Packet(PacketError::Down { interface }) if interface == "a"
        ));
    });
}

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
                "0x0101 0x0008  0 0 0 65535 0 0 0 0",
            ),
            (
                storm(
                    StormKind::Pfc([0, 1, 2, 3, 4, 5, 6].map(priority).to_vec()),
                    0x1fff,
                ),
                "0x0101 0x007f  8191 8191 8191 8191 8191 8191 8191 0",
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
                report.max_gap <= plan.quanta.nanos(line_rate())
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

#[test]
fn root_a_dropped_storm_sends_no_more_and_a_single_frame_tells_when_it_left() {
    on_a_wire(|| {
        let capture = Capture::open();
        let plan = StormPlan {
            kind: StormKind::Pause,
            quanta: Quanta::MAX,
            interval: HOUR,
        };
        let storm = Storm::start(
            ControlSender::open("a", STORM_SOURCE).unwrap(),
            &plan,
            line_rate(),
        )
        .unwrap();
        let control =
            || std::iter::from_fn(|| capture.next()).find(|frame| frame[12..14] == [0x88, 0x08]);
        assert_eq!(
            control().unwrap(),
            MacControl::Pause { quanta: 0xffff }.emit(STORM_SOURCE)
        );
        // Returns long before the next frame is due.
        drop(storm);
        let xon = MacControl::pfc([priority(3), priority(4)], Quanta::ZERO);
        let before = clock::now();
        let departure = ControlSender::open("a", STORM_SOURCE)
            .unwrap()
            .send(&xon)
            .unwrap();
        assert!(
            before <= departure.before
                && departure.before <= departure.after
                && departure.after <= clock::now()
        );
        assert_eq!(control().unwrap(), xon.emit(STORM_SOURCE));
    });
}

#[test]
fn root_control_frames_that_do_not_leave_are_errors() {
    on_a_wire(|| {
        ip("link set dev b down");
        let sender = ControlSender::open("a", STORM_SOURCE).unwrap();
        assert!(matches!(
            sender.send(&MacControl::Pause { quanta: 1 }),
            Err(PacketError::Refused { interface }) if interface == "a"
        ));
        ip("link set dev a down");
        assert!(matches!(
            sender.send(&MacControl::Pause { quanta: 1 }),
            Err(PacketError::Down { interface }) if interface == "a"
        ));
    });
}
