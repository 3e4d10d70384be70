//! The messages letter by letter: a change here changes the protocol, and raises its version.

use std::fmt::Debug;

use serde::Serialize;
use serde::de::DeserializeOwned;
use validator::agent::protocol::{
    Failure, FailureKind, MAX_MESSAGE, Request, Response, State, VERBS, VERSION,
};

use super::fake::{attributes, channel, completion, device, open_channel, read};

#[track_caller]
fn golden<T: Serialize + DeserializeOwned + PartialEq + Debug>(message: &T, text: &str) {
    assert_eq!(serde_json::to_string(message).unwrap(), text);
    assert_eq!(serde_json::from_str::<T>(text).unwrap(), *message);
}

#[test]
fn the_version_is_that_of_these_messages() {
    assert_eq!((VERSION, MAX_MESSAGE), (1, 65536));
}

#[test]
fn requests() {
    golden(
        &Request::Hello {
            version: 1,
            token: Some("t".into()),
        },
        r#"{"ask":"hello","version":1,"token":"t"}"#,
    );
    golden(
        &Request::Hello {
            version: 1,
            token: None,
        },
        r#"{"ask":"hello","version":1,"token":null}"#,
    );
    golden(
        &Request::Open(open_channel()),
        concat!(
            r#"{"ask":"open","path_mtu":1024,"retry_count":2,"timeout":18,"remote":"192.0.2.1","#,
            r#""remote_queue_pair":17,"psn":1193046,"remote_psn":6636321}"#,
        ),
    );
    golden(
        &Request::PostRead(read()),
        concat!(
            r#"{"ask":"post-read","work_request":18446744073709551615,"address":10063872,"#,
            r#""r_key":74565,"length":1024}"#,
        ),
    );
    golden(
        &Request::Poll { wait_ms: 500 },
        r#"{"ask":"poll","wait_ms":500}"#,
    );
    golden(&Request::Query, r#"{"ask":"query"}"#);
    golden(&Request::Close, r#"{"ask":"close"}"#);
}

#[test]
fn the_verbs_are_those_of_the_requests() {
    let requests = [
        Request::Hello {
            version: 1,
            token: None,
        },
        Request::Open(open_channel()),
        Request::PostRead(read()),
        Request::Poll { wait_ms: 0 },
        Request::Query,
        Request::Close,
    ];
    let verbs = requests.map(|request| serde_json::to_value(request).unwrap()["ask"].clone());
    assert_eq!(verbs.map(|verb| verb.as_str().unwrap().to_owned()), VERBS);
}

/// The book has each request, each answer, each field and each kind of failure by its name.
#[test]
fn the_book_names_all_of_it() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/agent-protocol.md");
    let page = std::fs::read_to_string(page).unwrap();
    let requests = [
        serde_json::to_value(Request::Open(open_channel())),
        serde_json::to_value(Request::PostRead(read())),
        serde_json::to_value(Request::Poll { wait_ms: 0 }),
        serde_json::to_value(Response::Opened(channel())),
        serde_json::to_value(Response::QueuePair(attributes())),
        serde_json::to_value(device()),
        serde_json::to_value(completion()),
    ];
    let names = requests.into_iter().flat_map(|message| {
        let message = message.unwrap();
        let fields = message.as_object().unwrap().keys().cloned();
        fields.collect::<Vec<_>>()
    });
    let of_failures = [
        "version",
        "token",
        "request",
        "no-device",
        "neighbour",
        "state",
        "verbs",
    ];
    let fixed = VERBS.into_iter().chain(of_failures).chain([
        "welcome",
        "opened",
        "posted",
        "completions",
        "queue-pair",
        "closed",
        "failed",
    ]);
    for name in names.chain(fixed.map(str::to_owned)) {
        assert!(page.contains(&format!("`{name}`")), "{name}");
    }
}

#[test]
fn responses() {
    golden(
        &Response::Welcome {
            version: 1,
            device: device(),
        },
        concat!(
            r#"{"answer":"welcome","version":1,"device":{"name":"fake0","backend":"simulated","#,
            r#""apm":false,"active_mtu":1024}}"#,
        ),
    );
    golden(
        &Response::Opened(channel()),
        concat!(
            r#"{"answer":"opened","queue_pair":23,"address":"192.0.2.2","#,
            r#""attributes":{"state":"rts","path_mtu":1024,"retry_count":2,"timeout":18,"#,
            r#""psn":1193046,"retries_left":2}}"#,
        ),
    );
    golden(&Response::Posted, r#"{"answer":"posted"}"#);
    golden(
        &Response::Completions {
            completions: vec![completion()],
        },
        concat!(
            r#"{"answer":"completions","completions":[{"work_request":18446744073709551615,"#,
            r#""status":12,"vendor_error":129}]}"#,
        ),
    );
    golden(
        &Response::QueuePair(attributes()),
        concat!(
            r#"{"answer":"queue-pair","state":"rts","path_mtu":1024,"retry_count":2,"timeout":18,"#,
            r#""psn":1193046,"retries_left":2}"#,
        ),
    );
    golden(&Response::Closed, r#"{"answer":"closed"}"#);
    golden(
        &Response::Failed(Failure::new(FailureKind::NoDevice, "none")),
        r#"{"answer":"failed","kind":"no-device","message":"none"}"#,
    );
}

#[test]
fn names() {
    for (state, name) in [
        (State::Reset, "reset"),
        (State::Init, "init"),
        (State::Rtr, "rtr"),
        (State::Rts, "rts"),
        (State::Sqd, "sqd"),
        (State::SqError, "sq-error"),
        (State::Error, "error"),
    ] {
        golden(&state, &format!("\"{name}\""));
    }
    for (kind, name) in [
        (FailureKind::Version, "version"),
        (FailureKind::Token, "token"),
        (FailureKind::Request, "request"),
        (FailureKind::NoDevice, "no-device"),
        (FailureKind::Neighbour, "neighbour"),
        (FailureKind::State, "state"),
        (FailureKind::Verbs, "verbs"),
    ] {
        golden(&kind, &format!("\"{name}\""));
    }
}
