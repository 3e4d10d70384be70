//! Clients that know no more than the protocol.

use std::net::SocketAddr;

use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// A reply of HTTP.
#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
}

impl Reply {
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&self.body)))
    }

    pub fn errors(&self) -> Vec<String> {
        let json = self.json();
        let list = json["errors"].as_array().expect("errors").iter();
        list.map(|error| error.as_str().unwrap().to_owned())
            .collect()
    }
}

/// Sends one request on a connection of its own.
pub async fn request(server: SocketAddr, line: &str, headers: &[&str], body: &[u8]) -> Reply {
    let stream = TcpStream::connect(server).await.unwrap();
    exchange(stream, line, headers, body).await
}

/// Sends a request without more headers.
pub async fn send(server: SocketAddr, line: &str, body: &str) -> Reply {
    request(server, line, &[], body.as_bytes()).await
}

/// Sends a request on a connection, which the server closes after its reply.
pub async fn exchange(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    line: &str,
    headers: &[&str],
    body: &[u8],
) -> Reply {
    let mut head = format!("{line} HTTP/1.1\r\nConnection: close\r\n");
    if !headers.iter().any(|header| header.starts_with("Host:")) {
        head.push_str("Host: localhost\r\n");
    }
    for header in headers {
        head.push_str(header);
        head.push_str("\r\n");
    }
    head.push_str(&format!("Content-Length: {}\r\n\r\n", body.len()));
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(body).await.unwrap();
    answer(stream).await
}

/// The reply to what was sent, after which the server closes the connection.
pub async fn answer(mut stream: impl AsyncRead + Unpin) -> Reply {
    let mut reply = Vec::new();
    stream.read_to_end(&mut reply).await.unwrap();
    let end = reply
        .windows(4)
        .position(|four| four == b"\r\n\r\n")
        .expect("a head");
    let head = String::from_utf8(reply[..end].to_vec()).unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    let head = head.to_ascii_lowercase();
    let body = &reply[end + 4..];
    let body = match head.contains("transfer-encoding: chunked") {
        true => unchunked(body),
        false => body.to_vec(),
    };
    Reply { status, head, body }
}

/// A body that came in chunks (RFC 9112, 7.1).
fn unchunked(mut rest: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    loop {
        let end = rest.windows(2).position(|two| two == b"\r\n");
        let (length, chunk) = rest.split_at(end.expect("the length of a chunk"));
        let length = usize::from_str_radix(std::str::from_utf8(length).unwrap(), 16).unwrap();
        if length == 0 {
            return body;
        }
        body.extend(&chunk[2..][..length]);
        rest = &chunk[2 + length + 2..];
    }
}
