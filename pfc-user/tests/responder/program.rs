//! The program run by BPF_PROG_TEST_RUN: in the kernel, without an interface.

use std::time::Duration;

use pfc_ebpf::abi::responder::{Counters, SNAP_LEN};
use pfc_ebpf::wire::roce;
use validator::driver::bpf::responder::Responder;
use validator::driver::kernel::clock;

use crate::common::{corpus, need_root};
use crate::responder::{QUEUE_PAIR, hex};
use crate::roce_frames::{Frames, Request, shapes};

const DROP: u32 = 1;
const PASS: u32 = 2;
/// A queue pair that is not the tester's.
const OTHER: u32 = QUEUE_PAIR + 1;

fn loaded() -> Responder {
    let mut responder = Responder::load().unwrap();
    responder.configure(QUEUE_PAIR).unwrap();
    responder
}

fn run(responder: &Responder, frame: &[u8]) -> u32 {
    responder.test_run(frame, 1).unwrap().action
}

fn passes(responder: &mut Responder, frame: &[u8], what: &str) {
    responder.configure(QUEUE_PAIR).unwrap();
    assert_eq!(run(responder, frame), PASS, "{what}");
    assert_eq!(
        responder.counters().unwrap(),
        Counters {
            passed: 1,
            ..Counters::default()
        },
        "{what}"
    );
    assert_eq!(responder.records().unwrap(), [], "{what}");
}

#[test]
fn root_a_request_of_every_shape_is_dropped_and_recorded() {
    if !need_root("root_a_request_of_every_shape_is_dropped_and_recorded") {
        return;
    }
    let mut responder = loaded();
    let requests = shapes(QUEUE_PAIR);
    let before = clock::now();
    for request in &requests {
        assert_eq!(run(&responder, &request.octets()), DROP, "{request:?}");
    }
    let after = clock::now();
    let records = responder.records().unwrap();
    assert_eq!(records.len(), requests.len());
    assert!(records.is_sorted_by_key(|record| record.time));
    for (record, request) in records.iter().zip(&requests) {
        assert_eq!(record.octets, request.octets());
        assert_eq!(record.length as usize, record.octets.len());
        assert!(
            (before..=after).contains(&record.time),
            "{before} {} {after}",
            record.time
        );
    }
    assert_eq!(
        responder.counters().unwrap(),
        Counters {
            dropped: requests.len() as u64,
            ..Counters::default()
        }
    );
    assert_eq!(responder.records().unwrap(), [], "taken already");
}

#[test]
fn root_packets_for_other_queue_pairs_pass() {
    if !need_root("root_packets_for_other_queue_pairs_pass") {
        return;
    }
    let mut responder = loaded();
    for place in 0..24 {
        assert_eq!(
            run(&responder, &Request::new(QUEUE_PAIR ^ 1 << place).octets()),
            PASS
        );
    }
    assert_eq!(
        responder.counters().unwrap(),
        Counters {
            other: 24,
            ..Counters::default()
        }
    );
    assert_eq!(responder.records().unwrap(), []);
    assert_eq!(
        run(&responder, &Request::new(QUEUE_PAIR | 0xff << 24).octets()),
        DROP,
        "FECN, BECN and what is reserved are no part"
    );
}

#[test]
fn root_everything_else_passes() {
    if !need_root("root_everything_else_passes") {
        return;
    }
    let mut responder = loaded();
    let request = Request::new(QUEUE_PAIR);
    for v6 in [false, true] {
        let request = Request {
            v6,
            ..request.clone()
        };
        passes(
            &mut responder,
            &Request {
                port: 4792,
                ..request.clone()
            }
            .octets(),
            "port",
        );
        passes(
            &mut responder,
            &Request {
                protocol: 6,
                ..request.clone()
            }
            .octets(),
            "TCP",
        );
        passes(
            &mut responder,
            &Request {
                tags: vec![(0x8100, 1); 3],
                ..request
            }
            .octets(),
            "three tags",
        );
    }
    for fragment in [0x2000, 0x0001, 0x1fff] {
        passes(
            &mut responder,
            &Request {
                fragment,
                ..request.clone()
            }
            .octets(),
            "fragment",
        );
    }
    let mut octets = request.octets();
    octets[12..14].copy_from_slice(&[0x89, 0x15]);
    passes(&mut responder, &octets, "RoCE of version 1");
    octets[12..14].copy_from_slice(&[0x08, 0x06]);
    passes(&mut responder, &octets, "ARP");
    for shape in shapes(QUEUE_PAIR) {
        let octets = shape.octets();
        for length in 14..octets.len() {
            passes(
                &mut responder,
                &octets[..length],
                &format!("{length} octets of {shape:?}"),
            );
        }
    }
}

#[test]
fn root_before_it_is_configured_everything_passes_and_nothing_counts() {
    if !need_root("root_before_it_is_configured_everything_passes_and_nothing_counts") {
        return;
    }
    let mut responder = Responder::load().unwrap();
    assert_eq!(responder.mode(), "none");
    assert_eq!(run(&responder, &Request::new(0).octets()), PASS);
    assert_eq!(responder.counters().unwrap(), Counters::default());
    responder.configure(0).unwrap();
    assert_eq!(run(&responder, &Request::new(0).octets()), DROP);
}

#[test]
fn root_a_new_queue_pair_begins_anew() {
    if !need_root("root_a_new_queue_pair_begins_anew") {
        return;
    }
    let mut responder = loaded();
    for frame in [
        Request::new(QUEUE_PAIR),
        Request::new(OTHER),
        Request {
            port: 1,
            ..Request::new(OTHER)
        },
    ] {
        run(&responder, &frame.octets());
    }
    assert_eq!(
        responder.counters().unwrap(),
        Counters {
            dropped: 1,
            lost: 0,
            other: 1,
            passed: 1
        }
    );
    responder.configure(OTHER).unwrap();
    assert_eq!(responder.counters().unwrap(), Counters::default());
    assert_eq!(responder.records().unwrap(), []);
    assert_eq!(run(&responder, &Request::new(QUEUE_PAIR).octets()), PASS);
    assert_eq!(run(&responder, &Request::new(OTHER).octets()), DROP);
    assert_eq!(responder.records().unwrap().len(), 1);
}

#[test]
fn root_of_a_long_frame_the_first_octets_are_kept_and_its_whole_length() {
    if !need_root("root_of_a_long_frame_the_first_octets_are_kept_and_its_whole_length") {
        return;
    }
    let mut responder = loaded();
    // Around the length of a record, and beyond one page, where frames have fragments.
    for payload in [
        SNAP_LEN - 75,
        SNAP_LEN - 74,
        SNAP_LEN - 73,
        1400,
        3500,
        4096,
        9000,
    ] {
        let payload: Vec<u8> = (0..payload).map(|at| (at * 7) as u8).collect();
        let octets = Request {
            payload,
            ..Request::new(QUEUE_PAIR)
        }
        .octets();
        assert_eq!(run(&responder, &octets), DROP, "{} octets", octets.len());
        let record = responder.records().unwrap().remove(0);
        assert_eq!(record.length as usize, octets.len());
        assert_eq!(record.octets, octets[..octets.len().min(SNAP_LEN)]);
        assert_eq!(
            run(&responder, &octets[..octets.len() - 1]),
            PASS,
            "the last octet of {} is missing",
            octets.len()
        );
    }
}

#[test]
fn root_what_does_not_fit_is_dropped_and_counted_as_lost() {
    if !need_root("root_what_does_not_fit_is_dropped_and_counted_as_lost") {
        return;
    }
    let mut responder = loaded();
    const COUNT: u32 = 3000;
    let frame = Request::new(QUEUE_PAIR).octets();
    assert_eq!(responder.test_run(&frame, COUNT).unwrap().action, DROP);
    let counters = responder.counters().unwrap();
    let records = responder.records().unwrap().len() as u64;
    assert_eq!(
        (counters.dropped, counters.other, counters.passed),
        (u64::from(COUNT), 0, 0)
    );
    assert!(
        counters.lost > 0 && records > 500,
        "{counters:?}, {records} records"
    );
    assert_eq!(counters.dropped, records + counters.lost);
    run(&responder, &frame);
    assert_eq!(responder.records().unwrap().len(), 1, "there is room again");
    assert_eq!(
        responder.counters().unwrap(),
        Counters {
            dropped: counters.dropped + 1,
            ..counters
        }
    );
}

#[test]
fn root_a_record_is_waited_for() {
    if !need_root("root_a_record_is_waited_for") {
        return;
    }
    let mut responder = loaded();
    assert!(!responder.wait(Duration::ZERO).unwrap());
    run(&responder, &Request::new(OTHER).octets());
    assert!(!responder.wait(Duration::ZERO).unwrap(), "it passed");
    run(&responder, &Request::new(QUEUE_PAIR).octets());
    assert!(responder.wait(Duration::ZERO).unwrap());
    assert_eq!(responder.records().unwrap().len(), 1);
    assert!(!responder.wait(Duration::ZERO).unwrap(), "taken");
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| responder.wait(Duration::from_secs(60)).unwrap());
        run(&responder, &Request::new(QUEUE_PAIR).octets());
        assert!(waiting.join().unwrap());
    });
}

#[test]
fn root_kernel_and_host_agree_on_arbitrary_frames() {
    if !need_root("root_kernel_and_host_agree_on_arbitrary_frames") {
        return;
    }
    let mut responder = loaded();
    let mut expected = Counters::default();
    let count = corpus(40_000, 40_000);
    // The kernel accepts none shorter than an Ethernet header here.
    for octets in Frames::new(21, QUEUE_PAIR)
        .filter(|octets| octets.len() >= 14)
        .take(count)
    {
        let mut records = Vec::new();
        let action = match roce::parse(&*octets) {
            Some(packet) if packet.bth.destination == QUEUE_PAIR => {
                expected.dropped += 1;
                records.push((
                    octets.len() as u32,
                    octets[..octets.len().min(SNAP_LEN)].to_vec(),
                ));
                DROP
            }
            Some(_) => {
                expected.other += 1;
                PASS
            }
            None => {
                expected.passed += 1;
                PASS
            }
        };
        assert_eq!(run(&responder, &octets), action, "{}", hex(&octets));
        let found: Vec<_> = responder
            .records()
            .unwrap()
            .into_iter()
            .map(|record| (record.length, record.octets))
            .collect();
        assert_eq!(found, records, "{}", hex(&octets));
    }
    assert_eq!(responder.counters().unwrap(), expected);
    assert!(
        [expected.dropped, expected.other, expected.passed]
            .iter()
            .all(|met| *met > count as u64 / 40),
        "{expected:?}"
    );
}

#[test]
fn root_frames_on_several_cpus_at_once_are_each_recorded_or_lost() {
    if !need_root("root_frames_on_several_cpus_at_once_are_each_recorded_or_lost") {
        return;
    }
    const THREADS: u64 = 4;
    const EACH: u32 = 500;
    let mut responder = loaded();
    std::thread::scope(|scope| {
        for thread in 0..THREADS as u32 {
            let frame = Request {
                psn: thread,
                ..Request::new(QUEUE_PAIR)
            }
            .octets();
            let responder = &responder;
            scope.spawn(move || assert_eq!(responder.test_run(&frame, EACH).unwrap().action, DROP));
        }
    });
    let counters = responder.counters().unwrap();
    assert_eq!(counters.dropped, THREADS * u64::from(EACH));
    let records = responder.records().unwrap();
    assert_eq!(records.len() as u64 + counters.lost, counters.dropped);
    assert!(records.is_sorted_by_key(|record| record.time));
}
