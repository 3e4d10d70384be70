//! The model without a fault.

use std::net::IpAddr;

use validator::agent::protocol::{FailureKind, OpenChannel, Read, State};
use validator::dut::requester::frame::Path;
use validator::dut::requester::model::{Adapter, Model};

use crate::requester::virtual_time::{
    Answer, FIRST_PSN, Lab, READ, START, TESTER_QUEUE_PAIR, adapter, settings,
};

const SUCCESS: u32 = 0;
const FLUSHED: u32 = 5;
const RETRIES_EXCEEDED: u32 = 12;

fn statuses(lab: &Lab) -> Vec<(u64, u32)> {
    lab.completed
        .iter()
        .map(|(_, completion)| (completion.work_request, completion.status))
        .collect()
}

#[test]
fn a_read_without_an_answer_is_sent_once_and_retried_as_often_as_asked() {
    for retry_count in 0..=7 {
        for timeout in 1..=31 {
            let lab = Lab::unanswered(&[], retry_count, timeout);
            let period = 4096u64 << timeout;
            let requests = lab.requests();
            let times: Vec<_> = requests.iter().map(|(time, ..)| *time).collect();
            let expected: Vec<_> = (0..=u64::from(retry_count))
                .map(|retry| START + retry * period)
                .collect();
            assert_eq!(
                times, expected,
                "retry count {retry_count}, time-out {timeout}"
            );
            for (_, bth, reth) in &requests {
                assert_eq!(
                    (bth.opcode, bth.psn, bth.destination, bth.ack_request),
                    (0x0c, FIRST_PSN, TESTER_QUEUE_PAIR, true)
                );
                assert_eq!((bth.pad, bth.version, bth.partition), (0, 0, 0xffff));
                assert_eq!(
                    (reth.address, reth.r_key, reth.length),
                    (READ.address, READ.r_key, READ.length)
                );
            }
            assert_eq!(
                lab.left,
                (0..=retry_count).rev().map(Some).collect::<Vec<_>>()
            );
            assert_eq!(lab.completed.len(), 1);
            let (time, completion) = lab.completed[0];
            assert_eq!(
                (completion.work_request, completion.status),
                (READ.work_request, RETRIES_EXCEEDED)
            );
            assert_eq!(time, START + (u64::from(retry_count) + 1) * period);
            let end = lab.query();
            assert_eq!(
                (end.state, end.psn, end.retries_left),
                (State::Error, 0, Some(0)),
                "the PSN has 24 bits"
            );
            assert_eq!(
                (end.retry_count, end.timeout, end.path_mtu),
                (retry_count, timeout, 1024)
            );
        }
    }
}

#[test]
fn frames_of_retries_differ_in_identification_and_icrc_alone() {
    let lab = Lab::unanswered(&[], 7, 1);
    let frames: Vec<&Vec<u8>> = lab.sent.iter().map(|(_, frame)| frame).collect();
    for pair in frames.windows(2) {
        let differs: Vec<usize> = (0..pair[0].len())
            .filter(|at| pair[0][*at] != pair[1][*at])
            .collect();
        assert!(
            differs
                .iter()
                .all(|at| matches!(at, 18 | 19 | 24 | 25 | 70..74)),
            "{differs:?}"
        );
        assert_ne!(pair[0][18..20], pair[1][18..20]);
        assert_ne!(pair[0][70..], pair[1][70..]);
        assert_eq!(pair[0].len(), 74);
    }
}

#[test]
fn a_read_of_each_path_mtu_over_each_ip_version_succeeds_when_it_is_answered() {
    let v6 = [0xfd00, 0, 0, 0, 0, 0, 0];
    let address =
        |last: u16| IpAddr::from(<[u16; 8]>::try_from([&v6[..], &[last]].concat()).unwrap());
    for path_mtu in [256, 512, 1024, 2048, 4096] {
        for (own, remote) in [
            (adapter().address, settings(0, 1).remote),
            (address(1), address(2)),
        ] {
            for length in [0, 1, 2, 3, u32::from(path_mtu)] {
                let settings = OpenChannel {
                    path_mtu,
                    remote,
                    ..settings(0, 1)
                };
                let mut lab = Lab::on(
                    Adapter {
                        address: own,
                        ..adapter()
                    },
                    &[],
                    &settings,
                );
                lab.post(Read { length, ..READ });
                assert_eq!(lab.requests()[0].2.length, length);
                lab.receive_answer(&lab.answer());
                lab.run();
                assert_eq!(
                    (lab.sent.len(), statuses(&lab)),
                    (1, vec![(READ.work_request, SUCCESS)]),
                    "{path_mtu} {own} {length}"
                );
                assert_eq!(lab.query().state, State::Rts);
            }
        }
    }
}

#[test]
fn an_answer_after_any_number_of_drops_succeeds_and_gives_all_retries_back() {
    for retry_count in 0..=7 {
        for drops in 0..=retry_count {
            let mut lab = Lab::open(&[], &settings(retry_count, 14));
            lab.post(READ);
            for _ in 0..drops {
                lab.step();
            }
            assert_eq!(lab.query().retries_left, Some(retry_count - drops));
            lab.receive_answer(&lab.answer());
            lab.run();
            assert_eq!(
                (lab.sent.len(), statuses(&lab)),
                (1 + usize::from(drops), vec![(77, SUCCESS)])
            );
            assert_eq!(lab.query().retries_left, Some(retry_count));

            // The next READ takes the next PSN and has all its retries.
            lab.post(Read {
                work_request: 78,
                ..READ
            });
            lab.run();
            assert_eq!(
                lab.requests().last().unwrap().1.psn,
                (FIRST_PSN + 1) & 0xff_ffff
            );
            assert_eq!(lab.sent.len(), 2 + usize::from(drops + retry_count));
            assert_eq!(statuses(&lab), [(77, SUCCESS), (78, RETRIES_EXCEEDED)]);
        }
    }
}

#[test]
fn an_answer_that_comes_after_the_last_time_out_is_too_late() {
    let mut lab = Lab::unanswered(&[], 1, 14);
    lab.receive_answer(&lab.answer());
    assert_eq!(
        (statuses(&lab), lab.query().state),
        (vec![(77, RETRIES_EXCEEDED)], State::Error)
    );
}

#[test]
fn the_timer_starts_when_the_request_has_left_and_never_twice_for_one_wait() {
    let mut lab = Lab::open(&[], &settings(1, 14));
    let period = 4096 << 14;
    lab.model.post_read(START, &READ).unwrap();
    assert_eq!(lab.model.next_event(), Some(0));
    assert!(lab.model.poll_transmit(START + 100).is_some());
    assert_eq!(lab.model.next_event(), Some(0), "it has not left yet");
    assert_eq!(lab.model.poll_transmit(START + 500), None);
    assert_eq!(lab.model.poll_transmit(START + 900), None);
    assert_eq!(lab.model.next_event(), Some(START + 500 + period));
    // A late poll yields one retry, not those of all the time that has passed.
    assert!(lab.model.poll_transmit(START + 10 * period).is_some());
    assert_eq!(lab.model.poll_transmit(START + 10 * period), None);
    assert_eq!(lab.model.next_event(), Some(START + 11 * period));
}

#[test]
fn with_time_out_0_it_waits_for_ever() {
    let lab = Lab::unanswered(&[], 7, 0);
    assert_eq!(
        (lab.sent.len(), lab.completed.len(), lab.query().state),
        (1, 0, State::Rts)
    );
}

#[test]
fn what_is_posted_before_and_after_the_error_is_flushed_in_order() {
    let mut lab = Lab::open(&[], &settings(1, 14));
    for work_request in [1, 2, 3] {
        lab.post(Read {
            work_request,
            ..READ
        });
    }
    assert_eq!(lab.sent.len(), 1, "one at a time");
    lab.run();
    lab.post(Read {
        work_request: 4,
        ..READ
    });
    lab.run();
    assert_eq!(lab.sent.len(), 2);
    assert_eq!(
        statuses(&lab),
        [
            (1, RETRIES_EXCEEDED),
            (2, FLUSHED),
            (3, FLUSHED),
            (4, FLUSHED)
        ]
    );
}

#[test]
fn reads_that_wait_are_sent_one_after_the_other() {
    let mut lab = Lab::open(&[], &settings(0, 14));
    for work_request in [1, 2] {
        lab.post(Read {
            work_request,
            ..READ
        });
    }
    for sent in [1, 2] {
        assert_eq!(lab.sent.len(), sent);
        lab.receive_answer(&lab.answer());
    }
    let psns: Vec<u32> = lab.requests().iter().map(|(_, bth, _)| bth.psn).collect();
    assert_eq!(
        (psns, statuses(&lab)),
        (vec![FIRST_PSN, 0], vec![(1, SUCCESS), (2, SUCCESS)])
    );
}

#[test]
fn a_wrong_answer_is_none() {
    let lab = || {
        let mut lab = Lab::open(&[], &settings(0, 14));
        lab.post(READ);
        lab
    };
    let right = lab().answer();
    let to_dut = lab().path.reversed();
    let of = |answer: Answer| answer.frame(&to_dut);
    let path = |change: fn(&mut Path)| {
        let mut path = to_dut;
        change(&mut path);
        right.frame(&path)
    };
    let flipped = |at: usize| {
        let mut frame = of(right);
        let at = if at == usize::MAX {
            frame.len() - 1
        } else {
            at
        };
        frame[at] ^= 1;
        frame
    };
    let wrong: [(&str, Vec<u8>); 20] = [
        (
            "opcode of READ Response First",
            of(Answer {
                opcode: 0x0d,
                ..right
            }),
        ),
        (
            "opcode of Acknowledge",
            of(Answer {
                opcode: 0x11,
                ..right
            }),
        ),
        (
            "partition",
            of(Answer {
                partition: 0xfffe,
                ..right
            }),
        ),
        (
            "queue pair",
            of(Answer {
                queue_pair: right.queue_pair + 1,
                ..right
            }),
        ),
        (
            "next PSN",
            of(Answer {
                psn: right.psn & 0xff_fffe,
                ..right
            }),
        ),
        (
            "RNR NAK",
            of(Answer {
                syndrome: 0x20,
                ..right
            }),
        ),
        (
            "NAK",
            of(Answer {
                syndrome: 0x60,
                ..right
            }),
        ),
        (
            "one octet less",
            of(Answer {
                length: 1023,
                ..right
            }),
        ),
        (
            "one octet more",
            of(Answer {
                length: 1025,
                ..right
            }),
        ),
        ("no payload", of(Answer { length: 0, ..right })),
        ("ICRC", flipped(usize::MAX)),
        ("payload", flipped(100)),
        ("header checksum", flipped(24)),
        ("EtherType", flipped(13)),
        ("UDP port", flipped(37)),
        ("MAC address", path(|path| path.peer_mac[5] ^= 1)),
        (
            "own address",
            path(|path| path.peer = IpAddr::from([192, 0, 2, 9])),
        ),
        (
            "the other end's address",
            path(|path| path.address = IpAddr::from([192, 0, 2, 9])),
        ),
        ("half of it", of(right)[..500].to_vec()),
        ("nothing", Vec::new()),
    ];
    for (what, frame) in wrong {
        let mut lab = lab();
        lab.receive(&frame);
        assert!(lab.completed.is_empty(), "{what}");
        lab.run();
        assert_eq!(statuses(&lab), [(77, RETRIES_EXCEEDED)], "{what}");
    }
    // Ethernet's padding and a limited member of the partition are not errors.
    let mut padded = of(Answer {
        partition: 0x7fff,
        ..right
    });
    padded.extend([0; 6]);
    let mut lab = lab();
    lab.receive(&padded);
    assert_eq!(statuses(&lab), [(77, SUCCESS)]);
}

#[test]
fn no_frame_makes_it_panic() {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut random = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    for case in 0..20_000 {
        let mut lab = Lab::open(&[], &settings(1, 14));
        lab.post(Read { length: 16, ..READ });
        let mut frame = Answer {
            length: 16,
            ..lab.answer()
        }
        .frame(&lab.path.reversed());
        if case % 4 == 0 {
            frame = (0..random() % 200).map(|_| random() as u8).collect();
        } else {
            frame.truncate(frame.len() - (random() % 90).saturating_sub(40) as usize % frame.len());
            for _ in 0..1 + random() % 3 {
                let at = random() as usize % frame.len();
                frame[at] = random() as u8;
            }
        }
        lab.receive(&frame);
        lab.run();
        assert_eq!(lab.completed.len(), 1, "{frame:02x?}");
    }
}

#[test]
fn there_is_one_queue_pair_at_a_time_and_never_the_same_again() {
    let mut model = Model::new(adapter(), &[]);
    let none = "there is no queue pair: open one first";
    assert_eq!(model.query().unwrap_err().to_string(), none);
    assert_eq!(model.post_read(0, &READ).unwrap_err().to_string(), none);
    let first = model.open(0, &settings(2, 14)).unwrap();
    let error = model.open(0, &settings(2, 14)).unwrap_err();
    assert_eq!(
        (error.kind, error.message.as_str()),
        (
            FailureKind::Request,
            "there is a queue pair already: close it first"
        )
    );
    model.post_read(0, &READ).unwrap();
    model.close();
    assert_eq!(
        (
            model.poll_transmit(0),
            model.next_event(),
            model.completions(0)
        ),
        (None, None, Vec::new())
    );
    let second = model.open(0, &settings(2, 14)).unwrap();
    assert_ne!(first.queue_pair, second.queue_pair);
    assert_eq!(second.attributes, model.query().unwrap());
    assert_eq!(
        (
            second.attributes.state,
            second.attributes.psn,
            second.attributes.retries_left
        ),
        (State::Rts, FIRST_PSN, Some(2))
    );
}

#[test]
fn attributes_that_cannot_be_had_are_refused_with_what_was_expected() {
    let mut model = Model::new(
        Adapter {
            active_mtu: 1024,
            ..adapter()
        },
        &[],
    );
    let base = settings(2, 14);
    let remote = "fd00::2".parse().unwrap();
    for (settings, kind, message) in [
        (
            OpenChannel {
                path_mtu: 300,
                ..base.clone()
            },
            FailureKind::Request,
            "path MTU: expected 256, 512, 1024, 2048 or 4096, found 300",
        ),
        (
            OpenChannel {
                path_mtu: 2048,
                ..base.clone()
            },
            FailureKind::State,
            "cannot bring the queue pair to RTR: expected a path MTU of at most 1024, the port's, \
             found 2048",
        ),
        (
            OpenChannel {
                remote,
                ..base.clone()
            },
            FailureKind::State,
            "cannot bring the queue pair to RTR: expected a remote address of the same IP version \
             as 192.0.2.1, found fd00::2",
        ),
    ] {
        let error = model.open(0, &settings).unwrap_err();
        assert_eq!((error.kind, error.message.as_str()), (kind, message));
    }
    model.open(0, &base).unwrap();
    let error = model
        .post_read(
            0,
            &Read {
                length: 1025,
                ..READ
            },
        )
        .unwrap_err();
    assert_eq!(
        error.message,
        "only READs of one packet are simulated: expected at most 1024 octets, found 1025"
    );
    let refused = (0..).find_map(|_| model.post_read(0, &READ).err()).unwrap();
    assert_eq!(refused.message, "the send queue is full: 1024 READs wait");
}
