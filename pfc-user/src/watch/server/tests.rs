//! Requests and their answers, and clients that stay silent.

use tokio::io::AsyncWriteExt;

use super::*;

/// Address of a server whose metrics are a word.
async fn served() -> std::net::SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (scrapes, mut scraped) = mpsc::channel::<Scrape>(1);
    tokio::spawn(serve(listener, scrapes));
    tokio::spawn(async move {
        while let Some(reply) = scraped.recv().await {
            reply.send("metrics".to_owned()).unwrap();
        }
    });
    address
}

async fn ask(address: std::net::SocketAddr, request: &[u8]) -> String {
    let mut client = TcpStream::connect(address).await.unwrap();
    client.write_all(request).await.unwrap();
    let mut text = String::new();
    client.read_to_string(&mut text).await.unwrap();
    text
}

#[tokio::test]
async fn clients_that_stay_silent_shut_nobody_out() {
    let address = served().await;
    let mut silent = Vec::new();
    for _ in 0..CONNECTIONS + 20 {
        silent.push(TcpStream::connect(address).await.unwrap());
    }
    let answered = timeout(PATIENCE / 2, ask(address, b"GET /metrics HTTP/1.1\r\n\r\n")).await;
    let text = answered.expect("before any of the silent ones ran out of time");
    assert!(text.ends_with("metrics"), "{text}");
    // The oldest were closed for it.
    let mut octet = [0];
    assert_eq!(silent[0].read(&mut octet).await.unwrap_or(0), 0);
}

#[tokio::test]
async fn requests_are_answered_by_what_they_are() {
    let address = served().await;
    let long = format!("GET /metrics HTTP/1.1\r\nA: {}", "a".repeat(LONGEST));
    for (request, status, end) in [
        (
            "GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n",
            "200 OK",
            "metrics",
        ),
        ("HEAD /metrics?x=1 HTTP/1.1\r\n\r\n", "200 OK", "\r\n\r\n"),
        ("GET / HTTP/1.1\r\n\r\n", "200 OK", LANDING),
        (
            "GET /x HTTP/1.1\r\n\r\n",
            "404 Not Found",
            "404 Not Found\n",
        ),
        // Every server has to take a whole URI, whatever its authority (RFC 9112, 3.2.2).
        (
            "GET http://a:9477/metrics HTTP/1.1\r\n\r\n",
            "200 OK",
            "metrics",
        ),
        (
            "GET HTTP://[::1]/metrics?x=/ HTTP/1.1\r\n\r\n",
            "200 OK",
            "metrics",
        ),
        ("GET http://a HTTP/1.1\r\n\r\n", "200 OK", LANDING),
        (
            "GET http://a?x=/metrics HTTP/1.1\r\n\r\n",
            "200 OK",
            LANDING,
        ),
        (
            "GET http://a/x/metrics HTTP/1.1\r\n\r\n",
            "404 Not Found",
            "\n",
        ),
        ("GET metrics HTTP/1.1\r\n\r\n", "404 Not Found", "\n"),
        ("GET * HTTP/1.1\r\n\r\n", "404 Not Found", "\n"),
        (
            "POST /metrics HTTP/1.1\r\nContent-Length: 4\r\n\r\nbody",
            "405 Method Not Allowed",
            "405 Method Not Allowed\n",
        ),
        ("GET /metrics\r\n\r\n", "400 Bad Request", "\r\n\r\n"),
        (
            "GET /metrics HTTP/1.1 x\r\n\r\n",
            "400 Bad Request",
            "\r\n\r\n",
        ),
        (&long, "431 Request Header Fields Too Large", "\r\n\r\n"),
    ] {
        let answer = ask(address, request.as_bytes()).await;
        let begin = format!("HTTP/1.1 {status}\r\n");
        assert!(
            answer.starts_with(&begin) && answer.ends_with(end),
            "{request}: {answer}"
        );
        let allow = answer.contains("\r\nAllow: GET, HEAD\r\n");
        assert_eq!(allow, status.starts_with("405"), "{answer}");
    }
    let old = ask(address, b"GET /metrics HTTP/1.0\r\n\r\n").await;
    assert!(
        old.starts_with("HTTP/1.0 200 OK\r\n") && old.ends_with("metrics"),
        "{old}"
    );
}
