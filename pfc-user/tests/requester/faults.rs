//! Each fault changes what it says, and nothing else.

use validator::agent::protocol::{FailureKind, State};
use validator::dut::requester::model::Model;
use validator_core::fault::requester::Fault;

use crate::requester::virtual_time::{FIRST_PSN, Outcome, READ, adapter, settings};

/// Asserts that `fault` changes the outcome of a DUT without a fault as `change` does.
#[track_caller]
fn changes(fault: &str, change: impl FnOnce(&mut Outcome)) {
    let mut expected = Outcome::of(&[]);
    let conforming = expected.clone();
    change(&mut expected);
    assert_ne!(expected, conforming, "{fault} changes something");
    assert_eq!(Outcome::of(&[fault.parse().unwrap()]), expected, "{fault}");
}

#[test]
fn without_a_fault_it_conforms() {
    let good = Outcome::of(&[]);
    assert_eq!(
        good.requests
            .iter()
            .map(|request| request.0)
            .collect::<Vec<_>>(),
        [0, 1000, 2000]
    );
    assert_eq!(
        (good.left, good.completions),
        (vec![Some(2), Some(1), Some(0)], vec![(3000, 12)])
    );
    assert_eq!(
        (good.state, good.flush, good.control, good.apm),
        (State::Error, (0, vec![5]), vec![0], Some(false))
    );
    assert_eq!(good.icrc, [true; 3]);
}

#[test]
fn retries_are_counted_wrong() {
    changes("one-retry-less", |outcome| {
        outcome.requests.pop();
        outcome.icrc.pop();
        outcome.left.pop();
        outcome.completions[0].0 = 2000;
    });
    changes("one-retry-more", |outcome| {
        let (_, psn, reth, opcode) = outcome.requests[0];
        outcome.requests.push((3000, psn, reth, opcode));
        outcome.icrc.push(true);
        outcome.left.push(Some(0));
        outcome.completions[0].0 = 4000;
    });
    changes("no-retry", |outcome| {
        outcome.requests.truncate(1);
        outcome.icrc.truncate(1);
        outcome.left.truncate(1);
        outcome.completions[0].0 = 1000;
        // There is no second request to answer, and the response to the first is too late.
        outcome.control = vec![12];
    });
    changes("keeps-count", |outcome| outcome.left = vec![Some(2); 3]);
}

#[test]
fn requests_are_wrong() {
    changes("changes-psn", |outcome| {
        for (retry, request) in outcome.requests.iter_mut().enumerate() {
            request.1 = (FIRST_PSN + retry as u32) & 0xff_ffff;
        }
    });
    changes("changes-reth", |outcome| {
        for (retry, request) in outcome.requests.iter_mut().enumerate() {
            request.2.address = READ.address + 1024 * retry as u64;
        }
    });
    changes("changes-p-key", |outcome| {
        outcome.headers.insert((0, 0x7fff));
    });
    changes("wrong-version", |outcome| {
        outcome.headers = [(1, 0xffff)].into();
    });
    changes("wrong-opcode", |outcome| {
        outcome
            .requests
            .iter_mut()
            .for_each(|request| request.3 = 0x0a)
    });
    changes("wrong-r-key", |outcome| {
        outcome
            .requests
            .iter_mut()
            .for_each(|request| request.2.r_key = !READ.r_key)
    });
    changes("wrong-length", |outcome| {
        outcome
            .requests
            .iter_mut()
            .for_each(|request| request.2.length = 1020)
    });
    changes("bad-icrc", |outcome| outcome.icrc = vec![false; 3]);
    changes("two-packets", |outcome| {
        let halves = |(time, psn, reth, opcode)| {
            let first = pfc_ebpf::wire::roce::Reth {
                length: 512,
                ..reth
            };
            let second = pfc_ebpf::wire::roce::Reth {
                address: reth.address + 512,
                ..first
            };
            [
                (time, psn, first, opcode),
                (time, (psn + 1) & 0xff_ffff, second, opcode),
            ]
        };
        outcome.requests = outcome.requests.iter().copied().flat_map(halves).collect();
        outcome.icrc = vec![true; 6];
        outcome.left = outcome.left.iter().flat_map(|left| [*left; 2]).collect();
    });
}

#[test]
fn times_are_wrong() {
    changes("short-timeout", |outcome| {
        outcome
            .requests
            .iter_mut()
            .for_each(|request| request.0 /= 2);
        outcome.completions[0].0 = 1500;
    });
    changes("long-timeout", |outcome| {
        outcome
            .requests
            .iter_mut()
            .for_each(|request| request.0 *= 5);
        outcome.completions[0].0 = 15_000;
    });
    changes("late-completion", |outcome| outcome.completions[0].0 = 8000);
}

#[test]
fn completions_and_the_state_are_wrong() {
    changes("two-completions", |outcome| {
        outcome.completions = vec![(3000, 12); 2]
    });
    changes("wrong-status", |outcome| outcome.completions[0].1 = 10);
    changes("wrong-status=22", |outcome| outcome.completions[0].1 = 22);
    changes("reports-success", |outcome| outcome.completions[0].1 = 0);
    changes("never-completes", |outcome| outcome.completions.clear());
    changes("no-flush", |outcome| outcome.flush = (0, vec![]));
    changes("stays-in-rts", |outcome| {
        outcome.state = State::Rts;
        // The request posted then is a READ like the first.
        outcome.flush = (3, vec![12]);
    });
    changes("ignores-answer", |outcome| outcome.control = vec![12]);
    changes("apm", |outcome| outcome.apm = Some(true));
}

#[test]
fn a_channel_is_refused() {
    for (fault, kind, message) in [
        (
            Fault::NoNeighbour,
            FailureKind::Neighbour,
            "no MAC address for 192.0.2.2 (fault no-neighbour)",
        ),
        (
            Fault::RefusesState,
            FailureKind::State,
            "cannot bring the queue pair to RTR: fault refuses-state",
        ),
    ] {
        let error = Model::new(adapter(), &[fault])
            .open(0, &settings(2, 14))
            .unwrap_err();
        assert_eq!((error.kind, error.message.as_str()), (kind, message));
    }
}

#[test]
fn every_fault_of_the_catalogue_has_an_effect() {
    let good = Outcome::of(&[]);
    for entry in Fault::CATALOGUE {
        let fault: Fault = entry.name.parse().unwrap();
        let refused = Model::new(adapter(), &[fault])
            .open(0, &settings(2, 14))
            .is_err();
        assert!(refused || Outcome::of(&[fault]) != good, "{fault}");
    }
}
