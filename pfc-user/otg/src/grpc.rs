//! The gRPC service `otg.Openapi`, by descriptor.

mod codec;
mod service;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::watch;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;

use crate::server::{REQUEST, Shared};
use service::Service;

/// Silence after which a client is asked whether it is still there.
const KEEPALIVE: Duration = Duration::from_secs(60);

/// Serves until the sender of `stopped` is gone.
///
/// # Errors
///
/// Those of the listener.
pub async fn serve(
    listener: TcpListener,
    shared: Arc<Shared>,
    mut stopped: watch::Receiver<()>,
) -> io::Result<()> {
    let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
    Server::builder()
        .timeout(REQUEST)
        .http2_keepalive_interval(Some(KEEPALIVE))
        .add_service(Service::new(shared))
        .serve_with_incoming_shutdown(incoming, async move {
            // An error: the sender is gone.
            while stopped.changed().await.is_ok() {}
        })
        .await
        .map_err(io::Error::other)
}
