//! Requests of a connection, one after the other.

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::sync::watch;

use crate::connections::{BEGIN, Connection};

/// Serves a connection until it ends, or the sender of `stopped` is gone. One without a request for
/// so long as its beginning may take is closed.
///
/// # Errors
///
/// What the client knows: that it spoke something else, or went.
pub async fn serve(
    connection: Connection,
    router: Router,
    mut stopped: watch::Receiver<()>,
) -> hyper::Result<()> {
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(BEGIN)
        .serve_connection(TokioIo::new(connection), TowerToHyperService::new(router));
    tokio::pin!(connection);
    tokio::select! {
        ended = connection.as_mut() => return ended,
        _ = stopped.changed() => connection.as_mut().graceful_shutdown(),
    }
    connection.await
}
