//! Admission to the agent, and the ends of a connection.

use std::io::Write;
use std::time::Duration;

use validator::agent::protocol::{Failure, FailureKind, MAX_MESSAGE};

use super::fake::{Call, NEVER, Raw, Served, assert_failed, open, open_channel};

const HELLO: &str = r#"{"ask":"hello","version":1,"token":"secret"}"#;

/// Short enough to wait for, and long enough for a punctual client.
const SOON: Duration = Duration::from_secs(2);

#[test]
fn the_right_token_is_welcome() {
    let served = Served::new(Some("secret"), NEVER);
    let welcome = Raw::connect(&served).ask(HELLO);
    assert_eq!(
        (welcome["answer"].as_str(), welcome["version"].as_u64()),
        (Some("welcome"), Some(1))
    );
    assert_eq!(welcome["device"]["name"], "fake0");
}

#[test]
fn without_a_token_of_its_own_the_agent_takes_any() {
    assert_eq!(
        Raw::connect(&Served::open()).ask(HELLO)["answer"],
        "welcome"
    );
}

#[test]
fn a_wrong_or_missing_token_is_told_nothing_else() {
    let served = Served::new(Some("secret"), NEVER);
    for token in ["null", "\"\"", "\"secre\"", "\"secreT\"", "\"secret \""] {
        let mut raw = Raw::connect(&served);
        let answer = raw.ask(&format!(r#"{{"ask":"hello","version":1,"token":{token}}}"#));
        assert_failed(&answer, FailureKind::Token, "wrong or missing token");
        raw.ended();
    }
    // Not even the adapter was opened for them.
    assert_eq!(served.rest(), []);
}

#[test]
fn another_version_is_told_both() {
    let served = Served::new(Some("secret"), NEVER);
    let mut raw = Raw::connect(&served);
    let answer = raw.ask(r#"{"ask":"hello","version":7,"token":"secret","more":[]}"#);
    let message =
        "the tester speaks version 7 of the protocol, the agent 1: use the same release for both";
    assert_failed(&answer, FailureKind::Version, message);
    raw.ended();
    assert_eq!(served.rest(), []);
}

#[test]
fn clients_that_stay_silent_shut_nobody_out() {
    let served = Served::open();
    let silent: Vec<_> = (0..300).map(|_| Raw::connect(&served)).collect();
    assert_eq!(Raw::connect(&served).ask(HELLO)["answer"], "welcome");
    // The oldest made room.
    silent.into_iter().next().unwrap().ended();
}

#[test]
fn hello_comes_first() {
    let served = Served::open();
    let mut raw = Raw::connect(&served);
    assert_failed(
        &raw.ask(r#"{"ask":"query"}"#),
        FailureKind::Request,
        "expected Hello first",
    );
    raw.ended();
    assert_eq!(served.rest(), []);
}

#[test]
fn an_adapter_that_cannot_be_opened_is_told() {
    let served = Served::open();
    served.script.lock().unwrap().make =
        Some(Failure::new(FailureKind::NoDevice, "no RDMA device"));
    let mut raw = Raw::connect(&served);
    assert_failed(&raw.ask(HELLO), FailureKind::NoDevice, "no RDMA device");
    raw.ended();
    // It may be available to the next client.
    Raw::welcome(&served);
}

#[test]
fn garbage_ends_the_connection() {
    let served = Served::open();
    let start = "a message that is no request: ";
    for garbage in [
        &b""[..],
        b"GET / HTTP/1.1",
        b"{}",
        b"[1]",
        br#"{"ask":"hello"}"#,
        b"\xff\xfe",
        &[b'['; 60_000],
    ] {
        for welcomed in [false, true] {
            let mut raw = if welcomed {
                Raw::welcome(&served)
            } else {
                Raw::connect(&served)
            };
            raw.send(garbage);
            let answer = raw.answer();
            let message = answer["message"].as_str().unwrap();
            assert!(message.starts_with(start), "{answer}");
            assert_failed(&answer, FailureKind::Request, message);
            raw.ended();
        }
    }
}

#[test]
fn an_unknown_request_is_refused_by_its_name_and_the_client_may_go_on() {
    let served = Served::open();
    let unknown = "no request is called \"frobnicate\": expected hello, open, post-read, poll, query \
                   or close";
    let mut raw = Raw::welcome(&served);
    for message in [
        r#"{"ask":"frobnicate"}"#,
        r#"{"wait_ms":[1],"ask":"frobnicate","more":null}"#,
    ] {
        assert_failed(&raw.ask(message), FailureKind::Request, unknown);
        assert_eq!(raw.ask(&open())["answer"], "opened");
        assert_eq!(raw.ask(r#"{"ask":"close"}"#)["answer"], "closed");
    }
    // Not before hello.
    let served = Served::open();
    let mut raw = Raw::connect(&served);
    assert_failed(
        &raw.ask(r#"{"ask":"frobnicate"}"#),
        FailureKind::Request,
        unknown,
    );
    raw.ended();
}

#[test]
fn a_message_that_is_too_long_ends_the_connection() {
    let served = Served::open();
    for length in [MAX_MESSAGE as u32 + 1, u32::MAX] {
        let mut raw = Raw::welcome(&served);
        raw.0.write_all(&length.to_be_bytes()).unwrap();
        raw.0.write_all(&[b' '; 1000]).unwrap();
        assert_failed(
            &raw.answer(),
            FailureKind::Request,
            "a message of more than 65536 octets",
        );
        raw.ended();
    }
    // A message of exactly the limit does not.
    let mut raw = Raw::welcome(&served);
    let close = r#"{"ask":"close"}"#;
    let longest = format!("{close}{}", " ".repeat(MAX_MESSAGE - close.len()));
    assert_eq!(
        raw.ask(&longest)["message"],
        "there is no channel: open one first"
    );
}

#[test]
fn silence_in_the_middle_of_a_message_ends_the_connection() {
    let served = Served::new(None, SOON);
    let part = |octets: &[u8]| {
        let mut raw = Raw::connect(&served);
        raw.0.write_all(octets).unwrap();
        raw
    };
    for mut raw in [&b""[..], b"\0", b"\0\0\0\x20", b"\0\0\0\x20{\"ask\""].map(part) {
        assert_failed(&raw.answer(), FailureKind::Request, "no request within 2s");
        raw.ended();
    }
    assert_eq!(served.rest(), []);
}

#[test]
fn an_idle_client_loses_its_channel() {
    let served = Served::new(None, SOON);
    let mut raw = Raw::welcome(&served);
    assert_eq!(raw.ask(&open())["answer"], "opened");
    assert_failed(&raw.answer(), FailureKind::Request, "no request within 2s");
    raw.ended();
    // Before the server ends.
    assert_eq!(
        [served.call(), served.call(), served.call(), served.call()],
        [
            Call::Made,
            Call::Open(open_channel()),
            Call::Close,
            Call::Dropped
        ]
    );
}
