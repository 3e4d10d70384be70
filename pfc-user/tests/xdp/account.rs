//! Each counter of the XDP program, by BPF_PROG_TEST_RUN, which runs the program in the kernel
//! without an interface.

use pfc_ebpf::abi::Trust;
use pfc_ebpf::abi::account::{Config, FlowConfig, OffenceKind, PauseState};
use pfc_ebpf::stamp::{self, Phase, Stamp};
use pfc_ebpf::wire::Malformed;
use pfc_ebpf::wire::mac_control::MacControl;
use validator::driver::bpf::{AccountProgram, Sizes, XdpError};
use validator::driver::kernel::clock;
use validator::evidence::pfc::FlowReceived;

use crate::frames::TestFrame;
use crate::{DROP, PASS, RUN, STORM_SOURCE, WINDOW, config, flows, hex, loaded, stamp};

const PEER: [u8; 6] = [0x02, 0, 0, 0, 0, 5];

fn run(account: &AccountProgram, frame: &[u8]) -> u32 {
    account.test_run(frame, 1).unwrap().action
}

fn run_all(account: &AccountProgram, sequences: impl IntoIterator<Item = u64>) {
    for sequence in sequences {
        assert_eq!(
            run(account, &TestFrame::new(stamp(3, sequence)).octets()),
            DROP
        );
    }
}

/// The one flow and phase that was seen.
fn only_flow(account: &AccountProgram) -> FlowReceived {
    let mut flows = account.flows().unwrap();
    assert_eq!(flows.len(), 1, "{flows:?}");
    flows.remove(0)
}

fn kinds(account: &mut AccountProgram) -> Vec<OffenceKind> {
    account
        .take_rings()
        .unwrap()
        .offences
        .into_iter()
        .map(|offence| offence.kind)
        .collect()
}

fn by_priority(account: &AccountProgram) -> [u64; 8] {
    account
        .port_counters()
        .unwrap()
        .by_priority(account.configured())
}

#[test]
fn root_distinct_frames_are_received_with_octets_times_and_latency() {
    let account = loaded(Trust::Dscp);
    let before = clock::now();
    for sequence in 0..5 {
        let mut late = stamp(3, sequence);
        late.time -= 1 << 30;
        run(
            &account,
            &TestFrame {
                payload: 100,
                ..TestFrame::new(late)
            }
            .octets(),
        );
    }
    let after = clock::now();
    let flow = only_flow(&account);
    assert_eq!((flow.flow, flow.phase), (3, Phase::Storm));
    assert_eq!((flow.frames, flow.octets), (5, 5 * (14 + 20 + 8 + 100)));
    assert_eq!(
        (
            flow.duplicate,
            flow.reordered,
            flow.beyond_window,
            flow.corrupt,
            flow.remarked
        ),
        (0, 0, 0, 0, 0)
    );
    assert!(
        before <= flow.first && flow.first < flow.last && flow.last <= after,
        "{before} {flow:?} {after}"
    );
    // One-way latency is 2^30 ns and what passed since the stamp: 31 significant bits.
    assert_eq!(flow.latency.iter().sum::<u32>(), 5);
    assert_eq!(flow.latency[31], 5);
    assert!((1 << 30..=(1 << 30) + after - before).contains(&flow.latency_max));
    assert!((1 << 30..=flow.latency_max).contains(&flow.latency_mean));
    assert_eq!(account.received(Phase::Storm).unwrap(), 5);
    assert_eq!(account.received(Phase::Resume).unwrap(), 0);
}

#[test]
fn root_latency_buckets_go_by_significant_bits() {
    let account = loaded(Trust::Dscp);
    for (sequence, back) in [1 << 22, 1 << 26, 1 << 38].into_iter().enumerate() {
        let mut stamp = stamp(3, sequence as u64);
        stamp.time = stamp.time.wrapping_sub(back) & stamp::MASK_40;
        run(&account, &TestFrame::new(stamp).octets());
    }
    let latency = only_flow(&account).latency;
    assert_eq!((latency[23], latency[27], latency[31]), (1, 1, 1));
}

#[test]
fn root_duplicates_are_counted_apart() {
    let mut account = loaded(Trust::Dscp);
    run_all(&account, [0, 1, 2, 1, 1, 3]);
    let flow = only_flow(&account);
    assert_eq!(
        (
            flow.frames,
            flow.duplicate,
            flow.reordered,
            flow.beyond_window
        ),
        (4, 2, 0, 0)
    );
    assert_eq!(kinds(&mut account), [OffenceKind::Duplicate; 2]);
}

#[test]
fn root_a_frame_after_a_later_one_is_reordered() {
    let mut account = loaded(Trust::Dscp);
    // RFC 4737, 3.3: 4 and 5 come late; 7 after a loss is not reordered.
    run_all(&account, [1, 2, 3, 6, 4, 5, 8, 9]);
    let flow = only_flow(&account);
    assert_eq!((flow.frames, flow.reordered, flow.duplicate), (8, 2, 0));
    assert_eq!(kinds(&mut account), [OffenceKind::Reordered; 2]);
}

#[test]
fn root_a_frame_far_behind_is_beyond_the_window_and_makes_nothing_be_forgotten() {
    let mut account = loaded(Trust::Dscp);
    run_all(&account, [0, 2000, 976, 2000]);
    let flow = only_flow(&account);
    assert_eq!(
        (
            flow.frames,
            flow.duplicate,
            flow.reordered,
            flow.beyond_window
        ),
        (2, 1, 0, 1)
    );
    assert_eq!(flow.latency.iter().sum::<u32>(), 2);
    assert_eq!(
        kinds(&mut account),
        [OffenceKind::BeyondWindow, OffenceKind::Duplicate]
    );
}

#[test]
fn root_within_the_window_late_frames_are_told_from_duplicates() {
    let account = loaded(Trust::Dscp);
    run_all(
        &account,
        (0..1023).chain([1024 + 500]).chain([1023, 501, 1022]),
    );
    let flow = only_flow(&account);
    assert_eq!(
        (
            flow.frames,
            flow.reordered,
            flow.duplicate,
            flow.beyond_window
        ),
        (1025, 1, 2, 0)
    );
}

#[test]
fn root_sequence_numbers_of_40_bits_are_kept_apart() {
    let account = loaded(Trust::Dscp);
    run_all(
        &account,
        [0xffff_ffff, 0x1_0000_0000, 0xff_ffff_ffff, 0xff_ffff_ffff],
    );
    let flow = only_flow(&account);
    assert_eq!((flow.frames, flow.duplicate, flow.reordered), (3, 1, 0));
}

#[test]
fn root_flipped_octets_are_corruption_at_every_length() {
    let account = loaded(Trust::Dscp);
    let mut sequence = 0;
    let mut corrupt = 0;
    for v6 in [false, true] {
        // Odd and even lengths, lengths around the chunks in which the checksum is summed, and the
        // longest that XDP takes without fragments.
        for payload in [
            22, 23, 24, 25, 26, 27, 28, 31, 57, 255, 503, 504, 505, 511, 512, 513, 1000, 1023,
            1024, 1025, 2049, 3300,
        ] {
            let frame = |sequence| {
                TestFrame {
                    payload,
                    v6,
                    ..TestFrame::new(stamp(3, sequence))
                }
                .octets()
            };
            run(&account, &frame(sequence));
            sequence += 1;
            assert_eq!(
                only_flow(&account).corrupt,
                corrupt,
                "whole, IPv6 {v6}, payload {payload}"
            );
            let octets = frame(0);
            let payload_at = octets.len() - payload;
            // Source port, checksum, and the payload behind the stamp. Damage further ahead would
            // be of another kind.
            let places = [
                payload_at - 8,
                payload_at - 2,
                payload_at + 22,
                (payload_at + octets.len()) / 2,
                octets.len() - 1,
            ];
            for place in places
                .into_iter()
                .filter(|place| *place < payload_at || *place >= payload_at + 22)
            {
                if place >= octets.len() {
                    continue;
                }
                let mut octets = frame(sequence);
                octets[place] ^= 0x10;
                run(&account, &octets);
                sequence += 1;
                corrupt += 1;
                assert_eq!(
                    only_flow(&account).corrupt,
                    corrupt,
                    "octet {place}, IPv6 {v6}, payload {payload}"
                );
            }
        }
    }
    let flow = only_flow(&account);
    assert_eq!(
        (flow.frames, flow.duplicate),
        (sequence, 0),
        "a corrupt frame whose stamp is whole is received too"
    );
}

#[test]
fn root_a_checksum_that_was_taken_out_is_corruption() {
    let mut account = loaded(Trust::Dscp);
    let mut octets = TestFrame::new(stamp(3, 0)).octets();
    octets[40..42].fill(0);
    run(&account, &octets);
    assert_eq!(only_flow(&account).corrupt, 1);
    assert_eq!(kinds(&mut account), [OffenceKind::Corrupt]);
}

#[test]
fn root_a_changed_dscp_is_a_remark_and_a_changed_ecn_is_not() {
    let mut account = loaded(Trust::Dscp);
    let frame = |sequence, traffic_class| {
        TestFrame {
            traffic_class,
            ..TestFrame::new(stamp(3, sequence))
        }
        .octets()
    };
    run(&account, &frame(0, 3 << 2 | 3));
    run(&account, &frame(1, 4 << 2 | 1));
    let flow = only_flow(&account);
    assert_eq!((flow.frames, flow.remarked, flow.untagged), (2, 1, 0));
    assert_eq!(kinds(&mut account), [OffenceKind::Remarked]);
    let port = account.port_counters().unwrap();
    assert_eq!((port.by_dscp[3], port.by_dscp[4]), (1, 1));
    assert_eq!(by_priority(&account), [0, 0, 0, 1, 1, 0, 0, 0]);
}

#[test]
fn root_where_the_pcp_is_trusted_the_outermost_tag_counts() {
    let account = loaded(Trust::Pcp);
    let frame = |sequence, tags: &[(u16, u16)]| {
        TestFrame {
            tags: tags.to_vec(),
            ..TestFrame::new(stamp(3, sequence))
        }
        .octets()
    };
    run(&account, &frame(0, &[(0x8100, 3 << 13 | 5)]));
    run(
        &account,
        &frame(1, &[(0x88a8, 3 << 13 | 5), (0x8100, 6 << 13)]),
    );
    run(
        &account,
        &frame(2, &[(0x88a8, 6 << 13 | 5), (0x8100, 3 << 13)]),
    );
    run(&account, &frame(3, &[]));
    let flow = only_flow(&account);
    assert_eq!(
        (flow.frames, flow.remarked, flow.untagged, flow.corrupt),
        (4, 2, 1, 0)
    );
    let port = account.port_counters().unwrap();
    assert_eq!(port.tagged(), 3);
    assert_eq!(by_priority(&account), [0, 0, 0, 2, 0, 0, 1, 0]);
    assert_eq!(port.by_dscp[3], 4);
}

#[test]
fn root_tags_options_and_ipv6_lead_to_the_stamp() {
    let account = loaded(Trust::Dscp);
    let mut sequence = 0;
    for tags in [
        vec![],
        vec![(0x8100, 1)],
        vec![(0x88a8, 1), (0x8100, 2)],
        vec![(0x8100, 1), (0x8100, 2)],
    ] {
        for (v6, options) in [(false, 0), (false, 4), (false, 40), (true, 0)] {
            let frame = TestFrame {
                tags: tags.clone(),
                v6,
                options: vec![1; options],
                ..TestFrame::new(stamp(3, sequence))
            };
            assert_eq!(
                run(&account, &frame.octets()),
                DROP,
                "{tags:?}, IPv6 {v6}, {options} octets of options"
            );
            sequence += 1;
        }
    }
    let flow = only_flow(&account);
    assert_eq!((flow.frames, flow.corrupt, flow.remarked), (16, 0, 0));
    assert_eq!(account.port_counters().unwrap().tagged(), 12);
}

#[test]
fn root_flows_and_phases_are_kept_apart() {
    let account = loaded(Trust::Dscp);
    for flow in 0..8 {
        for phase in Phase::ALL {
            run(
                &account,
                &TestFrame::new(Stamp {
                    phase,
                    ..stamp(flow, phase as u64)
                })
                .octets(),
            );
        }
    }
    let flows = account.flows().unwrap();
    let seen: Vec<_> = flows
        .iter()
        .map(|flow| {
            (
                flow.flow,
                flow.phase,
                flow.frames,
                flow.duplicate + flow.reordered,
            )
        })
        .collect();
    let expected: Vec<_> = (0..8)
        .flat_map(|flow| Phase::ALL.map(|phase| (flow, phase, 1, 0)))
        .collect();
    assert_eq!(seen, expected);
    assert_eq!(account.received(Phase::Probe).unwrap(), 8);
}

#[test]
fn root_arrivals_count_in_their_window_and_late_ones_in_the_last() {
    let mut account = loaded(Trust::Dscp);
    let mut flows = flows(8);
    flows[3].log_phases = Phase::Storm.bit();
    let now = clock::now();
    // 20 windows after the epoch, which is more than there are; before the epoch.
    for epoch in [
        now,
        now.saturating_sub(2 * WINDOW),
        now.saturating_sub(20 * WINDOW),
        now + 20 * WINDOW,
    ] {
        account
            .configure(
                &Config {
                    epoch,
                    ..config(Trust::Dscp)
                },
                &flows,
            )
            .unwrap();
        run_all(&account, [0, 1, 1]);
        let arrivals = account.take_rings().unwrap().arrivals;
        assert_eq!(arrivals.len(), 3);
        let mut expected = [[0; 8]; 8];
        let mut window_sum = 0;
        for arrival in &arrivals[..2] {
            let window = (arrival.time.saturating_sub(epoch) / WINDOW).min(7);
            expected[window as usize][3] += 1;
            window_sum += window;
        }
        assert_eq!(account.windows().unwrap(), expected);
        assert_eq!(only_flow(&account).window_sum, window_sum);
    }
}

#[test]
fn root_frames_of_another_run_or_flow_are_not_accounted() {
    let mut account = loaded(Trust::Dscp);
    assert_eq!(
        run(
            &account,
            &TestFrame::new(Stamp {
                run: RUN + 1,
                ..stamp(3, 0)
            })
            .octets()
        ),
        DROP
    );
    assert_eq!(run(&account, &TestFrame::new(stamp(8, 0)).octets()), DROP);
    assert_eq!(account.flows().unwrap(), []);
    let port = account.port().unwrap();
    assert_eq!((port.frames, port.test_frames, port.foreign_run), (2, 0, 1));
    assert_eq!(port.malformed, [(Malformed::Stamp, 1)]);
    assert_eq!(kinds(&mut account), [OffenceKind::Malformed]);
}

#[test]
fn root_logged_phases_leave_a_record_of_each_arrival() {
    let mut account = loaded(Trust::Dscp);
    let mut flows = flows(8);
    flows[3].log_phases = Phase::Storm.bit();
    account.configure(&config(Trust::Dscp), &flows).unwrap();
    run_all(&account, [0, 1, 1]);
    run(
        &account,
        &TestFrame::new(Stamp {
            phase: Phase::Probe,
            ..stamp(3, 2)
        })
        .octets(),
    );
    run(&account, &TestFrame::new(stamp(4, 0)).octets());
    let rings = account.take_rings().unwrap();
    assert_eq!(rings.arrivals.len(), 3);
    assert!(
        rings.arrivals.iter().all(|arrival| arrival.flow == 3
            && arrival.phase == Phase::Storm
            && arrival.latency > 0)
    );
    assert!(rings.arrivals.is_sorted_by_key(|arrival| arrival.time));
    assert_eq!(rings.arrivals_lost, 0);
    assert_eq!(
        rings
            .offences
            .iter()
            .filter(|offence| offence.kind == OffenceKind::Logged)
            .count(),
        3
    );
    assert_eq!(
        rings
            .offences
            .iter()
            .filter(|offence| offence.kind == OffenceKind::Duplicate)
            .count(),
        1
    );
    assert!(
        account.take_rings().unwrap().arrivals.is_empty(),
        "taken once"
    );
}

#[test]
fn root_records_that_do_not_fit_are_counted() {
    let mut account = loaded(Trust::Dscp);
    let mut flows = flows(8);
    flows[3].log_phases = Phase::Storm.bit();
    account.configure(&config(Trust::Dscp), &flows).unwrap();
    let duplicate = TestFrame::new(stamp(3, 0)).octets();
    account.test_run(&duplicate, 150_000).unwrap();
    let rings = account.take_rings().unwrap();
    assert!(rings.arrivals.len() >= 100_000, "{}", rings.arrivals.len());
    assert_eq!(rings.arrivals.len() as u64 + rings.arrivals_lost, 150_000);
    let logged = rings
        .offences
        .iter()
        .filter(|offence| offence.kind == OffenceKind::Logged)
        .count();
    let duplicates = rings.offences.len() - logged;
    assert!(
        duplicates >= 512,
        "logged arrivals leave room for offences: {logged} and {duplicates}"
    );
    assert_eq!(
        duplicates as u64 + account.port().unwrap().offences_lost,
        149_999
    );
    assert_eq!(only_flow(&account).duplicate, 149_999);
}

#[test]
fn root_offences_keep_the_frame() {
    let mut account = loaded(Trust::Dscp);
    for payload in [22, 1000] {
        let mut octets = TestFrame {
            payload,
            ..TestFrame::new(stamp(3, payload as u64))
        }
        .octets();
        octets[34] ^= 1;
        let before = clock::now();
        run(&account, &octets);
        let offences = account.take_rings().unwrap().offences;
        assert_eq!(offences.len(), 1);
        assert_eq!(
            (offences[0].kind, offences[0].malformed),
            (OffenceKind::Corrupt, None)
        );
        assert_eq!(offences[0].length as usize, octets.len());
        assert_eq!(
            hex(&offences[0].octets),
            hex(&octets[..octets.len().min(256)])
        );
        assert!(offences[0].time >= before);
    }
}

#[test]
fn root_pause_and_pfc_are_counted_by_class() {
    let mut account = loaded(Trust::Dscp);
    for control in [
        MacControl::Pause { quanta: 0x1234 },
        MacControl::Pause { quanta: 0 },
        MacControl::Pfc {
            vector: 0x0009,
            quanta: [5, 6, 7, 0xffff, 9, 0, 0, 0],
        },
        MacControl::Pfc {
            vector: 0x0008,
            quanta: [1; 8],
        },
        MacControl::Pfc {
            vector: 0xff08,
            quanta: [0; 8],
        },
        MacControl::Pfc {
            vector: 0,
            quanta: [3; 8],
        },
        MacControl::Pfc {
            vector: 0xff00,
            quanta: [3; 8],
        },
    ] {
        assert_eq!(run(&account, &control.emit(PEER)), DROP);
    }
    let port = account.port().unwrap();
    assert_eq!((port.frames, port.other, port.own_control), (7, 0, 0));
    assert_eq!(
        (port.pause.xoff, port.pause.xon, port.pause.last_quanta),
        (1, 1, 0)
    );
    assert_eq!((port.pfc_frames, port.pfc_empty), (5, 2));
    let classes = port
        .pfc
        .map(|class| (class.xoff, class.xon, class.last_quanta));
    assert_eq!(
        classes,
        [
            (1, 0, 5),
            (0, 0, 0),
            (0, 0, 0),
            (2, 1, 0),
            (0, 0, 0),
            (0, 0, 0),
            (0, 0, 0),
            (0, 0, 0)
        ]
    );
    let counters = account.port_counters().unwrap();
    assert_eq!(
        (counters.pfc.classes()[3].frames(), counters.pause.frames()),
        (3, 2)
    );
    let rings = account.take_rings().unwrap();
    assert_eq!(rings.controls.len(), 7);
    assert_eq!(
        (
            rings.controls[0].opcode,
            rings.controls[0].vector,
            rings.controls[0].quanta[0]
        ),
        (0x0001, 0, 0x1234)
    );
    assert_eq!(
        (rings.controls[4].opcode, rings.controls[4].vector),
        (0x0101, 0xff08)
    );
    assert_eq!(rings.controls[2].quanta, [5, 6, 7, 0xffff, 9, 0, 0, 0]);
    assert!(rings.offences.is_empty());
}

#[test]
fn root_the_pause_view_follows_xoff_refresh_shorter_time_and_xon() {
    let mut account = AccountProgram::load(Sizes {
        flows: 1,
        windows: 8,
    })
    .unwrap();
    // So slow that no pause ends while the test runs: 65535 quanta last 33.55392 s.
    let slow = Config {
        line_rate: 1_000_000,
        ..config(Trust::Dscp)
    };
    account.configure(&slow, &flows(1)).unwrap();
    let view = account.pause_view();
    let reader = std::thread::spawn({
        let view = view.clone();
        move || view.state(3)
    });
    assert_eq!(reader.join().unwrap(), PauseState::default());
    let pfc = |time| {
        let mut quanta = [0; 8];
        quanta[3] = time;
        run(&account, &MacControl::Pfc { vector: 8, quanta }.emit(PEER));
        account.port_counters().unwrap().pfc.classes()[3].last.at
    };
    // An XON to a class that is not paused says nothing new.
    pfc(0);
    assert_eq!(view.state(3), PauseState::default());
    let first = pfc(0xffff);
    assert_eq!(
        (view.state(3).since, view.state(3).until),
        (first, first + 33_553_920_000)
    );
    let refresh = pfc(0xffff);
    assert_eq!(
        (view.state(3).since, view.state(3).until),
        (first, refresh + 33_553_920_000)
    );
    let shorter = pfc(30_000);
    assert_eq!(
        (view.state(3).since, view.state(3).until),
        (first, shorter + 15_360_000_000)
    );
    let ended = pfc(0);
    assert_eq!(
        view.state(3),
        PauseState {
            since: first,
            until: ended
        }
    );
    pfc(0);
    assert_eq!(
        view.state(3),
        PauseState {
            since: first,
            until: ended
        }
    );
    let again = pfc(2);
    assert_eq!(
        (view.state(3).since, view.state(3).until),
        (again, again + 1_024_000)
    );
    assert_eq!(
        (view.state(2), view.state(8)),
        (PauseState::default(), PauseState::default())
    );
    run(&account, &MacControl::Pause { quanta: 10 }.emit(PEER));
    assert_eq!(
        view.state(8).until,
        account.port_counters().unwrap().pause.last.at + 5_120_000
    );
    account.configure(&slow, &flows(1)).unwrap();
    assert_eq!(view.state(3), PauseState::default());
}

#[test]
fn root_the_testers_own_pause_frames_are_told_by_their_source() {
    let mut account = loaded(Trust::Dscp);
    run(
        &account,
        &MacControl::Pause { quanta: 1 }.emit(STORM_SOURCE),
    );
    run(
        &account,
        &MacControl::Pfc {
            vector: 1,
            quanta: [1; 8],
        }
        .emit(STORM_SOURCE),
    );
    run(
        &account,
        &MacControl::Pfc {
            vector: 1,
            quanta: [1; 8],
        }
        .emit(PEER),
    );
    let port = account.port().unwrap();
    assert_eq!(
        (port.own_control, port.pfc_frames, port.pause.xoff),
        (2, 1, 0)
    );
    let rings = account.take_rings().unwrap();
    let kinds: Vec<_> = rings.offences.iter().map(|offence| offence.kind).collect();
    assert_eq!(kinds, [OffenceKind::OwnControl; 2]);
    assert_eq!(rings.controls.len(), 1);
    // Only the frame of the DUT pauses the sender, or is in the log.
    let view = account.pause_view();
    let paused: Vec<_> = (0..9)
        .filter(|place| view.state(*place) != PauseState::default())
        .collect();
    assert_eq!(paused, [0]);
    // Also behind a tag that a device put before it, and to another address.
    let frame = MacControl::Pause { quanta: 1 }.emit(STORM_SOURCE);
    run(
        &account,
        &[&frame[..12], &[0x81, 0x00, 0x60, 0x00], &frame[12..]].concat(),
    );
    run(&account, &[&[2, 0, 0, 0, 0, 9], &frame[6..]].concat());
    run(
        &account,
        &[
            &[2, 0, 0, 0, 0, 9],
            &MacControl::Pause { quanta: 1 }.emit(PEER)[6..],
        ]
        .concat(),
    );
    let port = account.port().unwrap();
    assert_eq!(port.own_control, 4);
    // That of another source is malformed: it has another address.
    assert_eq!(
        (
            port.frames,
            port.malformed.iter().map(|(_, count)| count).sum::<u64>()
        ),
        (6, 1)
    );
}

/// A frame of each kind that cannot be read, with the action on it.
fn malformed_frames() -> Vec<(Malformed, Vec<u8>, u32)> {
    let test = TestFrame::new(stamp(3, 0));
    let v4 = test.octets();
    let v6 = TestFrame {
        v6: true,
        ..test.clone()
    }
    .octets();
    let tagged = |count: usize| {
        TestFrame {
            tags: vec![(0x8100, 0); count],
            ..test.clone()
        }
        .octets()
    };
    let with = |frame: &[u8], at: usize, octets: &[u8]| {
        let mut frame = frame.to_vec();
        frame[at..at + octets.len()].copy_from_slice(octets);
        frame
    };
    let pfc = MacControl::Pfc {
        vector: 8,
        quanta: [9; 8],
    }
    .emit(PEER);
    let pause = MacControl::Pause { quanta: 9 }.emit(PEER);
    let tag = [0x81, 0x00, 0x60, 0x00];
    vec![
        (Malformed::EthernetTruncated, tagged(1)[..17].to_vec(), PASS),
        (Malformed::EthernetTruncated, tagged(2)[..21].to_vec(), PASS),
        (Malformed::TooManyTags, tagged(3), PASS),
        (Malformed::Ipv4Truncated, v4[..33].to_vec(), PASS),
        (Malformed::Ipv4Truncated, v4[..v4.len() - 1].to_vec(), PASS),
        (Malformed::IpVersion, with(&v4, 14, &[0x65]), PASS),
        (Malformed::IpVersion, with(&v6, 14, &[0x45]), PASS),
        (Malformed::Ipv6Truncated, v6[..53].to_vec(), PASS),
        (Malformed::Ipv6Truncated, v6[..v6.len() - 1].to_vec(), PASS),
        (Malformed::UdpTruncated, with(&v4, 38, &[0, 27]), PASS),
        (Malformed::UdpTruncated, with(&v6, 58, &[0, 7]), PASS),
        (Malformed::ControlTruncated, pfc[..33].to_vec(), DROP),
        (Malformed::ControlTruncated, pause[..17].to_vec(), DROP),
        (Malformed::ControlOpcode, with(&pause, 14, &[1, 0]), DROP),
        (
            Malformed::ControlTagged,
            [&pfc[..12], &tag, &pfc[12..]].concat(),
            DROP,
        ),
        (
            Malformed::ControlDestination,
            with(&pfc, 0, &[2, 0, 0, 0, 0, 1]),
            DROP,
        ),
        (Malformed::Stamp, with(&v4, 42, &[0]), DROP),
        (Malformed::Stamp, with(&v4, 38, &[0, 25]), DROP),
        (Malformed::Ipv4Checksum, with(&v4, 22, &[63]), PASS),
    ]
}

#[test]
fn root_malformed_frames_are_counted_by_reason() {
    let mut account = loaded(Trust::Dscp);
    for (reason, frame, action) in malformed_frames() {
        account.configure(&config(Trust::Dscp), &flows(8)).unwrap();
        assert_eq!(run(&account, &frame), action, "{reason:?} {}", hex(&frame));
        let port = account.port().unwrap();
        assert_eq!(port.malformed, [(reason, 1)], "{}", hex(&frame));
        assert_eq!(
            (port.frames, port.other, port.test_frames, port.pfc_frames),
            (1, 0, 0, 0)
        );
        let offences = account.take_rings().unwrap().offences;
        assert_eq!(offences.len(), 1);
        assert_eq!(
            (offences[0].kind, offences[0].malformed),
            (OffenceKind::Malformed, Some(reason))
        );
    }
    let reasons: Vec<_> = malformed_frames()
        .into_iter()
        .map(|(reason, ..)| reason)
        .collect();
    assert!(Malformed::ALL.iter().all(|reason| reasons.contains(reason)));
}

#[test]
fn root_other_frames_pass() {
    let account = loaded(Trust::Dscp);
    let test = TestFrame::new(stamp(3, 0)).octets();
    let arp = [&test[..12], &[0x08, 0x06], &[0; 46]].concat();
    let mut port_53 = test.clone();
    port_53[36..38].copy_from_slice(&53u16.to_be_bytes());
    let length_field = [&test[..12], &[0x00, 0x26], &[0x42; 46]].concat();
    for frame in [&arp, &port_53, &length_field] {
        assert_eq!(run(&account, frame), PASS);
    }
    let port = account.port_counters().unwrap();
    assert_eq!((port.frames(), port.other, port.test_frames), (3, 3, 0));
    assert_eq!(
        port.octets,
        (arp.len() + port_53.len() + length_field.len()) as u64
    );
    assert_eq!(
        by_priority(&account),
        [0, 0, 0, 1, 0, 0, 0, 0],
        "the one that is IP"
    );
}

#[test]
fn root_without_a_configuration_nothing_counts() {
    let account = AccountProgram::load(Sizes {
        flows: 1,
        windows: 1,
    })
    .unwrap();
    assert_eq!(run(&account, &TestFrame::new(stamp(0, 0)).octets()), PASS);
    assert_eq!(account.port().unwrap(), Default::default());
}

#[test]
fn root_configuring_begins_anew() {
    let mut account = loaded(Trust::Dscp);
    run_all(&account, [0, 1, 1, 5, 4]);
    run(
        &account,
        &MacControl::Pfc {
            vector: 8,
            quanta: [9; 8],
        }
        .emit(PEER),
    );
    account.configure(&config(Trust::Dscp), &flows(8)).unwrap();
    assert_eq!(account.flows().unwrap(), []);
    assert_eq!(account.port().unwrap(), Default::default());
    assert_eq!(account.windows().unwrap(), [[0; 8]; 8]);
    let rings = account.take_rings().unwrap();
    assert_eq!(
        (
            rings.arrivals.len(),
            rings.controls.len(),
            rings.offences.len()
        ),
        (0, 0, 0)
    );
    run_all(&account, [0, 1]);
    let flow = only_flow(&account);
    assert_eq!((flow.frames, flow.duplicate, flow.reordered), (2, 0, 0));
}

#[test]
fn root_more_than_was_loaded_for_is_refused() {
    let mut account = AccountProgram::load(Sizes {
        flows: 2,
        windows: 8,
    })
    .unwrap();
    let message = |result: Result<(), XdpError>| result.unwrap_err().to_string();
    assert_eq!(
        message(account.configure(&config(Trust::Dscp), &flows(3))),
        "flows must be 0 to 2, found 3"
    );
    let wide = Config {
        windows: 9,
        ..config(Trust::Dscp)
    };
    assert_eq!(
        message(account.configure(&wide, &[FlowConfig::default()])),
        "windows must be 1 to 8, found 9"
    );
    assert!(matches!(
        AccountProgram::load(Sizes {
            flows: 4097,
            windows: 1
        }),
        Err(XdpError::OutOfRange(_))
    ));
}

#[test]
fn root_frames_on_several_cpus_at_once_are_each_counted_once() {
    let account = loaded(Trust::Dscp);
    // All send the same frames: each is received once, by whichever CPU came first.
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| run_all(&account, 0..1000));
        }
    });
    let flow = only_flow(&account);
    assert_eq!(
        (flow.frames, flow.duplicate, flow.beyond_window),
        (1000, 3000, 0)
    );
    assert_eq!(flow.latency.iter().sum::<u32>(), 1000);
    assert_eq!(account.port().unwrap().test_frames, 4000);
}
