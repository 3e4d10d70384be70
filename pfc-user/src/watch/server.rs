//! `/metrics` over HTTP/1.1 (RFC 9112): one request a connection, and little patience with it.

mod request;

use std::collections::VecDeque;
use std::io;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, oneshot};
use tokio::task::AbortHandle;
use tokio::time::timeout;

use self::request::{LONGEST, Method, Page, request};
use super::prometheus::CONTENT_TYPE;

/// Connections at a time. A further one takes the place of the oldest, which has had its time: so
/// clients that stay silent shut no other out.
const CONNECTIONS: usize = 256;
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

#[cfg(test)]
mod tests;
