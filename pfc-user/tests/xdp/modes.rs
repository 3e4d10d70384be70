//! Modes of counting: they differ in cost, and in no count.

use pfc_ebpf::abi::Trust;
use pfc_ebpf::abi::account::{BATCH, Clock, Config, PortCounters};
use pfc_ebpf::stamp::{LEN, MASK_40, Phase, Stamp, is_sampled};
use pfc_ebpf::wire::mac_control::MacControl;
use validator::driver::bpf::{AccountProgram, Sizes, XdpError};
use validator::driver::kernel::{clock, realtime};
use validator_core::evidence::pfc::FlowReceived;

use crate::frames::{Frames, TestFrame};
use crate::xdp::{config, flows, stamp};

const PEER: [u8; 6] = [0x02, 0, 0, 0, 0, 5];

fn loaded(config: &Config) -> AccountProgram {
    let mut account = AccountProgram::load(Sizes {
        flows: 8,
        windows: 8,
    })
    .unwrap();
    account.configure(config, &flows(8)).unwrap();
    account
}

fn with(clock: Clock, exclusive: bool) -> Config {
    Config {
        clock: clock as u8,
        exclusive: exclusive.into(),
        ..config(Trust::Dscp)
    }
}

/// All counts, without times and what goes by them.
fn counts(account: &AccountProgram) -> (PortCounters, Vec<FlowReceived>) {
    let mut port = account.port_counters().unwrap();
    port.pfc
        .last
        .iter_mut()
        .chain([&mut port.pause.last])
        .for_each(|last| last.at = 0);
    let flows = account.flows().unwrap().into_iter();
    let timeless = |flow| FlowReceived {
        first: 0,
        last: 0,
        latency_max: 0,
        latency_mean: 0,
        latency: [0; 32],
        ..flow
    };
    (port, flows.map(timeless).collect())
}

#[test]
fn root_every_clock_and_way_to_share_gives_the_same_counts() {
    let modes = [
        (Clock::Exact, false),
        (Clock::Exact, true),
        (Clock::Batched, false),
        (Clock::Batched, true),
    ];
    let accounts = modes.map(|(clock, exclusive)| loaded(&with(clock, exclusive)));
    for (number, octets) in Frames::new(21)
        .filter(|octets| octets.len() >= 14)
        .take(2000)
        .enumerate()
    {
        // Runs several at once now and then, which takes the kernel longer. One by one, all are too
        // far apart to share a reading of the clock.
        let repeat = if number % 25 == 0 { 40 } else { 1 };
        let actions = accounts
            .each_ref()
            .map(|account| account.test_run(&octets, repeat).unwrap().action);
        assert!(
            actions.iter().all(|action| *action == actions[0]),
            "{actions:?}"
        );
    }
    let all = accounts.each_ref().map(counts);
    assert!(all[0].1.iter().map(|flow| flow.frames).sum::<u64>() > 100);
    assert!(
        all[0].1.iter().any(|flow| flow.duplicate > 0)
            && all[0].1.iter().any(|flow| flow.reordered > 0)
    );
    assert!(all[1..].iter().all(|other| *other == all[0]));
    for account in &accounts {
        for flow in account.flows().unwrap() {
            assert_eq!(
                flow.latency
                    .iter()
                    .map(|count| u64::from(*count))
                    .sum::<u64>(),
                flow.frames
            );
        }
        let windows = account.windows().unwrap().into_iter();
        let by_window = windows.map(|window| window.iter().copied().map(u64::from).sum::<u64>());
        let by_flow = account.flows().unwrap().into_iter();
        let by_flow = by_flow.map(|flow| flow.frames);
        assert_eq!(by_window.sum::<u64>(), by_flow.sum::<u64>());
    }
}

/// Number of times that each arrival time was given, for this many duplicates of one frame that
/// came at once.
fn readings(account: &mut AccountProgram, stamp: Stamp, frames: u32) -> Vec<usize> {
    account
        .test_run(&TestFrame::new(stamp).octets(), frames + 1)
        .unwrap();
    let offences = account.take_rings().unwrap().offences;
    assert_eq!(offences.len(), frames as usize);
    offences
        .chunk_by(|a, b| a.time == b.time)
        .map(<[_]>::len)
        .collect()
}

#[test]
fn root_one_reading_of_the_clock_serves_a_batch_where_it_may() {
    let once = |readings: &[usize]| readings.iter().all(|count| *count == 1);
    let ago = |back: u64| Stamp {
        time: (clock::now() - back) & MASK_40,
        ..stamp(3, 0)
    };
    assert!(once(&readings(
        &mut loaded(&with(Clock::Exact, false)),
        ago(1_000_000),
        200
    )));
    let found = readings(
        &mut loaded(&with(Clock::Batched, false)),
        ago(1_000_000),
        200,
    );
    // The first is distinct, and so no offence.
    assert!(
        found.iter().all(|count| *count <= BATCH as usize),
        "{found:?}"
    );
    assert!(found.contains(&(BATCH as usize)), "{found:?}");
    // A reading before the stamp would be a latency below nothing.
    let ahead = Stamp {
        time: (clock::now() + 500_000_000_000) & MASK_40,
        ..stamp(3, 0)
    };
    assert!(once(&readings(
        &mut loaded(&with(Clock::Batched, false)),
        ahead,
        200
    )));
}

#[test]
fn root_logged_arrivals_have_each_their_own_time() {
    let mut account = loaded(&with(Clock::Batched, false));
    let mut logged = flows(8);
    logged[3].log_phases = Phase::Storm.bit();
    account
        .configure(&with(Clock::Batched, false), &logged)
        .unwrap();
    account
        .test_run(&TestFrame::new(stamp(3, 0)).octets(), 200)
        .unwrap();
    let arrivals = account.take_rings().unwrap().arrivals;
    assert_eq!(arrivals.len(), 200);
    assert!(arrivals.is_sorted_by(|a, b| a.time < b.time));
}

#[test]
fn root_of_a_sample_the_checksums_are_verified_and_of_others_not() {
    let account = loaded(&Config {
        verify_every: 16,
        ..config(Trust::Dscp)
    });
    let (sample, rest): (Vec<u64>, Vec<u64>) =
        (0..64).partition(|sequence| is_sampled(*sequence, 16));
    // Some of the damaged frames are in the sample, the others are not.
    let damaged = [sample[1], sample[2], rest[0], rest[16], rest[47]];
    for sequence in 0..64 {
        account
            .test_run(&frame(sequence, damaged.contains(&sequence)), 1)
            .unwrap();
    }
    let flow = account.flows().unwrap().remove(0);
    assert_eq!(
        (flow.frames, flow.verified, flow.corrupt),
        (64, Some(sample.len() as u64), 2)
    );
}

/// A frame of flow 3, damaged in its last octet or not.
fn frame(sequence: u64, damaged: bool) -> Vec<u8> {
    let mut octets = TestFrame {
        payload: 100,
        ..TestFrame::new(stamp(3, sequence))
    }
    .octets();
    *octets.last_mut().unwrap() ^= damaged as u8;
    octets
}

#[test]
fn root_a_sample_has_frames_of_every_lane_that_a_dut_deals_them_to() {
    let mut account = loaded(&Config {
        verify_every: 16,
        ..config(Trust::Dscp)
    });
    for sequence in 0..4096 {
        account.test_run(&frame(sequence, true), 1).unwrap();
    }
    // Sequence numbers of the frames that were verified: each is an offence.
    let stamp_at = 14 + 20 + 8;
    let sequence = |octets: &[u8]| {
        Stamp::parse(octets[stamp_at..stamp_at + LEN].try_into().unwrap())
            .unwrap()
            .sequence
    };
    let offences = account.take_rings().unwrap().offences;
    let mut verified: Vec<_> = offences
        .iter()
        .map(|offence| sequence(&offence.octets))
        .collect();
    // A frame offends in several ways: its checksum is wrong, and its octets are others.
    verified.dedup();
    for lanes in [2, 4, 8, 16] {
        for lane in 0..lanes {
            assert!(
                verified.iter().any(|sequence| sequence % lanes == lane),
                "lane {lane} of {lanes}"
            );
        }
    }
    assert_eq!(
        verified,
        (0..4096)
            .filter(|sequence| is_sampled(*sequence, 16))
            .collect::<Vec<_>>()
    );
}

#[test]
fn root_a_sample_that_is_no_power_of_two_is_refused() {
    let mut account = AccountProgram::load(Sizes {
        flows: 8,
        windows: 8,
    })
    .unwrap();
    for verify_every in [0, 3] {
        let error = account
            .configure(
                &Config {
                    verify_every,
                    ..config(Trust::Dscp)
                },
                &flows(8),
            )
            .unwrap_err();
        assert!(
            matches!(error, XdpError::NoPowerOfTwo(found) if found == verify_every),
            "{error}"
        );
    }
}

#[test]
fn root_control_frames_that_the_log_has_no_room_for_are_counted() {
    let mut account = loaded(&config(Trust::Dscp));
    let pfc = MacControl::Pfc {
        vector: 0x81,
        quanta: [1, 2, 3, 4, 5, 6, 7, 8],
    };
    // More records than one CPU has room for. Pinned, as another CPU would have room again.
    assert!(realtime::pin(realtime::allowed_cpus()[0]));
    account.test_run(&pfc.emit(PEER), 300_000).unwrap();
    let rings = account.take_rings().unwrap();
    let lost = account.port().unwrap().controls_lost;
    assert!(lost > 0);
    assert_eq!(rings.controls.len() as u64 + lost, 300_000);
    assert!(
        rings
            .controls
            .iter()
            .all(|record| (record.vector, record.quanta) == (0x81, [1, 2, 3, 4, 5, 6, 7, 8]))
    );
    assert!(
        account.take_rings().unwrap().controls.is_empty(),
        "taken once"
    );
    account.configure(&config(Trust::Dscp), &flows(8)).unwrap();
    account
        .test_run(&MacControl::Pause { quanta: 9 }.emit(PEER), 3)
        .unwrap();
    let controls = account.take_rings().unwrap().controls;
    assert!(
        controls
            .iter()
            .all(|record| (record.opcode, record.vector, record.quanta)
                == (1, 0, [9, 0, 0, 0, 0, 0, 0, 0]))
    );
    assert_eq!(controls.len(), 3, "there is room again");
}
