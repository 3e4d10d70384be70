//! The gRPC service `otg.Openapi`, by descriptor.

mod codec;
mod service;

pub use codec::Octets;
pub use service::{add_piece, argument};

use std::io;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::time::timeout_at;
use tokio_rustls::TlsAcceptor;

use crate::connections::{self, Connection};
use crate::shared::Shared;

/// Silence after which a client is asked whether it is still there.
const KEEPALIVE: Duration = Duration::from_secs(60);
/// Octets with which HTTP/2 begins (RFC 9113, 3.4).
const PREFACE: usize = 24;

/// The protocol's name in TLS.
pub const PROTOCOL: &str = "h2";

/// Serves until the sender of `stopped` is gone.
pub async fn serve(
    listener: TcpListener,
    tls: TlsAcceptor,
    shared: Arc<Shared>,
    stopped: watch::Receiver<()>,
) {
    let warn = shared.warn;
    let begin = move |connection: Connection| {
        let shared = Arc::clone(&shared);
        let (peer, handle) = (connection.peer, connection.handle());
        let call = service_fn(move |request| {
            service::call(Arc::clone(&shared), peer, handle.clone(), request)
        });
        async move {
            let connection = greeted(connection).await?;
            Ok(http2::Builder::new(TokioExecutor::new())
                .timer(TokioTimer::new())
                .keep_alive_interval(KEEPALIVE)
                .serve_connection(TokioIo::new(connection), call))
        }
    };
    connections::serve(listener, tls, stopped, warn, begin).await;
}

/// Waits until a connection has begun to speak HTTP/2, for which hyper would wait for ever.
async fn greeted(mut connection: Connection) -> io::Result<impl AsyncRead + AsyncWrite + Unpin> {
    let mut preface = [0; PREFACE];
    timeout_at(connection.by(), connection.read_exact(&mut preface)).await??;
    let (rest, write) = tokio::io::split(connection);
    let read = io::Cursor::new(preface).chain(rest);
    Ok(tokio::io::join(read, write))
}
