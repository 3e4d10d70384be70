//! The conversation with a client: which request is allowed when.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::time::Duration;

use subtle::ConstantTimeEq;
use tokio::sync::{Mutex, OwnedMutexGuard, oneshot};
use tokio::time::timeout;

use super::ServerOptions;
use super::connection::{Connection, Ending};
use super::worker::Job;
use crate::agent::protocol::{Failure, FailureKind, Request, Response, VERSION};

/// Time limit for a client's `Hello`.
const HANDSHAKE: Duration = Duration::from_secs(5);
/// Time that a client waits for its predecessor, which may just have closed its connection.
const HANDOVER: Duration = Duration::from_secs(1);

/// State shared by the sessions.
#[derive(Clone)]
pub struct Session {
    /// Its lock owner has the backend.
    pub jobs: Arc<Mutex<Sender<Job>>>,
    /// Options of the server.
    pub options: Arc<ServerOptions>,
}

/// The backend, owned by one client; released when dropped.
struct Owned(OwnedMutexGuard<Sender<Job>>);

impl Owned {
    /// Gives its thread a job, and waits for the reply.
    async fn order<T>(&self, job: impl FnOnce(oneshot::Sender<T>) -> Job) -> Result<T, Ending> {
        let (reply, answer) = oneshot::channel();
        // Its thread outlives this one; otherwise the server ends.
        let _ = self.0.send(job(reply));
        answer.await.map_err(|_| Ending::Gone)
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        let _ = self.0.send(Job::End);
    }
}

impl Session {
    /// Serves a client until it goes; sets `greeted` once it has said `Hello`.
    pub async fn run(self, mut connection: Connection, greeted: Arc<AtomicBool>) {
        let Err(ending) = self.converse(&mut connection, &greeted).await;
        if let Ending::Refused(failure) = ending {
            connection.refuse(failure).await;
        }
    }

    async fn converse(
        &self,
        connection: &mut Connection,
        greeted: &AtomicBool,
    ) -> Result<Infallible, Ending> {
        let first = connection.receive(HANDSHAKE.min(self.options.idle)).await?;
        first
            .and_then(|request| self.greet(request))
            .map_err(Ending::Refused)?;
        greeted.store(true, Ordering::Relaxed);
        let Ok(jobs) = timeout(HANDOVER, self.jobs.clone().lock_owned()).await else {
            return Err(Ending::request(
                "the agent has a client already: wait until that one is done, or end it",
            ));
        };
        let backend = Owned(jobs);
        let device = tokio::select! {
            device = backend.order(|reply| Job::Start { reply }) => device?,
            ending = connection.ended() => return Err(ending),
        };
        let device = device.map_err(Ending::Refused)?;
        connection
            .send(&Response::Welcome {
                version: VERSION,
                device,
            })
            .await?;
        loop {
            let response = match connection.receive(self.options.idle).await? {
                Err(unknown) => Response::Failed(unknown),
                Ok(request) => tokio::select! {
                    response = backend.order(|reply| Job::Ask { request, reply }) => response?,
                    ending = connection.ended() => return Err(ending),
                },
            };
            connection.send(&response).await?;
        }
    }

    fn greet(&self, request: Request) -> Result<(), Failure> {
        let Request::Hello { version, token } = request else {
            return Err(Failure::new(FailureKind::Request, "expected Hello first"));
        };
        if version != VERSION {
            let message = format!(
                "the tester speaks version {version} of the protocol, the agent {VERSION}: use the \
                 same release for both"
            );
            return Err(Failure::new(FailureKind::Version, message));
        }
        let Some(expected) = &self.options.token else {
            return Ok(());
        };
        // Constant time: the duration reveals only the token's length.
        if token.is_some_and(|token| token.as_bytes().ct_eq(expected.as_bytes()).into()) {
            return Ok(());
        }
        Err(Failure::new(FailureKind::Token, "wrong or missing token"))
    }
}
