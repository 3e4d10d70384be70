//! Clients that are silent, or take nothing of what they asked for. The clock of these tests goes
//! on by itself where all wait.

use std::net::SocketAddr;
use std::sync::Weak;
use std::time::Duration;

use bytes::Bytes;
use prost_reflect::DynamicMessage;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep};
use tonic::{Code, Request};
use validator_core::engine::CapturedFrame;
use validator_otg::model::descriptor;
use validator_otg::{Access, Certificates};

use crate::client::send;
use crate::grpc::{PLACES, PREFACE, SETTINGS, datum};
use crate::http::{capture, two_ports};
use crate::rpc::{Client, argument};
use crate::served::{Served, frames};

/// Frames of a capture, and the octets of each: more than sockets and windows take at once.
const FRAMES: usize = 1000;
const FRAME: usize = 60_000;

/// Answer of the server to these octets and then silence, until it closes the connection.
async fn answer_to_silence(server: SocketAddr, octets: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(server).await.unwrap();
    stream.write_all(octets).await.unwrap();
    tokio::time::pause();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    tokio::time::resume();
    answer
}

#[tokio::test]
async fn a_client_of_http_that_is_silent_in_its_request_is_not_waited_for() {
    let served = Served::start().await;
    let head = b"POST /config HTTP/1.1\r\nHost: localhost\r\n";
    for begin in [&b""[..], head] {
        let answer = answer_to_silence(served.http, begin).await;
        let answer = String::from_utf8(answer).unwrap();
        assert!(answer.is_empty() || answer.contains(" 408 "), "{answer}");
    }
    let body = b"Connection: close\r\nContent-Length: 9\r\n\r\n{";
    let late = answer_to_silence(served.http, &[head, &body[..]].concat()).await;
    let late = String::from_utf8(late).unwrap();
    assert!(late.starts_with("HTTP/1.1 408 "), "{late}");
    assert!(late.contains("the body did not come within 30 s"), "{late}");
    served.stop().await;
}

#[tokio::test]
async fn a_client_of_grpc_that_is_silent_is_not_waited_for() {
    let served = Served::start().await;
    // Before HTTP/2 has begun, in its first octets, and after them.
    for begin in [
        &b""[..],
        &PREFACE[..9],
        PREFACE,
        &[PREFACE, SETTINGS].concat(),
    ] {
        let answer = answer_to_silence(served.grpc, begin).await;
        let begun = begin.len() >= PREFACE.len();
        assert_eq!(!answer.is_empty(), begun, "{begin:?}: {answer:?}");
    }
    served.stop().await;
}

#[tokio::test]
async fn a_connection_whose_first_request_is_not_let_in_is_closed_after_ten_seconds() {
    const TOKEN: &str = "0123456789abcdef";
    let access = Access::token(TOKEN).unwrap();
    let served = Served::with(access, &Certificates::default()).await;
    let get = "GET /config HTTP/1.1\r\nHost: localhost\r\n";
    let begun = [PREFACE, SETTINGS].concat();
    for (server, octets, seconds) in [
        (served.http, String::new().into_bytes(), 10),
        // A record of a TLS handshake.
        (served.http, vec![0x16], 10),
        (served.http, get.into(), 10),
        (served.http, format!("{get}\r\n").into(), 10),
        (
            served.http,
            format!("{get}Authorization: Bearer {TOKEN}\r\n\r\n").into(),
            60,
        ),
        (served.grpc, Vec::new(), 10),
        (served.grpc, PREFACE[..9].into(), 10),
        (served.grpc, begun, 10),
    ] {
        let begin = Instant::now();
        let mut stream = TcpStream::connect(server).await.unwrap();
        stream.write_all(&octets).await.unwrap();
        // The server has taken it, in real time.
        sleep(Duration::from_millis(100)).await;
        tokio::time::pause();
        stream.read_to_end(&mut Vec::new()).await.unwrap();
        let lasted = begin.elapsed().as_secs();
        tokio::time::resume();
        let octets = String::from_utf8_lossy(&octets);
        assert!(
            (seconds..seconds + 2).contains(&lasted),
            "{octets}: {lasted} s"
        );
    }
    served.stop().await;
}

#[tokio::test]
async fn a_connection_of_grpc_that_was_let_in_is_kept() {
    let served = Served::start().await;
    let stream = TcpStream::connect(served.grpc).await.unwrap();
    let mut client = Client::over(stream).await;
    client.ask("GetVersion", "").await.unwrap();
    tokio::time::pause();
    sleep(Duration::from_secs(30)).await;
    tokio::time::resume();
    client.ask("GetVersion", "").await.unwrap();
    served.stop().await;
}

#[tokio::test]
async fn a_call_of_grpc_that_does_not_come_in_is_refused_as_json() {
    let served = Served::start().await;
    let mut client = Client::connect(served.grpc).await;
    let endless = tokio_stream::pending::<Bytes>();
    tokio::time::pause();
    let late = client.in_pieces("streamSetConfig", endless).await;
    tokio::time::resume();
    let late = late.unwrap_err();
    assert_eq!(late.code(), Code::DeadlineExceeded);
    let json: serde_json::Value = serde_json::from_str(late.message()).unwrap();
    assert_eq!(
        (&json["code"], &json["kind"]),
        (&4.into(), &"validation".into())
    );
    assert_eq!(json["errors"][0], "the body did not come within 30 s");
    served.stop().await;
}

/// A server with a capture that no socket takes at once.
async fn captured() -> Served {
    let served = two_ports().await;
    let frame = CapturedFrame {
        octets: vec![0; FRAME],
        ..frames()[0].clone()
    };
    served.record.get().frames = vec![frame; FRAMES];
    let started = send(served.http, "POST /control/state", &capture("start")).await;
    assert_eq!(started.status, 200);
    served
}

/// A reader of HTTP who has taken the first octets of a capture.
async fn begun(served: &Served) -> TcpStream {
    let mut reader = TcpStream::connect(served.http).await.unwrap();
    let body = r#"{"port_name":"p2"}"#;
    let request = format!(
        "POST /monitor/capture HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    reader.write_all(request.as_bytes()).await.unwrap();
    reader.read_exact(&mut [0; 4096]).await.unwrap();
    reader
}

/// Octets that a reader of HTTP finds who takes the first of a capture, and the others after that
/// time.
async fn taken_after(served: &Served, pause: Duration) -> usize {
    let mut reader = begun(served).await;
    assert_eq!(send(served.http, "GET /config", "").await.status, 200);
    tokio::time::pause();
    sleep(pause).await;
    tokio::time::resume();
    let mut rest = Vec::new();
    reader.read_to_end(&mut rest).await.unwrap();
    rest.len()
}

#[tokio::test]
async fn a_reader_of_http_that_stops_in_a_capture_is_left_and_others_are_served() {
    let served = captured().await;
    let all = FRAME * FRAMES;
    let late = taken_after(&served, Duration::from_secs(59)).await;
    assert!(late > all, "{late}");
    let too_late = taken_after(&served, Duration::from_secs(61)).await;
    assert!(too_late < all, "{too_late}");
    served.stop().await;
}

#[tokio::test]
async fn a_reader_of_grpc_that_stops_in_a_capture_holds_up_neither_others_nor_the_end() {
    use tokio_stream::StreamExt as _;
    let served = captured().await;
    let mut reader = Client::connect(served.grpc).await;
    let request = argument("GetCapture", r#"{"port_name":"p2"}"#);
    let mut pieces = reader.streamed("streamGetCapture", request).await;
    let first = datum(pieces.next().await.unwrap().unwrap());
    assert!(first.len() < FRAME * FRAMES);
    let mut other = Client::connect(served.grpc).await;
    other.ask("GetVersion", "").await.unwrap();
    let ports = r#"{"choice":"port"}"#;
    other.ask("GetMetrics", ports).await.unwrap();
    assert_eq!(send(served.http, "GET /config", "").await.status, 200);
    served.stop().await;
    drop(pieces);
}

#[tokio::test]
async fn readers_that_stop_in_a_capture_do_not_have_it_made() {
    use tokio_stream::StreamExt as _;
    let served = captured().await;
    let body = r#"{"port_name":"p2"}"#;
    let request = argument("GetCapture", body);
    let mut stopped = Vec::new();
    for _ in 0..2 {
        let mut reader = Client::connect(served.grpc).await;
        // The reply has begun, and nobody takes its message.
        let message = reader.streamed("GetCapture", request.clone()).await;
        stopped.push((reader, message));
    }
    let mut reader = Client::connect(served.grpc).await;
    let mut pieces = reader.streamed("streamGetCapture", request.clone()).await;
    pieces.next().await.unwrap().unwrap();
    stopped.push((reader, pieces));
    let of_http = begun(&served).await;
    let given = served.record.get().given.clone();
    let left: Vec<usize> = given.iter().map(Weak::strong_count).collect();
    assert_eq!(left, [1; 4], "files that are yet to be written");
    let mut reader = Client::connect(served.grpc).await;
    let whole = reader.unary("GetCapture", Request::new(request)).await;
    let whole = DynamicMessage::decode(descriptor("GetCaptureResponse"), whole.unwrap()).unwrap();
    let file = whole.get_field_by_name("response_bytes").unwrap();
    let over_http = send(served.http, "POST /monitor/capture", body).await;
    assert!(over_http.body.len() > FRAME * FRAMES);
    assert!(
        file.as_bytes().unwrap() == &over_http.body[..],
        "the same file"
    );
    drop((stopped, of_http));
    served.stop().await;
}

/// Sends a request on a connection that it keeps, and reads the reply.
async fn ask(client: &mut TcpStream) {
    let request = b"GET /config HTTP/1.1\r\nHost: localhost\r\n\r\n";
    client.write_all(request).await.unwrap();
    let mut reply = Vec::new();
    while !reply.ends_with(b"}") {
        assert!(client.read_buf(&mut reply).await.unwrap() > 0, "closed");
    }
    assert!(reply.starts_with(b"HTTP/1.1 200 "));
}

#[tokio::test]
async fn the_kept_connection_of_http_that_was_silent_for_longest_gives_way_and_others_stay() {
    let served = Served::start().await;
    let mut clients = Vec::new();
    for _ in 0..PLACES {
        let mut client = TcpStream::connect(served.http).await.unwrap();
        ask(&mut client).await;
        clients.push(client);
    }
    // It speaks: the second one is silent for longest.
    ask(&mut clients[0]).await;
    let mut next = TcpStream::connect(served.http).await.unwrap();
    ask(&mut next).await;
    let mut rest = Vec::new();
    clients[1].read_to_end(&mut rest).await.unwrap();
    assert!(rest.is_empty(), "{rest:?}");
    // Were it served only once the others are left for their silence, none of them would be there.
    // The third one gives way too where this machine stands still for a second.
    for other in [0, PLACES / 2, PLACES - 1] {
        ask(&mut clients[other]).await;
    }
    drop((clients, next));
    served.stop().await;
}
