//! Requests and their answers, and clients that stay silent.

#[path = "../../../tests/exercise/metrics.rs"]
mod exercise;

use std::fs;
use std::path::Path;

use super::*;

#[tokio::test]
async fn clients_that_stay_silent_shut_nobody_out() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (scrapes, mut scraped) = mpsc::channel::<Scrape>(1);
    tokio::spawn(serve(listener, scrapes));
    tokio::spawn(async move {
        while let Some(reply) = scraped.recv().await {
            reply.send("metrics".to_owned()).unwrap();
        }
    });
    let mut silent = Vec::new();
    for _ in 0..CONNECTIONS + 20 {
        silent.push(TcpStream::connect(address).await.unwrap());
    }
    let mut client = TcpStream::connect(address).await.unwrap();
    client
        .write_all(b"GET /metrics HTTP/1.1\r\n\r\n")
        .await
        .unwrap();
    let mut text = String::new();
    let answered = timeout(PATIENCE / 2, client.read_to_string(&mut text)).await;
    answered
        .expect("before any of the silent ones ran out of time")
        .unwrap();
    assert!(text.ends_with("metrics"), "{text}");
    // The oldest were closed for it.
    let mut octet = [0];
    assert_eq!(silent[0].read(&mut octet).await.unwrap_or(0), 0);
}

#[test]
fn requests_are_answered_by_what_they_are() {
    let status = |text: &str| request(text.as_bytes());
    assert_eq!(
        status("GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n"),
        Ok((Method::Get, Page::Metrics))
    );
    assert_eq!(
        status("HEAD /metrics?x=1 HTTP/1.0\r\n\r\n"),
        Ok((Method::Head, Page::Metrics))
    );
    for (target, page) in [
        ("/", Ok(Page::Landing)),
        ("/x", Err("404 Not Found")),
        ("http://a:9477/metrics", Ok(Page::Metrics)),
        ("HTTP://[::1]/metrics?x=/", Ok(Page::Metrics)),
        ("http://a", Ok(Page::Landing)),
        ("http://a?x=/metrics", Ok(Page::Landing)),
        ("http://a/x/metrics", Err("404 Not Found")),
        ("metrics", Err("404 Not Found")),
        ("*", Err("404 Not Found")),
    ] {
        let found = status(&format!("GET {target} HTTP/1.1\r\n\r\n"));
        assert_eq!(found, page.map(|page| (Method::Get, page)), "{target}");
    }
    assert_eq!(
        status("POST /metrics HTTP/1.1\r\n\r\n"),
        Err("405 Method Not Allowed")
    );
    assert_eq!(
        status("GET /metrics HTTP/2\r\n\r\n"),
        Err("505 HTTP Version Not Supported")
    );
    for bad in [
        "",
        "\r\n\r\n",
        "GET /metrics\r\n\r\n",
        "GET /metrics HTTP/1.1 x\r\n\r\n",
        "GET /metrics HTTP/1.1\r\n",
    ] {
        assert_eq!(status(bad), Err("400 Bad Request"), "{bad:?}");
    }
    assert_eq!(
        request(b"GET /\xff HTTP/1.1\r\n\r\n"),
        Err("400 Bad Request")
    );
    assert_eq!(
        request(&[b'a'; LONGEST + 1]),
        Err("431 Request Header Fields Too Large")
    );
}

/// What the fuzz target `metrics` found or began with.
#[test]
fn seeds_are_survived() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/seeds/metrics");
    let files: Vec<_> = fs::read_dir(folder).unwrap().flatten().collect();
    assert!(!files.is_empty());
    for file in files {
        println!("{}", file.path().display());
        exercise::exercise(&fs::read(file.path()).unwrap());
    }
}
