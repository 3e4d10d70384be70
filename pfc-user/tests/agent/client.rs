//! The tester's client, with the real server and with peers that are not agents.

use std::io::{Read as _, Write};
use std::net::{SocketAddr, TcpListener};
use std::thread;
use std::time::Duration;

use validator::agent::client::{Agent, AgentError};
use validator::agent::protocol::{Failure, FailureKind};

use super::fake::{
    Call, NEVER, Served, attributes, channel, completion, device, frame, open_channel, read,
};

const WELCOME: &str = concat!(
    r#"{"answer":"welcome","version":1,"device":{"name":"fake0","backend":"simulated","#,
    r#""apm":false,"active_mtu":1024}}"#,
);

/// Runs the client against a peer that reads a request for each of `answers` and sends that answer;
/// then it closes the connection.
fn with_peer<T>(
    answers: &[Vec<u8>],
    timeout: Duration,
    client: impl FnOnce(SocketAddr, Result<Agent, AgentError>) -> T,
) -> T {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::scope(|scope| {
        scope.spawn(|| {
            let (mut stream, _) = listener.accept().unwrap();
            for answer in answers {
                let mut length = [0; 4];
                stream.read_exact(&mut length).unwrap();
                stream
                    .read_exact(&mut vec![0; u32::from_be_bytes(length) as usize])
                    .unwrap();
                stream.write_all(answer).unwrap();
            }
            if timeout < NEVER {
                // Until the client closes the connection.
                let _ = stream.read(&mut [0]);
            }
        });
        client(address, Agent::connect(address, None, timeout))
    })
}

#[test]
fn all_requests_in_order() {
    let served = Served::new(Some("secret"), NEVER);
    served.script.lock().unwrap().polls = [vec![completion()]].into();
    let mut agent = Agent::connect(served.address.to_string(), Some("secret"), NEVER).unwrap();
    assert_eq!(*agent.device(), device());
    assert_eq!(agent.open(&open_channel()).unwrap(), channel());
    agent.post_read(&read()).unwrap();
    // A wait beyond the agent's limit is cut to that limit.
    assert_eq!(agent.poll(NEVER).unwrap(), [completion()]);
    assert_eq!(agent.poll(Duration::from_nanos(1)).unwrap(), []);
    assert_eq!(agent.query().unwrap(), attributes());
    agent.close().unwrap();
    assert_eq!(agent.open(&open_channel()).unwrap(), channel());
    drop(agent);
    let opened = Call::Open(open_channel());
    // Both polls are one call to the fake: it cannot tell them from pieces of one wait.
    for call in [
        Call::Made,
        opened.clone(),
        Call::PostRead(read()),
        Call::Poll,
        Call::Query,
        Call::Close,
        opened,
    ] {
        assert_eq!(served.call(), call);
    }
    assert_eq!([served.call(), served.call()], [Call::Close, Call::Dropped]);
}

#[test]
fn what_the_agent_says_is_kept() {
    let served = Served::new(Some("secret"), NEVER);
    let address = served.address;
    let error = Agent::connect(address, None, NEVER).unwrap_err();
    assert_eq!(
        error.failure(),
        Some(&Failure::new(FailureKind::Token, "wrong or missing token"))
    );
    assert_eq!(
        error.to_string(),
        format!("the agent at {address} did not say what it is: wrong or missing token")
    );

    let mut agent = Agent::connect(address, Some("secret"), NEVER).unwrap();
    let error = agent.post_read(&read()).unwrap_err();
    assert_eq!(
        error.failure().map(|failure| failure.kind),
        Some(FailureKind::Request)
    );
    assert_eq!(
        error.to_string(),
        format!(
            "the agent at {address} did not post an RDMA READ: there is no channel: open one first"
        )
    );
    let failure = Failure::new(FailureKind::Neighbour, "192.0.2.1 has no MAC address");
    served.script.lock().unwrap().open = Some(failure.clone());
    assert_eq!(
        agent.open(&open_channel()).unwrap_err().failure(),
        Some(&failure)
    );
    // The agent is still there.
    agent.open(&open_channel()).unwrap();
}

#[test]
fn a_second_client_is_told() {
    let served = Served::open();
    let _first = Agent::connect(served.address, None, NEVER).unwrap();
    let error = Agent::connect(served.address, None, NEVER).unwrap_err();
    assert!(
        error
            .failure()
            .unwrap()
            .message
            .starts_with("the agent has a client already"),
        "{error}"
    );
}

#[test]
fn where_nobody_listens() {
    // Bound but not listening, so no other process can take it.
    let address = {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap()
    };
    let error = Agent::connect(address, None, NEVER).unwrap_err();
    assert!(matches!(error, AgentError::Unreachable { .. }) && error.failure().is_none());
    let advice = "start `validator agent --listen` there, and compare address and port";
    assert_eq!(
        error.to_string(),
        format!("cannot reach the agent at {address}: Connection refused (os error 111): {advice}")
    );
    let error = Agent::connect("no port", None, NEVER).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("cannot reach the agent at no port: "),
        "{error}"
    );
}

#[test]
fn a_peer_that_is_no_agent() {
    for (answer, found) in [
        (frame(b"220 ready"), "invalid type: integer `220`"),
        (frame(br#"{"answer":"posted"}"#), "Posted"),
        (
            frame(WELCOME.replace("\"version\":1", "\"version\":2").as_bytes()),
            "Welcome { version: 2",
        ),
        (
            b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec(),
            "a message of 1213486160 octets",
        ),
    ] {
        let error = with_peer(&[answer], NEVER, |_, agent| agent.unwrap_err());
        let AgentError::Unexpected {
            asked,
            found: actual,
            ..
        } = &error
        else {
            panic!("{error}")
        };
        assert!(
            *asked == "say what it is" && actual.contains(found),
            "{error}"
        );
    }
}

#[test]
fn a_connection_that_ends_stays_ended() {
    for part in [&b""[..], b"\0\0", b"\0\0\0\x09{"] {
        with_peer(
            &[frame(WELCOME.as_bytes()), part.to_vec()],
            NEVER,
            |address, agent| {
                let mut agent = agent.unwrap();
                let error = agent.query().unwrap_err();
                let reason = "the connection was closed: see whether it still runs";
                assert!(matches!(error, AgentError::Ended { .. }));
                assert_eq!(
                    error.to_string(),
                    format!(
                        "asked to query the queue pair, the agent at {address} gave no answer: \
                         {reason}"
                    )
                );
                let error = agent.close().unwrap_err();
                assert!(
                    error
                        .to_string()
                        .ends_with("the connection has ended before"),
                    "{error}"
                );
            },
        );
    }
}

#[test]
fn an_answer_that_does_not_come_in_time() {
    let soon = Duration::from_millis(300);
    for part in [&b""[..], b"\0\0", b"\0\0\0\x09{"] {
        let error = with_peer(&[part.to_vec()], soon, |_, agent| agent.unwrap_err());
        assert!(
            error
                .to_string()
                .ends_with("gave no answer: none came within 300ms"),
            "{error}"
        );
    }
}
