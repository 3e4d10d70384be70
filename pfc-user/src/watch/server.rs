//! `/metrics` over HTTP/1.1 (RFC 9112): one request a connection, and little patience with it.

use std::collections::VecDeque;
use std::io;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, oneshot};
use tokio::task::AbortHandle;
use tokio::time::timeout;

use super::prometheus::CONTENT_TYPE;

/// Connections at a time. A further one takes the place of the oldest, which has had its time: so
/// clients that stay silent shut no other out.
const CONNECTIONS: usize = 256;
/// Most octets of a request's head.
const LONGEST: usize = 8 << 10;
/// Time for a request to come, and for its answer to go.
const PATIENCE: Duration = Duration::from_secs(5);

/// Page for a browser that looks for the metrics.
const LANDING: &str = concat!(
    "<!DOCTYPE html><html lang=\"en\"><title>validator watch</title><h1>validator watch ",
    env!("CARGO_PKG_VERSION"),
    "</h1><p><a href=\"/metrics\">Metrics</a> for Prometheus</p></html>\n"
);

/// A request for the present metrics.
pub type Scrape = oneshot::Sender<String>;

/// Serves connections until the other end of `scrapes` is gone.
pub async fn serve(listener: TcpListener, scrapes: mpsc::Sender<Scrape>) {
    let mut served: VecDeque<AbortHandle> = VecDeque::new();
    loop {
        let accepted = listener.accept().await;
        served.retain(|connection| !connection.is_finished());
        if served.len() >= CONNECTIONS || accepted.is_err() {
            served.pop_front().iter().for_each(AbortHandle::abort);
        }
        let Ok((stream, _)) = accepted else {
            // An error such as a lack of descriptors stays for a while: wait instead of spinning.
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        let scrapes = scrapes.clone();
        let connection = tokio::spawn(async move {
            // A client that is slow or gone is its own loss.
            let _ = answer(stream, &scrapes).await;
        });
        served.push_back(connection.abort_handle());
    }
}

async fn answer(mut stream: TcpStream, scrapes: &mpsc::Sender<Scrape>) -> io::Result<()> {
    let head = timeout(PATIENCE, head(&mut stream)).await??;
    let (status, body) = match request(&head) {
        Ok((_, Page::Landing)) => ("200 OK", LANDING.to_owned()),
        Ok((_, Page::Metrics)) => {
            let (reply, text) = oneshot::channel();
            match scrapes.send(reply).await {
                Ok(()) => text
                    .await
                    .map_or(("503 Service Unavailable", String::new()), |text| {
                        ("200 OK", text)
                    }),
                Err(_) => ("503 Service Unavailable", String::new()),
            }
        }
        Err(status) => (status, format!("{status}\n")),
    };
    let kind = match request(&head) {
        Ok((_, Page::Metrics)) => CONTENT_TYPE,
        Ok((_, Page::Landing)) => "text/html; charset=utf-8",
        Err(_) => "text/plain; charset=utf-8",
    };
    let allow = if status.starts_with("405") {
        "Allow: GET, HEAD\r\n"
    } else {
        ""
    };
    let length = body.len();
    let mut reply = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n{allow}\
         Connection: close\r\n\r\n"
    );
    if !matches!(request(&head), Ok((Method::Head, _))) {
        reply.push_str(&body);
    }
    timeout(PATIENCE, async {
        stream.write_all(reply.as_bytes()).await?;
        stream.shutdown().await?;
        // Unread input would make the kernel reset the connection before the client has read the
        // answer.
        let mut rest = [0; 1024];
        while stream.read(&mut rest).await? > 0 {}
        Ok(())
    })
    .await?
}

/// Reads the head of the request, up to its empty line. A head that is too long or ends early is
/// returned as far as it was read.
async fn head(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    let mut octets = [0; 1024];
    loop {
        let count = stream.read(&mut octets).await?;
        head.extend_from_slice(&octets[..count]);
        if count == 0 || head.len() > LONGEST || head.windows(4).any(|end| end == b"\r\n\r\n") {
            return Ok(head);
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Method {
    Get,
    Head,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Page {
    Landing,
    Metrics,
}

/// The page that is asked for, or the status that answers the request.
fn request(head: &[u8]) -> Result<(Method, Page), &'static str> {
    const BAD: &str = "400 Bad Request";
    if head.len() > LONGEST {
        return Err("431 Request Header Fields Too Large");
    }
    let end = head
        .windows(4)
        .position(|end| end == b"\r\n\r\n")
        .ok_or(BAD)?;
    let text = std::str::from_utf8(&head[..end]).map_err(|_| BAD)?;
    let mut words = text.lines().next().ok_or(BAD)?.split(' ');
    let (Some(method), Some(target), Some(version), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return Err(BAD);
    };
    if !version.starts_with("HTTP/1.") {
        return Err("505 HTTP Version Not Supported");
    }
    let method = match method {
        "GET" => Method::Get,
        "HEAD" => Method::Head,
        _ => return Err("405 Method Not Allowed"),
    };
    match path(target) {
        "/metrics" => Ok((method, Page::Metrics)),
        "/" => Ok((method, Page::Landing)),
        _ => Err("404 Not Found"),
    }
}

/// The path of a target, which may be a whole URI: every server has to take one, whatever its
/// authority (RFC 9112, 3.2.2).
fn path(target: &str) -> &str {
    let target = target.split('?').next().unwrap_or_default();
    let scheme = target
        .get(..7)
        .filter(|start| start.eq_ignore_ascii_case("http://"));
    match scheme {
        Some(_) => target[7..].find('/').map_or("/", |at| &target[7 + at..]),
        None => target,
    }
}

#[cfg(test)]
mod tests {
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
}
