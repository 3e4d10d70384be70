//! Requests and responses on a TCP connection.

use std::io;
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use nix::sys::socket::{setsockopt, sockopt};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_util::codec::{Framed, LengthDelimitedCodec};

use super::super::protocol::{
    Failure, FailureKind, MAX_MESSAGE, Request, Response, VERBS, unknown_verb,
};

/// Time limit for a client to take a response.
const WRITE: Duration = Duration::from_secs(5);
/// Time for which a connection that ended by a failure stays open, so that the client can read it.
const LINGER: Duration = Duration::from_secs(1);
/// Keepalive: seconds of silence before the first probe, seconds between probes, number of probes.
const KEEPALIVE: (u32, u32, u32) = (10, 5, 3);

/// Reason for the end of a connection.
#[derive(Debug)]
pub enum Ending {
    /// The client has gone or is out of reach.
    Gone,
    /// The client is told the reason and disconnected.
    Refused(Failure),
}

impl Ending {
    /// Ending for a client that breaks the protocol.
    pub fn request(message: impl Into<String>) -> Self {
        Self::Refused(Failure::new(FailureKind::Request, message))
    }
}

/// A client's connection.
pub struct Connection {
    frames: Framed<TcpStream, LengthDelimitedCodec>,
}

impl Connection {
    /// Enables keepalive, so that a peer counts as dead once its host is.
    pub fn new(stream: TcpStream) -> io::Result<Self> {
        let (idle, interval, count) = KEEPALIVE;
        stream.set_nodelay(true)?;
        setsockopt(&stream, sockopt::KeepAlive, &true)?;
        setsockopt(&stream, sockopt::TcpKeepIdle, &idle)?;
        setsockopt(&stream, sockopt::TcpKeepInterval, &interval)?;
        setsockopt(&stream, sockopt::TcpKeepCount, &count)?;
        // Unacknowledged data stops the probes (RFC 5482, 4).
        setsockopt(
            &stream,
            sockopt::TcpUserTimeout,
            &((idle + interval * count) * 1000),
        )?;
        let frames = LengthDelimitedCodec::builder()
            .length_field_type::<u32>()
            .max_frame_length(MAX_MESSAGE)
            .new_framed(stream);
        Ok(Self { frames })
    }

    /// Receives the next request. One that this version does not know is a failure, after which the
    /// client may ask for something else.
    pub async fn receive(&mut self, within: Duration) -> Result<Result<Request, Failure>, Ending> {
        let message = match timeout(within, self.frames.next()).await {
            Ok(Some(Ok(message))) => message,
            Ok(Some(Err(error))) if error.kind() == io::ErrorKind::InvalidData => {
                return Err(Ending::request(format!(
                    "a message of more than {MAX_MESSAGE} octets"
                )));
            }
            Ok(Some(Err(_)) | None) => return Err(Ending::Gone),
            Err(_) => return Err(Ending::request(format!("no request within {within:?}"))),
        };
        let wrong = match serde_json::from_slice(&message) {
            Ok(request) => return Ok(Ok(request)),
            Err(wrong) => wrong,
        };
        let Some(verb) = unknown_verb(&message) else {
            return Err(Ending::request(format!(
                "a message that is no request: {wrong}"
            )));
        };
        let [first @ .., last] = VERBS;
        let expected = format!("{} or {last}", first.join(", "));
        let message = format!("no request is called {verb:?}: expected {expected}");
        Ok(Err(Failure::new(FailureKind::Request, message)))
    }

    /// Waits for the connection's end while a request is being handled.
    pub async fn ended(&mut self) -> Ending {
        match self.frames.next().await {
            Some(Ok(_)) => Ending::request("a request before the last one was answered"),
            Some(Err(_)) | None => Ending::Gone,
        }
    }

    /// Sends a response.
    pub async fn send(&mut self, response: &Response) -> Result<(), Ending> {
        let message = serde_json::to_vec(response).map_err(|_| Ending::Gone)?;
        if message.len() > MAX_MESSAGE {
            return Err(Ending::request(format!(
                "the answer has {} octets, and may have {MAX_MESSAGE}",
                message.len()
            )));
        }
        match timeout(WRITE, self.frames.send(&message[..])).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) | Err(_) => Err(Ending::Gone),
        }
    }

    /// Sends the reason and disconnects in such a way that the client can read it: closing a socket
    /// with unread octets resets the connection and discards what is on its way (RFC 1122,
    /// 4.2.2.13).
    pub async fn refuse(mut self, failure: Failure) {
        if self.send(&Response::Failed(failure)).await.is_err() {
            return;
        }
        let mut stream = self.frames.into_inner();
        let mut rest = [0; 4096];
        let drained = async {
            stream.shutdown().await?;
            while stream.read(&mut rest).await? > 0 {}
            io::Result::Ok(())
        };
        // The connection is dropped in any case.
        let _ = timeout(LINGER, drained).await;
    }
}
