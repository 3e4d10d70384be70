//! The agent's side of the protocol.
//!
//! Connections are tasks of one thread. The backend blocks and therefore has a thread of its own. A
//! client that has sent a valid `Hello` owns it until its connection ends, however it ends.

mod connection;
mod session;
mod worker;

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io;
use std::net::TcpListener;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use tokio::runtime;
use tokio::sync::{Mutex, oneshot};
use tokio::task::{AbortHandle, JoinSet};

use self::connection::Connection;
use self::session::Session;
use super::backend::Backend;
use super::protocol::Failure;

/// Pause after a failed accept, for want of descriptors or memory.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);
/// Most connections at a time, including refused ones. A further one takes the place of the oldest
/// that has not said `Hello`.
const MAX_CONNECTIONS: usize = 256;

/// Options of the server.
#[derive(Clone)]
pub struct ServerOptions {
    /// The secret that clients must present; `None` admits anyone.
    pub token: Option<String>,
    /// A client that sends no request for this long counts as gone.
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

/// Serves one client at a time until `stop` is ready. Each client has its own backend; `make` makes
/// it after `Hello`.
///
/// Everything is released when this returns.
///
/// # Errors
/// Fails if the system refuses a thread or a connection. Clients' errors are reported to them only.
///
/// # Panics
/// Panics if the backend does.
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
        // The backend's thread ends when the last sender of jobs is dropped.
        runtime.block_on(async {
            let session = Session {
                jobs: Arc::new(Mutex::new(jobs)),
                options: Arc::new(options),
            };
            let mut connections = JoinSet::new();
            let outcome = tokio::select! {
                () = stop => Ok(()),
                // The thread has panicked; the scope reports it.
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
    let mut served = VecDeque::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let stream = match accepted {
                    Ok((stream, _)) => stream,
                    Err(error) if is_fatal(&error) => {
                        return Err(error).context("no connection can be accepted");
                    }
                    Err(_) => {
                        tokio::time::sleep(ACCEPT_AGAIN).await;
                        continue;
                    }
                };
                // A connection that is already gone is not a reason to end.
                let Ok(connection) = Connection::new(stream) else { continue };
                if connections.len() >= MAX_CONNECTIONS && !make_room(&mut served) {
                    continue;
                }
                let greeted = Arc::new(AtomicBool::new(false));
                let session = session.clone().run(connection, greeted.clone());
                served.push_back((connections.spawn(session), greeted));
            }
            Some(ended) = connections.join_next() => {
                if let Err(Ok(panic)) = ended.map_err(tokio::task::JoinError::try_into_panic) {
                    std::panic::resume_unwind(panic);
                }
            }
        }
    }
}

/// Ends the oldest connection that has not said `Hello`; false: all have.
fn make_room(served: &mut VecDeque<(AbortHandle, Arc<AtomicBool>)>) -> bool {
    served.retain(|(connection, _)| !connection.is_finished());
    let silent = served
        .iter()
        .position(|(_, greeted)| !greeted.load(Ordering::Relaxed));
    let Some((connection, _)) = silent.and_then(|place| served.remove(place)) else {
        return false;
    };
    connection.abort();
    true
}

/// True if the listener itself is broken. Every other error passes: accept(2) also reports errors
/// of the network and of connections that are gone, and descriptors become free again.
fn is_fatal(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::EBADF | libc::EINVAL | libc::ENOTSOCK)
    )
}
