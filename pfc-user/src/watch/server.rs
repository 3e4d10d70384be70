//! `/metrics` over HTTP/1.1: one request a connection, and little patience with it.

use std::collections::VecDeque;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::header::{ALLOW, CONTENT_TYPE};
use hyper::http;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, oneshot};
use tokio::task::AbortHandle;
use tokio::time::timeout;
use validator_core::prometheus;

/// Connections at a time. A further one takes the place of the oldest, which has had its time: so
/// clients that stay silent shut no other out.
const CONNECTIONS: usize = 256;
/// Time for a request to come, and for its answer to go.
const PATIENCE: Duration = Duration::from_secs(5);
/// Most octets of a request's head.
const LONGEST: usize = 8 << 10;

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
            let _ = timeout(2 * PATIENCE, answer(stream, &scrapes)).await;
        });
        served.push_back(connection.abort_handle());
    }
}

async fn answer(mut stream: TcpStream, scrapes: &mpsc::Sender<Scrape>) {
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(PATIENCE)
        .max_buf_size(LONGEST)
        .keep_alive(false)
        .half_close(true)
        .title_case_headers(true)
        .serve_connection(
            TokioIo::new(&mut stream),
            service_fn(|request| respond(request, scrapes)),
        )
        .await;
    if served.is_err_and(|error| error.is_timeout()) {
        return;
    }
    // Unread input would make the kernel reset the connection before the client has read the
    // answer.
    let mut rest = [0; 1024];
    while stream.read(&mut rest).await.is_ok_and(|count| count > 0) {}
}

async fn respond(
    request: Request<Incoming>,
    scrapes: &mpsc::Sender<Scrape>,
) -> http::Result<Response<String>> {
    let (status, kind, text) = match (request.method(), request.uri().path()) {
        (&Method::GET | &Method::HEAD, "/") => (
            StatusCode::OK,
            "text/html; charset=utf-8",
            LANDING.to_owned(),
        ),
        (&Method::GET | &Method::HEAD, "/metrics") => {
            let (reply, text) = oneshot::channel();
            // Where the other end is gone, no text comes.
            let _ = scrapes.send(reply).await;
            match text.await {
                Ok(text) => (StatusCode::OK, prometheus::CONTENT_TYPE, text),
                Err(_) => refusal(StatusCode::SERVICE_UNAVAILABLE),
            }
        }
        (&Method::GET | &Method::HEAD, _) => refusal(StatusCode::NOT_FOUND),
        _ => refusal(StatusCode::METHOD_NOT_ALLOWED),
    };
    let mut response = Response::builder()
        .status(status)
        .header(CONTENT_TYPE, kind);
    if status == StatusCode::METHOD_NOT_ALLOWED {
        response = response.header(ALLOW, "GET, HEAD");
    }
    response.body(text)
}

fn refusal(status: StatusCode) -> (StatusCode, &'static str, String) {
    (status, "text/plain; charset=utf-8", format!("{status}\n"))
}

#[cfg(test)]
mod tests;
