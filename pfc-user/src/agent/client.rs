//! The tester's side of the protocol.

use std::fmt::Display;
use std::io::{self, ErrorKind, Read as _, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

use thiserror::Error;

use super::protocol::{
    Channel, Completion, Device, Failure, MAX_MESSAGE, MAX_WAIT, OpenChannel, QueuePair, Read,
    Request, Response, VERSION,
};

/// Error of a request to the agent, by the side on which it lies.
#[derive(Debug, Error)]
pub enum AgentError {
    /// No connection.
    #[error("cannot reach the agent at {address}: {error}: {advice}")]
    Unreachable {
        /// The agent's address.
        address: String,
        /// The system's error.
        error: io::Error,
        /// Advice.
        advice: &'static str,
    },
    /// The agent refused or failed.
    #[error("the agent at {address} did not {asked}: {failure}")]
    Failed {
        /// The agent's address.
        address: String,
        /// The request, in words.
        asked: &'static str,
        /// The agent's reason.
        failure: Failure,
    },
    /// The agent breaks the protocol.
    #[error(
        "asked to {asked}, the agent at {address} answered something unexpected: {found}; is it a \
         validator agent of this release?"
    )]
    Unexpected {
        /// The agent's address.
        address: String,
        /// The request, in words.
        asked: &'static str,
        /// The answer.
        found: String,
    },
    /// The connection ended, or no answer came in time.
    #[error("asked to {asked}, the agent at {address} gave no answer: {reason}")]
    Ended {
        /// The agent's address.
        address: String,
        /// The request, in words.
        asked: &'static str,
        /// The way it ended.
        reason: String,
    },
}

impl AgentError {
    /// The failure that the agent reported, if it did.
    pub fn failure(&self) -> Option<&Failure> {
        match self {
            Self::Failed { failure, .. } => Some(failure),
            _ => None,
        }
    }
}

/// A connection to an agent. When it is dropped, the agent releases all that it has opened.
#[derive(Debug)]
pub struct Agent {
    address: String,
    /// `None` after an error that leaves the next answer unclear.
    stream: Option<TcpStream>,
    timeout: Duration,
    device: Device,
}

impl Agent {
    /// Connects to `address` (such as `192.0.2.7:4792`) and says hello. `timeout` limits the
    /// connection, and then each answer.
    ///
    /// # Errors
    /// Fails without an agent, and if it refuses version or token, has another client, or no RDMA
    /// device.
    pub fn connect(
        address: impl ToSocketAddrs + Display,
        token: Option<&str>,
        timeout: Duration,
    ) -> Result<Self, AgentError> {
        let stream = connect(&address, timeout).map_err(|error| AgentError::Unreachable {
            address: address.to_string(),
            advice: advice(error.kind()),
            error,
        })?;
        let mut agent = Self {
            address: address.to_string(),
            stream: Some(stream),
            timeout,
            device: Device::default(),
        };
        let asked = "say what it is";
        match agent.ask(
            asked,
            &Request::Hello {
                version: VERSION,
                token: token.map(str::to_owned),
            },
            Duration::ZERO,
        )? {
            Response::Welcome {
                version: VERSION,
                device,
            } => agent.device = device,
            other => return Err(agent.unexpected(asked, &other)),
        }
        Ok(agent)
    }

    /// The DUT's adapter.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Makes a queue pair and brings it to RTS.
    ///
    /// # Errors
    /// Fails if the agent does, or if there is a channel already.
    pub fn open(&mut self, channel: &OpenChannel) -> Result<Channel, AgentError> {
        let asked = "open a channel";
        match self.ask(asked, &Request::Open(channel.clone()), Duration::ZERO)? {
            Response::Opened(channel) => Ok(channel),
            other => Err(self.unexpected(asked, &other)),
        }
    }

    /// Posts an RDMA READ.
    ///
    /// # Errors
    /// Fails if the agent does, or if there is no channel.
    pub fn post_read(&mut self, read: &Read) -> Result<(), AgentError> {
        let asked = "post an RDMA READ";
        match self.ask(asked, &Request::PostRead(*read), Duration::ZERO)? {
            Response::Posted => Ok(()),
            other => Err(self.unexpected(asked, &other)),
        }
    }

    /// Waits for completions, at most `wait` and [`MAX_WAIT`]. Returns none if none came in time.
    ///
    /// # Errors
    /// Fails if the agent does, or if there is no channel.
    pub fn poll(&mut self, wait: Duration) -> Result<Vec<Completion>, AgentError> {
        let asked = "poll for completions";
        let wait = wait.min(MAX_WAIT);
        // At most 10 000, so it fits.
        let wait_ms = wait.as_nanos().div_ceil(1_000_000) as u32;
        match self.ask(asked, &Request::Poll { wait_ms }, wait)? {
            Response::Completions { completions } => Ok(completions),
            other => Err(self.unexpected(asked, &other)),
        }
    }

    /// Reads the queue pair's attributes.
    ///
    /// # Errors
    /// Fails if the agent does, or if there is no channel.
    pub fn query(&mut self) -> Result<QueuePair, AgentError> {
        let asked = "query the queue pair";
        match self.ask(asked, &Request::Query, Duration::ZERO)? {
            Response::QueuePair(queue_pair) => Ok(queue_pair),
            other => Err(self.unexpected(asked, &other)),
        }
    }

    /// Makes the agent release the channel; another one can then be opened.
    ///
    /// # Errors
    /// Fails if the agent does, or if there is no channel.
    pub fn close(&mut self) -> Result<(), AgentError> {
        let asked = "close the channel";
        match self.ask(asked, &Request::Close, Duration::ZERO)? {
            Response::Closed => Ok(()),
            other => Err(self.unexpected(asked, &other)),
        }
    }

    /// Sends a request and receives its answer, which may take `longer` than the others.
    fn ask(
        &mut self,
        asked: &'static str,
        request: &Request,
        longer: Duration,
    ) -> Result<Response, AgentError> {
        let Some(stream) = &mut self.stream else {
            return Err(self.ended(asked, "the connection has ended before".into()));
        };
        let message = exchange(stream, request, self.timeout + longer).map_err(|error| {
            let reason = match error.kind() {
                ErrorKind::InvalidData => return self.unexpected(asked, &error),
                ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => {
                    "the connection was closed: see whether it still runs".into()
                }
                ErrorKind::WouldBlock | ErrorKind::TimedOut => {
                    format!("none came within {:?}", self.timeout + longer)
                }
                _ => error.to_string(),
            };
            self.ended(asked, reason)
        })?;
        match serde_json::from_slice(&message) {
            Ok(Response::Failed(failure)) => Err(AgentError::Failed {
                address: self.address.clone(),
                asked,
                failure,
            }),
            Ok(response) => Ok(response),
            Err(error) => Err(self.unexpected(asked, &error)),
        }
    }

    fn unexpected(&mut self, asked: &'static str, found: &dyn std::fmt::Debug) -> AgentError {
        self.stream = None;
        AgentError::Unexpected {
            address: self.address.clone(),
            asked,
            found: format!("{found:?}"),
        }
    }

    fn ended(&mut self, asked: &'static str, reason: String) -> AgentError {
        self.stream = None;
        AgentError::Ended {
            address: self.address.clone(),
            asked,
            reason,
        }
    }
}

/// Connects to the first reachable one of the name's addresses.
fn connect(address: &impl ToSocketAddrs, timeout: Duration) -> io::Result<TcpStream> {
    let mut last = io::Error::new(ErrorKind::NotFound, "the name has no address");
    for address in address.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, timeout) {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                return Ok(stream);
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn advice(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::ConnectionRefused => {
            "start `validator agent --listen` there, and compare address and port"
        }
        ErrorKind::TimedOut => "see whether the DUT host is up and its firewall lets the tester in",
        ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable => {
            "give the tester an address in the DUT's network, or a route to it, in the namespace \
             that it connects from"
        }
        _ => "see whether the address is right",
    }
}

/// Sends a request. Returns the octets of its answer if they arrive within `timeout`.
fn exchange(stream: &mut TcpStream, request: &Request, timeout: Duration) -> io::Result<Vec<u8>> {
    let deadline = Instant::now() + timeout;
    let message = serde_json::to_vec(request)?;
    let length = u32::try_from(message.len())
        .ok()
        .filter(|length| *length as usize <= MAX_MESSAGE);
    let length = length.ok_or_else(|| {
        io::Error::other(format!(
            "the request has {} octets, and may have {MAX_MESSAGE}",
            message.len()
        ))
    })?;
    stream.set_write_timeout(Some(timeout))?;
    // An agent that disconnects unasked may have sent its reason, which can still be read.
    let written = stream.write_all(&[&length.to_be_bytes()[..], &message].concat());
    let mut length = [0; 4];
    read(stream, &mut length, deadline).map_err(|error| written.err().unwrap_or(error))?;
    let length = u32::from_be_bytes(length) as usize;
    if length > MAX_MESSAGE {
        return Err(io::Error::new(
            ErrorKind::InvalidData,
            format!("a message of {length} octets, which may have {MAX_MESSAGE}"),
        ));
    }
    let mut answer = vec![0; length];
    read(stream, &mut answer, deadline)?;
    Ok(answer)
}

/// Fills `octets` before the deadline, however slowly they arrive.
fn read(stream: &mut TcpStream, mut octets: &mut [u8], deadline: Instant) -> io::Result<()> {
    while !octets.is_empty() {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(octets) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(count) => octets = &mut octets[count..],
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
