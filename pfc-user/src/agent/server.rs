//! The agent's side of the protocol.
//!
//! Connections are tasks of one thread. The backend blocks, so that it has a thread of its own; whoever has said the right
//! `Hello` owns it until the connection ends, however it ends.

mod connection;
mod session;
mod worker;

use std::convert::Infallible;
use std::net::TcpListener;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use tokio::runtime;
use tokio::sync::{Mutex, oneshot};
use tokio::task::JoinSet;

use self::connection::Connection;
use self::session::Session;
use super::backend::Backend;
use super::protocol::Failure;

/// How long no connection is accepted after one could not be, for want of descriptors or memory.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);
/// Connections at a time, those included that are told to go away; others are closed at once.
const MAX_CONNECTIONS: usize = 16;

/// Whom to serve.
#[derive(Clone)]
pub struct ServerOptions {
    /// The secret that clients must know; `None`: any may come.
    pub token: Option<String>,
    /// A client that asks nothing for so long is taken for gone.
    pub idle: Duration,
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self {
            token: None,
            idle: Duration::from_secs(60 * 60),
        }
    }
}

/// Serves one client at a time until `stop` is ready. Each has a backend of its own, which `make` makes when it has said `Hello`.
///
/// All is given back when this returns.
///
/// # Errors
/// When the system refuses a thread or a connection. What clients do wrong is told to them.
///
/// # Panics
/// When the backend does.
pub fn serve(
    listener: TcpListener,
    options: ServerOptions,
    make: impl FnMut() -> Result<Box<dyn Backend>, Failure> + Send,
    stop: impl Future<Output = ()>,
) -> Result<()> {
    listener
        .set_nonblocking(true)
        .context("the agent's socket cannot be made non-blocking")?;
    let runtime = runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("the agent's reactor cannot be made")?;
    let (jobs, inbox) = mpsc::channel();
    let (alive, ended) = oneshot::channel();
    thread::scope(|scope| {
        let backend = thread::Builder::new().name("backend".into());
        let worker = move || {
            let _alive: oneshot::Sender<Infallible> = alive;
            worker::run(make, &inbox);
        };
        backend
            .spawn_scoped(scope, worker)
            .context("no thread for the backend")?;
        // The backend's thread ends when nobody can give it jobs any more.
        runtime.block_on(async {
            let session = Session {
                jobs: Arc::new(Mutex::new(jobs)),
                options: Arc::new(options),
            };
            let mut connections = JoinSet::new();
            let outcome = tokio::select! {
                () = stop => Ok(()),
                // It has panicked: the scope tells.
                _ = ended => Ok(()),
                outcome = accept(listener, session, &mut connections) => outcome,
            };
            connections.shutdown().await;
            outcome
        })
    })
}

async fn accept(
    listener: TcpListener,
    session: Session,
    connections: &mut JoinSet<()>,
) -> Result<()> {
    let listener = tokio::net::TcpListener::from_std(listener)
        .context("the agent's socket cannot be watched")?;
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let stream = match accepted {
                    Ok((stream, _)) => stream,
                    // No socket any more. Everything else passes: accept(2) hands on errors of the network and of connections that are
                    // gone, and descriptors come back.
                    Err(error) if matches!(error.raw_os_error(), Some(libc::EBADF | libc::EINVAL | libc::ENOTSOCK)) => {
                        return Err(error).context("no connection can be accepted");
                    }
                    Err(_) => {
                        tokio::time::sleep(ACCEPT_AGAIN).await;
                        continue;
                    }
                };
                // One that is gone again is no reason to end.
                let Ok(connection) = Connection::new(stream) else { continue };
                if connections.len() < MAX_CONNECTIONS {
                    connections.spawn(session.clone().run(connection));
                }
            }
            Some(ended) = connections.join_next() => {
                if let Err(Ok(panic)) = ended.map_err(tokio::task::JoinError::try_into_panic) {
                    std::panic::resume_unwind(panic);
                }
            }
        }
    }
}
