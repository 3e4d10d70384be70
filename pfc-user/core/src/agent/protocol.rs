//! Protocol between tester and agent: JSON in frames of a 32-bit length (network order) and that
//! many octets. The tester sends a request and the agent answers it with one response. A second
//! request before the response ends the connection.

use std::net::IpAddr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Raised whenever a message changes.
pub const VERSION: u32 = 1;
/// Longest message in octets; a longer one ends the connection.
pub const MAX_MESSAGE: usize = 64 << 10;
/// Longest wait of a `Poll`.
pub const MAX_WAIT: Duration = Duration::from_secs(10);

/// The requests by their names.
pub const VERBS: [&str; 6] = ["hello", "open", "post-read", "poll", "query", "close"];

/// The name of a request that is none of [`VERBS`]; `None` where the message is no request at all.
pub fn unknown_verb(message: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct Named {
        ask: String,
    }
    let Named { ask } = serde_json::from_slice(message).ok()?;
    (!VERBS.contains(&&*ask)).then_some(ask)
}

/// A request of the tester.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "kebab-case")]
pub enum Request {
    /// Must be the first request.
    Hello {
        /// [`VERSION`] of the tester.
        version: u32,
        /// The shared secret, if the tester was given one.
        token: Option<String>,
    },
    /// Makes a queue pair and brings it to RTS, with a memory region for the data read. There is at
    /// most one at a time.
    Open(OpenChannel),
    /// Posts an RDMA READ.
    PostRead(Read),
    /// Waits for completions of the send queue and takes those that are there.
    Poll {
        /// Longest wait in milliseconds, at most 10 000.
        wait_ms: u32,
    },
    /// Reads the queue pair's attributes.
    Query,
    /// Releases the queue pair and all that belongs to it.
    Close,
}

/// Parameters of a queue pair.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenChannel {
    /// Path MTU in octets.
    pub path_mtu: u16,
    /// Retry count, 0 to 7.
    pub retry_count: u8,
    /// Local ACK time-out, 0 to 31.
    pub timeout: u8,
    /// The tester's address.
    pub remote: IpAddr,
    /// The tester's queue pair.
    pub remote_queue_pair: u32,
    /// First PSN that the DUT sends.
    pub psn: u32,
    /// First PSN that the tester would send.
    pub remote_psn: u32,
}

impl OpenChannel {
    /// Checks that a queue pair can have each value.
    ///
    /// # Errors
    /// A failure of kind `Request` that names the first value out of range.
    pub fn check(&self) -> Result<(), Failure> {
        // A PSN and the number of a queue pair have 24 bits (9.2).
        let number =
            |name: &'static str, value: u32| (name, value < 1 << 24, "below 0x1000000", value);
        [
            (
                "path MTU",
                matches!(self.path_mtu, 256 | 512 | 1024 | 2048 | 4096),
                "256, 512, 1024, 2048 or 4096",
                self.path_mtu.into(),
            ),
            (
                "retry count",
                self.retry_count <= 7,
                "0 to 7",
                self.retry_count.into(),
            ),
            (
                "local ACK time-out",
                self.timeout <= 31,
                "0 to 31",
                self.timeout.into(),
            ),
            number("remote queue pair", self.remote_queue_pair),
            number("PSN", self.psn),
            number("remote PSN", self.remote_psn),
        ]
        .into_iter()
        .find(|(_, holds, ..)| !holds)
        .map_or(Ok(()), |(name, _, expected, found)| {
            Err(Failure::new(
                FailureKind::Request,
                format!("{name}: expected {expected}, found {found}"),
            ))
        })
    }
}

/// An RDMA READ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Read {
    /// Returned in the completion.
    pub work_request: u64,
    /// Remote address.
    pub address: u64,
    /// R_Key.
    pub r_key: u32,
    /// Octets.
    pub length: u32,
}

/// A response of the agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "kebab-case")]
pub enum Response {
    /// Response to `Hello`.
    Welcome {
        /// [`VERSION`] of the agent.
        version: u32,
        /// The adapter.
        device: Device,
    },
    /// Response to `Open`.
    Opened(Channel),
    /// Response to `PostRead`.
    Posted,
    /// Response to `Poll`.
    Completions {
        /// Completions in the order of completion; empty if none came in time.
        completions: Vec<Completion>,
    },
    /// Response to `Query`.
    QueuePair(QueuePair),
    /// Response to `Close`.
    Closed,
    /// Response to any request: it failed.
    Failed(Failure),
}

/// An adapter's port.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Device {
    /// Its name, such as `rxe0` or `mlx5_0`.
    pub name: String,
    /// Backend: `verbs` or `simulated`.
    pub backend: String,
    /// Automatic Path Migration: true if the adapter reports support; `None` if unknown.
    pub apm: Option<bool>,
    /// The port's active path MTU in octets.
    pub active_mtu: u16,
}

/// The DUT's end of a channel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Channel {
    /// Its queue pair.
    pub queue_pair: u32,
    /// Its address.
    pub address: IpAddr,
    /// The queue pair's attributes, read back.
    pub attributes: QueuePair,
}

/// Attributes of a queue pair, read back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueuePair {
    /// State.
    pub state: State,
    /// Path MTU in octets.
    pub path_mtu: u16,
    /// Retry count, as set. Verbs do not show the count that is left.
    pub retry_count: u8,
    /// Local ACK time-out.
    pub timeout: u8,
    /// Next PSN to send.
    pub psn: u32,
    /// Retries left, if the DUT shows them.
    pub retries_left: Option<u8>,
}

/// State of a queue pair (10.3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "names of the specification")]
pub enum State {
    Reset,
    Init,
    Rtr,
    Rts,
    Sqd,
    SqError,
    Error,
}

/// A completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Completion {
    /// The work request.
    pub work_request: u64,
    /// `ibv_wc_status`.
    pub status: u32,
    /// The vendor's own code.
    pub vendor_error: u32,
}

/// Failure of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    /// Kind of failure.
    pub kind: FailureKind,
    /// The step that failed, and the system's error.
    pub message: String,
}

impl Failure {
    /// Makes a failure of this kind.
    pub fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
        }
    }
}

/// Kinds of failure that the tester distinguishes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FailureKind {
    /// The versions differ.
    Version,
    /// Wrong or missing token.
    Token,
    /// The request is malformed, or not allowed in this state.
    Request,
    /// The host has no RDMA device with a port that is up.
    NoDevice,
    /// The tester's address cannot be resolved to a MAC address.
    Neighbour,
    /// The queue pair could not be brought to a state.
    State,
    /// Any other error of verbs.
    Verbs,
}
