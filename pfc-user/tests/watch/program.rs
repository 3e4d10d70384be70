//! Each counter, by frames of others' making: two hardware MACs' and scapy's.

use std::collections::BTreeMap;
use std::process::Command;

use pfc_ebpf::abi::Trust;
use pfc_ebpf::abi::watch::{ClassCounters, Counters, Hidden, Volume};
use pfc_ebpf::units::LineRate;
use pfc_ebpf::wire::Malformed;
use pfc_ebpf::wire::mac_control::MacControl;
use validator::driver::bpf::XdpMode;
use validator::driver::bpf::watch::{Point, Settings, Watch};
use validator::driver::kernel::clock;

use crate::common::{PYTHON, need_root, need_tool};
use crate::watch::counting::tagged;
use crate::watch::{PASS, hex, settings};

const NANOS_OF_QUANTUM: u64 = 512;

/// Frames as two independent open hardware MACs sent them (register-transfer simulation), without
/// FCS and padding.
const OF_MACS: [&str; 8] = [
    "0180c20000015a5152535455880801010008000000000000a003",
    "0180c20000015a515253545588080101000800000000000000000000",
    "0180c20000015a51525354558808010100ffa000a001a002a003a004a005a006a007",
    "0180c20000015a51525354558808010100ff0000000000000000a004a005a006a007",
    "0180c20000015a51525354558808010100f0",
    "0180c20000015a5152535455880800011234",
    "0180c20000015a5152535455880800010000",
    "0180c2000001020000000001880800011234",
];

fn octets(hexadecimal: &str) -> Vec<u8> {
    let octet = |at| u8::from_str_radix(&hexadecimal[at..at + 2], 16).unwrap();
    let mut octets: Vec<u8> = (0..hexadecimal.len()).step_by(2).map(octet).collect();
    octets.resize(octets.len().max(60), 0);
    octets
}

fn class(xoff: u64, xon: u64) -> ClassCounters {
    ClassCounters { xoff, xon }
}

#[test]
fn root_frames_of_hardware_macs_are_counted_by_class() {
    if !need_root("root_frames_of_hardware_macs_are_counted_by_class") {
        return;
    }
    for (point, pass) in PASS {
        let mut watch = Watch::load(
            point,
            &Settings {
                capture: true,
                ..settings(Trust::Dscp)
            },
        )
        .unwrap();
        let frames = OF_MACS.map(octets);
        for frame in &frames {
            assert_eq!(watch.test_run(frame, 1).unwrap().action, pass);
        }
        let counters = watch.read().unwrap().counters;
        let mut pfc = [class(1, 1); 8];
        pfc[3] = class(2, 2);
        pfc[4..].fill(class(2, 1));
        let expected = Counters {
            total: Volume {
                frames: 8,
                octets: 8 * 60,
            },
            no_priority: Volume {
                frames: 8,
                octets: 8 * 60,
            },
            pause: class(2, 1),
            pfc_frames: 5,
            pfc,
            ..Counters::ZERO
        };
        assert_eq!(counters, expected);
        let kept = watch.controls().unwrap();
        assert!(kept.is_sorted_by_key(|frame| frame.time));
        assert_eq!(
            kept.iter()
                .map(|frame| (frame.length, &frame.octets))
                .collect::<Vec<_>>(),
            frames.each_ref().map(|frame| (60, frame))
        );
        assert_eq!(watch.controls().unwrap(), [], "taken already");
    }
}

/// The frames that scapy made, by name.
pub fn scapy() -> BTreeMap<String, Vec<u8>> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/watch/scapy_watch.py");
    let output = Command::new(PYTHON).arg(script).output().unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines()
        .map(|line| line.split_once(' ').unwrap())
        .map(|(name, frame)| (name.to_owned(), octets(frame)))
        .collect()
}

#[test]
fn root_frames_of_scapy_are_counted_by_what_they_are() {
    const NAME: &str = "root_frames_of_scapy_are_counted_by_what_they_are";
    if !need_root(NAME) || !need_tool(NAME, "scapy") {
        return;
    }
    let mut frames = scapy();
    frames.retain(|name, _| !name.contains("long") && !name.contains("hidden"));
    for (point, pass) in PASS {
        let watch = Watch::load(point, &settings(Trust::Dscp)).unwrap();
        for frame in frames.values() {
            assert_eq!(
                watch.test_run(frame, 1).unwrap().action,
                pass,
                "{}",
                hex(frame)
            );
        }
        let counters = watch.read().unwrap().counters;
        let numbers = |volumes: &[Volume]| {
            let met = volumes
                .iter()
                .enumerate()
                .filter(|(_, volume)| volume.frames > 0);
            met.map(|(place, volume)| (place, volume.frames))
                .collect::<Vec<_>>()
        };
        let counts = |counts: &[u64]| {
            let met = counts.iter().enumerate().filter(|(_, frames)| **frames > 0);
            met.map(|(place, frames)| (place, *frames))
                .collect::<Vec<_>>()
        };
        let octets = frames.values().map(|frame| frame.len() as u64).sum();
        assert_eq!(counters.total, Volume { frames: 21, octets });
        assert_eq!(
            numbers(&counters.by_dscp),
            [(10, 1), (11, 1), (26, 4), (46, 1), (48, 1)]
        );
        assert_eq!(
            numbers(&counters.by_priority),
            [(0, 1), (2, 5), (3, 1), (6, 1)],
            "DSCP mod 8"
        );
        assert_eq!(counters.no_priority.frames, 13);
        assert_eq!(
            numbers(&counters.by_pcp),
            [(3, 2), (4, 1), (5, 1), (6, 1)],
            "the outermost tag's"
        );
        assert_eq!(counters.double_tagged, 1);
        assert_eq!(counters.by_ecn, [3, 1, 2, 2]);
        assert_eq!(counts(&counters.ce), [(2, 2)]);
        assert_eq!((counters.roce.frames, counters.roce_ce), (4, 2));
        assert_eq!(
            counters.hidden,
            [0; Hidden::COUNT],
            "none behind an IP header"
        );
        assert_eq!(
            counts(&counters.by_opcode),
            [(0x04, 1), (0x0a, 1), (0x0c, 1), (0x81, 1)]
        );
        assert_eq!(
            (counters.pause, counters.pfc_frames, counters.pfc_empty),
            (class(1, 1), 2, 1)
        );
        assert_eq!(
            (counters.pfc[3], counters.pfc[4], counters.pfc[0]),
            (class(1, 0), class(0, 1), class(0, 0))
        );
        let malformed = [
            Malformed::ControlTagged,
            Malformed::ControlDestination,
            Malformed::Ipv4Checksum,
        ]
        .map(|reason| (reason as usize, 1));
        assert_eq!(counts(&counters.malformed), malformed);

        let watch = Watch::load(point, &settings(Trust::Pcp)).unwrap();
        for frame in frames.values() {
            watch.test_run(frame, 1).unwrap();
        }
        let counters = watch.read().unwrap().counters;
        assert_eq!(
            numbers(&counters.by_priority),
            [(3, 2), (4, 1), (5, 1), (6, 1)],
            "where the PCP is trusted"
        );
        assert_eq!(counters.no_priority.frames, 16);
    }
}

/// Packets without a transport where RoCEv2 stands are not passed over in silence.
#[test]
fn root_packets_whose_transport_is_not_looked_for_are_counted_by_what_hides_it() {
    const NAME: &str =
        "root_packets_whose_transport_is_not_looked_for_are_counted_by_what_hides_it";
    if !need_root(NAME) || !need_tool(NAME, "scapy") {
        return;
    }
    let frames = scapy();
    for (point, _) in PASS {
        let watch = Watch::load(point, &settings(Trust::Dscp)).unwrap();
        let mut hidden = [0; Hidden::COUNT];
        for (kind, names) in [
            (
                Hidden::Extension,
                &[
                    "hop-by-hop",
                    "destination",
                    "routing",
                    "authentication",
                    "esp",
                    "mobility",
                    "hip",
                    "shim6",
                    "experiment",
                    "experiment-2",
                ][..],
            ),
            (Hidden::Fragment, &["fragment", "fragment-6"]),
            (
                Hidden::Tunnel,
                &[
                    "ipip",
                    "gre",
                    "vxlan",
                    "etherip",
                    "compressed",
                    "l2tp",
                    "mpls",
                    "srv6-ethernet",
                ],
            ),
        ] {
            for name in names {
                let frame = &frames[&format!("hidden-{name}")];
                watch.test_run(frame, 1).unwrap();
                hidden[kind as usize] += 1;
                let counters = watch.read().unwrap().counters;
                assert_eq!(counters.hidden, hidden, "{name}");
                assert_eq!(
                    (counters.roce.frames, counters.malformed),
                    (0, Counters::ZERO.malformed)
                );
            }
        }
        let counters = watch.read().unwrap().counters;
        assert_eq!(counters.by_dscp[26].frames, hidden.iter().sum::<u64>());
        watch.test_run(&frames["roce6-read-ce"], 1).unwrap();
        let after = watch.read().unwrap().counters;
        assert_eq!((after.roce.frames, after.hidden), (1, hidden));
    }
}

#[test]
fn root_a_tag_that_is_not_read_hides_the_dscp_and_has_no_pcp() {
    /// PCP 5 of VLAN 7.
    const TCI: u16 = 5 << 13 | 7;
    if !need_root("root_a_tag_that_is_not_read_hides_the_dscp_and_has_no_pcp") {
        return;
    }
    let of_one = |frame: &[u8]| Volume {
        frames: 1,
        octets: frame.len() as u64,
    };
    for (point, pass) in PASS {
        for trust in [Trust::Dscp, Trust::Pcp] {
            let counted = |tags: &[(u16, u16)]| {
                let watch = Watch::load(point, &settings(trust)).unwrap();
                let frame = tagged(26, tags);
                assert_eq!(watch.test_run(&frame, 1).unwrap().action, pass);
                (watch.read().unwrap().counters, of_one(&frame))
            };
            for tpid in [0x9100, 0x9200, 0x88e7] {
                let (counters, volume) = counted(&[(tpid, TCI)]);
                let expected = Counters {
                    total: volume,
                    no_priority: volume,
                    ..Counters::ZERO
                };
                assert_eq!(counters, expected, "{tpid:#x}, by {trust:?}");

                let (counters, volume) = counted(&[(0x88a8, TCI), (tpid, TCI)]);
                let mut expected = Counters {
                    total: volume,
                    ..Counters::ZERO
                };
                expected.by_pcp[5] = volume;
                match trust {
                    Trust::Dscp => expected.no_priority = volume,
                    Trust::Pcp => expected.by_priority[5] = volume,
                }
                assert_eq!(counters, expected, "S-tag and {tpid:#x}, by {trust:?}");
            }
            for tpid in [0x8100, 0x88a8] {
                let (counters, volume) = counted(&[(tpid, TCI)]);
                let read = (counters.by_dscp[26], counters.by_pcp[5], counters.stamped);
                assert_eq!(read, (volume, volume, 1), "{tpid:#x}, by {trust:?}");
            }
        }
    }
}

/// A PFC frame for priorities 3 and 5.
fn pfc(quanta: u16) -> Vec<u8> {
    let mut times = [0; 8];
    (times[3], times[5]) = (quanta, quanta);
    MacControl::Pfc {
        vector: 0x28,
        quanta: times,
    }
    .emit([2, 0, 0, 0, 0, 1])
    .to_vec()
}

#[test]
fn root_a_pause_that_runs_out_lasts_as_long_as_its_quanta() {
    if !need_root("root_a_pause_that_runs_out_lasts_as_long_as_its_quanta") {
        return;
    }
    for (point, _) in PASS {
        let watch = Watch::load(point, &settings(Trust::Dscp)).unwrap();
        for round in 1..=3 {
            watch.test_run(&pfc(100), 1).unwrap();
            clock::sleep_until(clock::now() + 100 * NANOS_OF_QUANTUM);
            let paused = watch.read().unwrap().paused;
            let whole = round * 100 * NANOS_OF_QUANTUM;
            assert_eq!(paused, [0, 0, 0, whole, 0, whole, 0, 0, 0]);
        }
        let pause = MacControl::Pause { quanta: 7 }.emit([2; 6]);
        watch.test_run(&pause, 1).unwrap();
        clock::sleep_until(clock::now() + 7 * NANOS_OF_QUANTUM);
        assert_eq!(
            watch.read().unwrap().paused[8],
            7 * NANOS_OF_QUANTUM,
            "802.3x pauses the whole link"
        );
    }
}

#[test]
fn root_a_pause_that_is_renewed_and_ended_lasts_from_first_to_last() {
    if !need_root("root_a_pause_that_is_renewed_and_ended_lasts_from_first_to_last") {
        return;
    }
    for (point, _) in PASS {
        // The longest pause is half a minute at this rate: longer than the machine stands still.
        let line_rate = LineRate::from_bits_per_second(1_000_000).ok();
        let watch = Watch::load(
            point,
            &Settings {
                line_rate,
                ..settings(Trust::Dscp)
            },
        )
        .unwrap();
        let before = clock::now();
        watch.test_run(&pfc(u16::MAX), 1).unwrap();
        let begun = clock::now();
        // A renewal starts the time anew. It neither adds to the time left nor loses the time
        // already paused.
        for _ in 0..10 {
            watch.test_run(&pfc(u16::MAX), 1).unwrap();
        }
        let running = watch.read().unwrap();
        let ending = clock::now();
        watch.test_run(&pfc(0), 1).unwrap();
        let ended = clock::now();
        assert!(
            (running.time - begun..=running.time - before).contains(&running.paused[3]),
            "{running:?}"
        );
        let paused = watch.read().unwrap().paused;
        assert!(
            (ending - begun..=ended - before).contains(&paused[3]),
            "{paused:?}"
        );
        assert_eq!(watch.read().unwrap().paused, paused, "it has ended");
    }
}

#[test]
fn root_without_a_line_rate_no_time_is_made_up() {
    if !need_root("root_without_a_line_rate_no_time_is_made_up") {
        return;
    }
    for (point, _) in PASS {
        let watch = Watch::load(
            point,
            &Settings {
                line_rate: None,
                ..settings(Trust::Dscp)
            },
        )
        .unwrap();
        watch.test_run(&pfc(u16::MAX), 1).unwrap();
        let reading = watch.read().unwrap();
        assert_eq!(
            (reading.paused, reading.counters.pfc[3]),
            ([0; 9], class(1, 0))
        );
    }
}

#[test]
fn root_frames_are_sorted_by_what_no_device_changes() {
    const NAME: &str = "root_frames_are_sorted_by_what_no_device_changes";
    if !need_root(NAME) || !need_tool(NAME, "scapy") {
        return;
    }
    let frames = scapy();
    let settings = Settings {
        flows: 1,
        ..settings(Trust::Dscp)
    };
    let sketch = |point, frame: &[u8]| {
        let watch = Watch::load(point, &settings).unwrap();
        watch.test_run(frame, 1).unwrap();
        let sketch = watch.sketch().unwrap();
        assert_eq!((sketch.sorted(), sketch.unsorted), (1, 0));
        sketch.digest
    };
    let [(driver, _), (tcx, _)] = PASS;
    for name in ["udp-long", "tcp6-long"] {
        let frame = &frames[name];
        let (ipv6, transport) = match name {
            "udp-long" => (false, 34),
            _ => (true, 54),
        };
        let digest = sketch(driver, frame);
        assert_eq!(
            sketch(tcx, frame),
            digest,
            "{name}: the same at both places"
        );
        let with = |changes: &[(usize, u8)]| {
            let mut frame = frame.clone();
            changes.iter().for_each(|(at, bits)| frame[*at] ^= bits);
            sketch(driver, &frame)
        };
        let checksum = transport + if ipv6 { 16 } else { 6 };
        assert_eq!(with(&[(0, 1), (6, 1)]), digest);
        assert_eq!(with(&[(checksum, 1), (checksum + 1, 1)]), digest);
        if ipv6 {
            assert_eq!(with(&[(21, 1), (15, 0x40)]), digest, "hop limit, DSCP");
        } else {
            let mut routed = frame.clone();
            routed[22] -= 1;
            // A TTL that is one less makes the checksum as much more (RFC 1624).
            let sum = u16::from_be_bytes([routed[24], routed[25]]);
            let sum = u32::from(sum) + 0x100;
            let sum = (sum & 0xffff) + (sum >> 16);
            routed[24..26].copy_from_slice(&(sum as u16).to_be_bytes());
            assert_eq!(sketch(driver, &routed), digest, "TTL");
        }
        for at in [transport, transport + 1, transport + 30, transport + 60] {
            assert_ne!(with(&[(at, 1)]), digest, "{name}, octet {at}");
        }
    }
}

#[test]
fn root_a_frame_in_pieces_is_read_like_one_in_one_piece() {
    const NAME: &str = "root_a_frame_in_pieces_is_read_like_one_in_one_piece";
    // Beyond what the kernel puts into the first piece.
    const PADDING: usize = 6000;
    if !need_root(NAME) || !need_tool(NAME, "scapy") {
        return;
    }
    let frames = scapy();
    let counted = |padding: usize| {
        let mut watch = Watch::load(
            Point::Xdp(XdpMode::Driver),
            &Settings {
                capture: true,
                ..settings(Trust::Dscp)
            },
        )
        .unwrap();
        for frame in frames.values() {
            let long = [&**frame, &*vec![0; padding]].concat();
            assert_eq!(watch.test_run(&long, 1).unwrap().action, 2, "it passes");
        }
        let counters = watch.read().unwrap().counters;
        let kept: Vec<_> = watch
            .controls()
            .unwrap()
            .into_iter()
            .map(|frame| frame.octets[..60].to_vec())
            .collect();
        let marks = (
            counters.by_dscp.map(|volume| volume.frames),
            counters.by_pcp.map(|volume| volume.frames),
            counters.by_ecn,
        );
        let contents = (
            counters.by_opcode,
            counters.malformed,
            counters.pfc,
            counters.pause,
            counters.double_tagged,
        );
        (counters.total, marks, contents, kept)
    };
    let (short, long) = (counted(0), counted(PADDING));
    assert_eq!(
        long.0,
        Volume {
            octets: short.0.octets + (PADDING * frames.len()) as u64,
            ..short.0
        }
    );
    assert_eq!((long.1, long.2, long.3), (short.1, short.2, short.3));
}
