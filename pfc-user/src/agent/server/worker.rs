//! The backend's thread.

use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use crate::agent::backend::Backend;
use crate::agent::protocol::{
    Completion, Device, Failure, FailureKind, MAX_WAIT, Request, Response,
};

/// A wait is split into pieces of this length: a backend cannot be woken, and a client's departure
/// is noticed between two of them.
const PIECE: Duration = Duration::from_millis(100);

/// Orders to the thread. A client that no longer waits for a reply has dropped the other end.
pub enum Job {
    /// A client has arrived.
    Start {
        /// Replies with its adapter.
        reply: oneshot::Sender<Result<Device, Failure>>,
    },
    /// The client sends a request.
    Ask {
        /// The request.
        request: Request,
        /// Replies with the response.
        reply: oneshot::Sender<Response>,
    },
    /// The client has gone.
    End,
}

/// Works until all senders of jobs are gone.
pub fn run(mut make: impl FnMut() -> Result<Box<dyn Backend>, Failure>, jobs: &Receiver<Job>) {
    let mut client = None;
    for job in jobs {
        match job {
            Job::Start { reply } => {
                let made = make();
                let device = made
                    .as_ref()
                    .map(|backend| backend.device())
                    .map_err(Clone::clone);
                client = made.ok().map(Client::new);
                let _ = reply.send(device);
            }
            Job::Ask { request, reply } => {
                let Some(client) = &mut client else { continue };
                let response = client
                    .answer(&request, || reply.is_closed())
                    .unwrap_or_else(Response::Failed);
                let _ = reply.send(response);
            }
            Job::End => client = None,
        }
    }
}

struct Client {
    backend: Box<dyn Backend>,
    open: bool,
}

impl Client {
    fn new(backend: Box<dyn Backend>) -> Self {
        Self {
            backend,
            open: false,
        }
    }

    fn answer(
        &mut self,
        request: &Request,
        unwanted: impl Fn() -> bool,
    ) -> Result<Response, Failure> {
        let refuse = |message: &str| Err(Failure::new(FailureKind::Request, message));
        match request {
            Request::Hello { .. } => refuse("Hello was said already"),
            Request::Open(_) if self.open => refuse("there is a channel already: close it first"),
            Request::Open(channel) => {
                channel.check()?;
                let channel = self.backend.open(channel)?;
                self.open = true;
                Ok(Response::Opened(channel))
            }
            _ if !self.open => refuse("there is no channel: open one first"),
            Request::PostRead(read) => self.backend.post_read(read).map(|()| Response::Posted),
            Request::Poll { wait_ms } => {
                let wait = Duration::from_millis((*wait_ms).into());
                if wait > MAX_WAIT {
                    return refuse(&format!(
                        "expected a wait of at most {} ms, found {wait_ms}",
                        MAX_WAIT.as_millis()
                    ));
                }
                self.poll(wait, unwanted)
                    .map(|completions| Response::Completions { completions })
            }
            Request::Query => self.backend.query().map(Response::QueuePair),
            Request::Close => {
                // Even if closing fails, there is no channel afterwards.
                self.open = false;
                self.backend.close().map(|()| Response::Closed)
            }
        }
    }

    fn poll(
        &mut self,
        wait: Duration,
        unwanted: impl Fn() -> bool,
    ) -> Result<Vec<Completion>, Failure> {
        let start = Instant::now();
        loop {
            let left = wait.saturating_sub(start.elapsed());
            let completions = self.backend.poll(left.min(PIECE))?;
            if !completions.is_empty() || left.is_zero() || unwanted() {
                return Ok(completions);
            }
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        if self.open {
            // No one is left to report to; dropping the backend releases the rest.
            let _ = self.backend.close();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;
    use crate::agent::protocol::{Channel, OpenChannel, QueuePair, Read};

    /// Counts its polls and finds nothing.
    struct Silent(Arc<AtomicU32>);

    impl Backend for Silent {
        fn device(&self) -> Device {
            Device::default()
        }

        fn open(&mut self, _: &OpenChannel) -> Result<Channel, Failure> {
            unreachable!("it is not asked for a channel")
        }

        fn post_read(&mut self, _: &Read) -> Result<(), Failure> {
            unreachable!("it is not asked for a READ")
        }

        fn poll(&mut self, wait: Duration) -> Result<Vec<Completion>, Failure> {
            assert!(wait <= PIECE);
            self.0.fetch_add(1, Ordering::Relaxed);
            Ok(Vec::new())
        }

        fn query(&mut self) -> Result<QueuePair, Failure> {
            unreachable!("it is not asked for attributes")
        }

        fn close(&mut self) -> Result<(), Failure> {
            Ok(())
        }
    }

    #[test]
    fn a_wait_that_nobody_wants_any_more_ends_after_a_piece() {
        let polls = Arc::new(AtomicU32::new(0));
        let mut client = Client {
            backend: Box::new(Silent(polls.clone())),
            open: true,
        };
        let asked = Cell::new(0);
        let unwanted = || asked.replace(asked.get() + 1) == 2;
        let response = client
            .answer(&Request::Poll { wait_ms: 10_000 }, unwanted)
            .unwrap();
        assert_eq!(
            (response, polls.load(Ordering::Relaxed)),
            (
                Response::Completions {
                    completions: Vec::new()
                },
                3
            )
        );
    }

    #[test]
    fn without_a_wait_it_is_polled_once() {
        let polls = Arc::new(AtomicU32::new(0));
        let mut client = Client {
            backend: Box::new(Silent(polls.clone())),
            open: true,
        };
        client
            .answer(&Request::Poll { wait_ms: 0 }, || false)
            .unwrap();
        assert_eq!(polls.load(Ordering::Relaxed), 1);
    }
}
