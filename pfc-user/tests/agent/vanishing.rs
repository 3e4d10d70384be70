//! One client at a time: its permitted requests, and the fate of its channel when it goes.

use std::net::Shutdown;

use validator::agent::protocol::{Failure, FailureKind};

use super::fake::{Call, Raw, Served, assert_failed, completion, open, open_channel};

const POLL: &str = r#"{"ask":"poll","wait_ms":10000}"#;

#[track_caller]
fn expect(served: &Served, calls: &[Call]) {
    for call in calls {
        assert_eq!(served.call(), *call);
    }
}

#[test]
fn a_second_client_is_told_to_go_away() {
    let served = Served::open();
    let mut first = Raw::welcome(&served);
    let mut second = Raw::connect(&served);
    let message = "the agent has a client already: wait until that one is done, or end it";
    assert_failed(
        &second.ask(r#"{"ask":"hello","version":1,"token":null}"#),
        FailureKind::Request,
        message,
    );
    second.ended();
    // The first is unaffected.
    assert_eq!(first.ask(&open())["answer"], "opened");
    drop(first);
    expect(
        &served,
        &[
            Call::Made,
            Call::Open(open_channel()),
            Call::Close,
            Call::Dropped,
        ],
    );
    Raw::welcome(&served);
}

#[test]
fn one_that_has_not_said_hello_keeps_nobody_out() {
    let served = Served::open();
    let silent = Raw::connect(&served);
    Raw::welcome(&served);
    drop(silent);
}

#[test]
fn one_after_the_other_is_no_second() {
    let served = Served::open();
    for _ in 0..50 {
        let mut raw = Raw::welcome(&served);
        assert_eq!(raw.ask(&open())["answer"], "opened");
    }
}

#[test]
fn a_client_that_vanishes_frees_its_channel() {
    let served = Served::open();
    let vanish: [fn(Raw); 3] = [
        drop,
        |raw| raw.0.shutdown(Shutdown::Write).unwrap(),
        |mut raw| raw.send(b"\0"),
    ];
    for vanish in vanish {
        let mut raw = Raw::welcome(&served);
        assert_eq!(raw.ask(&open())["answer"], "opened");
        vanish(raw);
        expect(
            &served,
            &[
                Call::Made,
                Call::Open(open_channel()),
                Call::Close,
                Call::Dropped,
            ],
        );
    }
}

#[test]
fn a_client_that_vanishes_in_poll_frees_its_channel() {
    let served = Served::open();
    let mut raw = Raw::welcome(&served);
    assert_eq!(raw.ask(&open())["answer"], "opened");
    raw.send(POLL.as_bytes());
    expect(
        &served,
        &[Call::Made, Call::Open(open_channel()), Call::Poll],
    );
    drop(raw);
    expect(&served, &[Call::Close, Call::Dropped]);
}

#[test]
fn the_end_of_the_server_frees_the_channel() {
    let served = Served::open();
    let mut raw = Raw::welcome(&served);
    assert_eq!(raw.ask(&open())["answer"], "opened");
    raw.send(POLL.as_bytes());
    expect(
        &served,
        &[Call::Made, Call::Open(open_channel()), Call::Poll],
    );
    assert_eq!(served.rest(), [Call::Close, Call::Dropped]);
    raw.ended();
}

#[test]
fn a_request_before_the_answer_ends_the_connection() {
    let served = Served::open();
    let mut raw = Raw::welcome(&served);
    assert_eq!(raw.ask(&open())["answer"], "opened");
    raw.send(POLL.as_bytes());
    expect(
        &served,
        &[Call::Made, Call::Open(open_channel()), Call::Poll],
    );
    assert_failed(
        &raw.ask(r#"{"ask":"query"}"#),
        FailureKind::Request,
        "a request before the last one was answered",
    );
    raw.ended();
    expect(&served, &[Call::Close, Call::Dropped]);
}

#[test]
fn a_completion_ends_the_wait() {
    let served = Served::open();
    // Later pieces of the wait find it.
    served.script.lock().unwrap().polls = [vec![], vec![], vec![completion()]].into();
    let mut raw = Raw::welcome(&served);
    raw.ask(&open());
    assert_eq!(raw.ask(POLL)["completions"][0]["status"], 12);
    assert_eq!(
        raw.ask(r#"{"ask":"poll","wait_ms":0}"#)["completions"]
            .as_array()
            .map(Vec::len),
        Some(0)
    );
}

#[test]
fn what_comes_out_of_order_is_refused_and_the_connection_lives_on() {
    let served = Served::open();
    let mut raw = Raw::welcome(&served);
    let read = r#"{"ask":"post-read","work_request":1,"address":0,"r_key":0,"length":1024}"#;
    let without = [
        read,
        r#"{"ask":"poll","wait_ms":0}"#,
        r#"{"ask":"query"}"#,
        r#"{"ask":"close"}"#,
    ];
    for request in without {
        assert_failed(
            &raw.ask(request),
            FailureKind::Request,
            "there is no channel: open one first",
        );
    }
    assert_eq!(raw.ask(&open())["answer"], "opened");
    assert_failed(
        &raw.ask(&open()),
        FailureKind::Request,
        "there is a channel already: close it first",
    );
    let hello = r#"{"ask":"hello","version":1,"token":null}"#;
    assert_failed(
        &raw.ask(hello),
        FailureKind::Request,
        "Hello was said already",
    );
    let long = r#"{"ask":"poll","wait_ms":10001}"#;
    assert_failed(
        &raw.ask(long),
        FailureKind::Request,
        "expected a wait of at most 10000 ms, found 10001",
    );
    assert_eq!(raw.ask(r#"{"ask":"close"}"#)["answer"], "closed");
    for request in without {
        assert_failed(
            &raw.ask(request),
            FailureKind::Request,
            "there is no channel: open one first",
        );
    }
    assert_eq!(raw.ask(&open())["answer"], "opened");
    // No refused request reaches the backend. The channel left open is closed.
    let opened = Call::Open(open_channel());
    assert_eq!(
        served.rest(),
        [
            Call::Made,
            opened.clone(),
            Call::Close,
            opened,
            Call::Close,
            Call::Dropped
        ]
    );
}

#[test]
fn a_channel_that_cannot_be_opened_can_be_asked_for_again() {
    let served = Served::open();
    let failure = Failure::new(FailureKind::Neighbour, "192.0.2.1 has no MAC address");
    served.script.lock().unwrap().open = Some(failure.clone());
    let mut raw = Raw::welcome(&served);
    assert_failed(&raw.ask(&open()), failure.kind, &failure.message);
    assert_eq!(raw.ask(&open())["answer"], "opened");
}

#[test]
fn values_that_no_queue_pair_can_have_are_refused() {
    let served = Served::open();
    let mut raw = Raw::welcome(&served);
    for (right, wrong, message) in [
        (
            r#""path_mtu":1024"#,
            r#""path_mtu":1500"#,
            "path MTU: expected 256, 512, 1024, 2048 or 4096, found 1500",
        ),
        (
            r#""retry_count":2"#,
            r#""retry_count":8"#,
            "retry count: expected 0 to 7, found 8",
        ),
        (
            r#""timeout":18"#,
            r#""timeout":32"#,
            "local ACK time-out: expected 0 to 31, found 32",
        ),
        (
            r#""remote_queue_pair":17"#,
            r#""remote_queue_pair":16777216"#,
            "remote queue pair: expected below 0x1000000, found 16777216",
        ),
        (
            r#""psn":1193046"#,
            r#""psn":16777216"#,
            "PSN: expected below 0x1000000, found 16777216",
        ),
        (
            r#""remote_psn":6636321"#,
            r#""remote_psn":4294967295"#,
            "remote PSN: expected below 0x1000000, found 4294967295",
        ),
    ] {
        let request = open().replace(&format!(",{right}"), &format!(",{wrong}"));
        assert_failed(&raw.ask(&request), FailureKind::Request, message);
    }
    // The largest values are accepted.
    let mut largest = open_channel();
    (largest.path_mtu, largest.retry_count, largest.timeout) = (4096, 7, 31);
    (largest.remote_queue_pair, largest.psn, largest.remote_psn) =
        (0xff_ffff, 0xff_ffff, 0xff_ffff);
    largest.check().unwrap();
}

#[test]
fn a_backend_that_panics_ends_the_server() {
    let served = Served::open();
    let mut raw = Raw::welcome(&served);
    assert_eq!(raw.ask(&open())["answer"], "opened");
    served.script.lock().unwrap().panic = true;
    raw.send(br#"{"ask":"query"}"#);
    assert!(served.panics());
}
