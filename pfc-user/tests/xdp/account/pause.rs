//! PAUSE and PFC frames.

use pfc_ebpf::abi::Trust;
use pfc_ebpf::abi::account::{Config, OffenceKind, PauseState};
use pfc_ebpf::wire::mac_control::{Deviation, MacControl};
use validator::driver::bpf::{AccountProgram, Sizes};

use super::{PEER, run};
use crate::xdp::{DROP, STORM_SOURCE, config, flows, loaded};

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
    assert_eq!(port.deviations, [(Deviation::ReservedVector, 2)]);
    let offences = rings.offences.iter().map(|offence| offence.kind);
    assert!(offences.eq([OffenceKind::Deviation; 2]));
}

#[test]
fn root_pause_and_pfc_of_another_form_are_counted_as_such_as_well() {
    let pfc = MacControl::Pfc {
        vector: 8,
        quanta: [5; 8],
    };
    let pause = MacControl::Pause { quanta: 5 };
    let with = |control: MacControl, at: usize, octet: u8| {
        let mut frame = control.emit(PEER).to_vec();
        frame[at] = octet;
        frame
    };
    let long = |control: MacControl, length: usize| {
        let mut frame = control.emit(PEER).to_vec();
        frame.resize(length, 0);
        frame
    };
    use Deviation::*;
    let cases: [(&str, Vec<u8>, &[Deviation]); 12] = [
        ("PFC", with(pfc, 6, PEER[0]), &[]),
        ("PAUSE", with(pause, 6, PEER[0]), &[]),
        ("of a group", with(pfc, 6, PEER[0] | 1), &[GroupSource]),
        ("upper octet", with(pfc, 16, 8), &[ReservedVector]),
        ("first octet behind the times", with(pfc, 34, 1), &[Padding]),
        ("last octet", with(pfc, 59, 1), &[Padding]),
        ("behind the time of PAUSE", with(pause, 18, 1), &[Padding]),
        ("PAUSE, upper octet of its time", with(pause, 16, 1), &[]),
        ("with the room of an FCS", long(pfc, 64), &[Length]),
        ("unpadded", long(pfc, 34), &[Length]),
        ("PAUSE, unpadded", long(pause, 59), &[Length]),
        ("PAUSE of a group", with(pause, 6, 1), &[GroupSource]),
    ];
    for (what, frame, expected) in cases {
        let mut account = loaded(Trust::Dscp);
        assert_eq!(run(&account, &frame), DROP);
        let port = account.port().unwrap();
        let found: Vec<_> = expected.iter().map(|deviation| (*deviation, 1)).collect();
        assert_eq!(port.deviations, found, "{what}");
        assert_eq!(port.pfc_frames + port.pause.xoff, 1, "{what}");
        let rings = account.take_rings().unwrap();
        assert_eq!(rings.controls.len(), 1, "{what}");
        assert_eq!(rings.offences.len(), expected.len().min(1), "{what}");
    }
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
    let ends = [0, 0, 0, again + 1_024_000, 0, 0, 0, 0, view.state(8).until];
    assert_eq!(view.ends(), ends);
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
    // The frame of another source is malformed: it has another address.
    assert_eq!(
        (
            port.frames,
            port.malformed.iter().map(|(_, count)| count).sum::<u64>()
        ),
        (6, 1)
    );
}
