//! The example of an agent in the book, by the tester's client.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use validator::agent::client::Agent;
use validator::agent::protocol::{FailureKind, OpenChannel, State};

use super::fake::{Raw, assert_failed, frame, open, open_channel, read};
use crate::common::need_tool;

const PATIENCE: Duration = Duration::from_secs(20);

/// The example as a process, and its address.
struct Example(Child, String);

impl Example {
    fn start(token: &str) -> Self {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/examples/agent.py");
        let mut process = Command::new("python3")
            .args([script, "127.0.0.1", "0", token])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut stdout = BufReader::new(process.stdout.take().unwrap());
        stdout.read_line(&mut line).unwrap();
        let port = line.split_whitespace().next_back().unwrap();
        let address = format!("127.0.0.1:{port}");
        Self(process, address)
    }
}

impl Drop for Example {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn the_example_in_the_book_is_an_agent() {
    if !need_tool("the_example_in_the_book_is_an_agent", "python3") {
        return;
    }
    let example = Example::start("secret");
    let refused = Agent::connect(&example.1, Some("guess"), PATIENCE).unwrap_err();
    let kind = refused.failure().map(|failure| failure.kind);
    assert_eq!(kind, Some(FailureKind::Token), "{refused}");

    let mut agent = Agent::connect(&example.1, Some("secret"), PATIENCE).unwrap();
    assert_eq!(agent.device().name, "example0");
    let none = agent.query().unwrap_err();
    let kind = none.failure().map(|failure| failure.kind);
    assert_eq!(kind, Some(FailureKind::Request), "{none}");

    // Two requests, T_tr of 4.2 ms.
    let settings = OpenChannel {
        timeout: 10,
        retry_count: 1,
        ..open_channel()
    };
    let opened = agent.open(&settings).unwrap();
    assert_eq!(opened.attributes.state, State::Rts);
    assert_eq!(
        (opened.attributes.timeout, opened.attributes.psn),
        (10, settings.psn)
    );
    assert!(agent.open(&settings).is_err());
    let mut flushed = read();
    for (status, state) in [(12, State::Error), (5, State::Error)] {
        flushed.work_request -= 1;
        agent.post_read(&flushed).unwrap();
        let completions = agent.poll(PATIENCE).unwrap();
        let statuses: Vec<_> = completions
            .iter()
            .map(|completion| (completion.work_request, completion.status))
            .collect();
        assert_eq!(statuses, [(flushed.work_request, status)]);
        assert_eq!(agent.query().unwrap().state, state);
    }
    assert_eq!(agent.poll(Duration::ZERO).unwrap(), []);
    agent.close().unwrap();
    agent.open(&settings).unwrap();
    // The next tester finds nothing of it.
    drop(agent);
    let mut agent = Agent::connect(&example.1, Some("secret"), PATIENCE).unwrap();
    agent.open(&settings).unwrap();
}

#[test]
fn the_example_serves_the_next_tester_whatever_one_has_sent() {
    const NAME: &str = "the_example_serves_the_next_tester_whatever_one_has_sent";
    if !need_tool(NAME, "python3") {
        return;
    }
    let example = Example::start("secret");
    let connect = || Raw(TcpStream::connect(&example.1).unwrap());
    let welcome = || {
        let mut raw = connect();
        let hello = r#"{"ask":"hello","version":1,"token":"secret"}"#;
        assert_eq!(raw.ask(hello)["answer"], "welcome");
        raw
    };
    for (octets, says) in [
        (frame(b"GET / HTTP"), "a message that is no request: "),
        (frame(b"\xff\xfe"), "a message that is no request: "),
        (frame(&[b'['; 60_000]), "a message that is no request: "),
        (frame(b"[1]"), "a message that is no request: "),
        (
            frame(br#"{"ask":["poll"]}"#),
            "a message that is no request: ",
        ),
        (
            b"GET / HTTP/1.1\r\n\r\n".to_vec(),
            "a message of more than 65536 octets",
        ),
        (
            frame(br#"{"ask":"poll"}"#),
            "poll cannot have null as its wait_ms",
        ),
        (
            frame(br#"{"ask":"poll","wait_ms":true}"#),
            "poll cannot have true as its wait_ms",
        ),
        (
            frame(open().replace(":18,", ":32,").as_bytes()),
            "open cannot have 32 as its timeout",
        ),
    ] {
        let mut raw = welcome();
        raw.0.write_all(&octets).unwrap();
        let answer = raw.answer();
        let message = answer["message"].as_str().unwrap();
        assert!(message.starts_with(says), "{answer}");
        assert_failed(&answer, FailureKind::Request, message);
        raw.ended();
    }

    let mut raw = connect();
    let newer = r#"{"ask":"hello","version":2,"token":"secret"}"#;
    let says = "this agent speaks version 1";
    assert_failed(&raw.ask(newer), FailureKind::Version, says);
    raw.ended();

    // An answer that nobody has read makes the end a reset, which the next answer meets.
    let mut raw = welcome();
    raw.send(open().as_bytes());
    raw.0.peek(&mut [0]).unwrap();
    raw.send(br#"{"ask":"poll","wait_ms":100}"#);
    drop(raw);

    let mut raw = welcome();
    let unknown = "no request is called \"frobnicate\": expected hello, open, post-read, poll, \
                   query or close";
    let answer = raw.ask(r#"{"ask":"frobnicate"}"#);
    assert_failed(&answer, FailureKind::Request, unknown);
    assert_eq!(raw.ask(&open())["answer"], "opened");
}
