//! Classification of frames on the host. The tests of `pfc-user` compare the program in the kernel
//! with it.

mod exercise;
mod frames;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use exercise::classified::{Class, classify};
use frames::{Frames, TestFrame};
use pfc_ebpf::stamp::{Phase, Stamp};
use pfc_ebpf::wire::Malformed;
use pfc_ebpf::wire::mac_control::MacControl;

const STAMP: Stamp = Stamp {
    run: 1,
    flow: 9,
    phase: Phase::Baseline,
    sequence: 5,
    time: 6,
};

/// The stamp of a test frame, and whether its datagram is intact.
fn test(frame: &[u8]) -> (Stamp, bool) {
    match classify(frame).class {
        Class::Test { stamp, datagram } => (stamp, datagram.is_intact(frame)),
        other => panic!("no test frame: {other:?}"),
    }
}

#[test]
fn a_test_frame_gives_its_stamp_whatever_stands_before_it() {
    for tags in [
        vec![],
        vec![(0x8100, 0xa001)],
        vec![(0x88a8, 0xa001), (0x8100, 0x2002)],
    ] {
        for (v6, options) in [(false, 0), (false, 40), (true, 0)] {
            for payload in [22, 23, 1000, 9000] {
                let frame = TestFrame {
                    tags: tags.clone(),
                    v6,
                    options: vec![1; options],
                    payload,
                    ..TestFrame::new(STAMP)
                };
                let classified = classify(&*frame.octets());
                assert_eq!(test(&frame.octets()), (STAMP, true));
                assert_eq!(classified.marks.dscp, Some(9));
                assert_eq!(classified.marks.tags as usize, tags.len());
                assert_eq!(
                    classified.marks.pcp,
                    if tags.is_empty() { None } else { Some(5) },
                    "the outermost"
                );
            }
        }
    }
}

#[test]
fn damage_behind_the_stamp_leaves_a_stamp_that_is_not_intact() {
    let mut octets = TestFrame {
        payload: 31,
        ..TestFrame::new(STAMP)
    }
    .octets();
    *octets.last_mut().unwrap() ^= 1;
    assert_eq!(test(&octets), (STAMP, false));
}

#[test]
fn padding_behind_the_datagram_is_no_part_of_it() {
    let mut octets = TestFrame::new(STAMP).octets();
    octets.extend([0xff; 9]);
    assert_eq!(test(&octets), (STAMP, true));
}

#[test]
fn a_tagged_control_frame_is_malformed() {
    let pause = MacControl::Pause { quanta: 1 }.emit([2; 6]);
    assert_eq!(
        classify(&pause[..]).class,
        Class::Control(MacControl::Pause { quanta: 1 })
    );
    let tagged = [&pause[..12], &[0x81, 0x00, 0x60, 0x00], &pause[12..]].concat();
    assert_eq!(
        classify(&*tagged).class,
        Class::Malformed(Malformed::ControlTagged)
    );
}

#[test]
fn fragments_other_ports_and_protocols_are_other() {
    let with = |at: usize, octets: &[u8]| {
        let mut frame = TestFrame {
            v6: true,
            ..TestFrame::new(STAMP)
        }
        .octets();
        frame[at..at + octets.len()].copy_from_slice(octets);
        classify(&*frame).class
    };
    assert_eq!(with(56, &53u16.to_be_bytes()), Class::Other, "port");
    assert_eq!(with(20, &[6]), Class::Other, "protocol");
    assert_eq!(with(20, &[0]), Class::Other, "hop-by-hop options");
    assert_eq!(with(20, &[44]), Class::Other, "fragment header");
}

/// Inputs that the fuzz target `frames` found or began with.
#[test]
fn seeds_are_survived() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/seeds/frames");
    let files: Vec<_> = fs::read_dir(folder).unwrap().flatten().collect();
    assert!(!files.is_empty());
    for file in files {
        println!("{}", file.path().display());
        exercise::exercise(&fs::read(file.path()).unwrap());
    }
    Frames::new(2)
        .take(5000)
        .for_each(|frame| exercise::exercise(&frame));
}

#[test]
fn no_frame_makes_it_panic_and_every_class_is_met() {
    let mut met = BTreeMap::new();
    for frame in Frames::new(1).take(50_000) {
        let class = match classify(&*frame).class {
            Class::Test { datagram, .. } => format!("test, intact {}", datagram.is_intact(&*frame)),
            Class::Control(control) => format!("control {:#06x}", control.opcode()),
            Class::Other => "other".to_owned(),
            Class::Malformed(reason) => format!("{reason:?}"),
        };
        *met.entry(class).or_insert(0) += 1;
    }
    // That a frame's headers are damaged shows only beside its stamp: `account` says so.
    assert_eq!(met.len(), 5 + Malformed::COUNT - 1, "{met:?}");
}

#[test]
fn every_truncation_of_a_frame_is_read_without_panic() {
    for tags in 0..4 {
        for v6 in [false, true] {
            let whole = TestFrame {
                tags: vec![(0x8100, 0); tags],
                v6,
                ..TestFrame::new(STAMP)
            }
            .octets();
            for length in 0..whole.len() {
                assert!(
                    matches!(classify(&whole[..length]).class, Class::Malformed(_)),
                    "{tags} tags, {length} octets"
                );
            }
        }
    }
}
