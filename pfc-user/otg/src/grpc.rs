//! The gRPC service `otg.Openapi`, by descriptor.

mod codec;
mod service;

pub use codec::Octets;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};
use tokio_rustls::TlsAcceptor;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Server;

use crate::connections::{self, Connection};
use crate::server::{REQUEST, Shared};
use service::Service;

/// Silence after which a client is asked whether it is still there.
const KEEPALIVE: Duration = Duration::from_secs(60);

/// The protocol's name in TLS.
pub const PROTOCOL: &str = "h2";
/// Connections that wait to be taken over.
const WAITING: usize = 16;

/// Serves until the sender of `stopped` is gone.
///
/// # Errors
///
/// Those of the transport.
pub async fn serve(
    listener: TcpListener,
    tls: TlsAcceptor,
    shared: Arc<Shared>,
    mut stopped: watch::Receiver<()>,
) -> io::Result<()> {
    let (begun, incoming) = mpsc::channel(WAITING);
    let hand_over = move |connection: Connection| {
        let begun = begun.clone();
        async move {
            // An error: the server stops.
            let _ = begun.send(Ok::<_, io::Error>(connection)).await;
        }
    };
    let begin = connections::each(listener, tls, stopped.clone(), shared.tell, hand_over);
    let serve = Server::builder()
        .timeout(REQUEST)
        .http2_keepalive_interval(Some(KEEPALIVE))
        .add_service(Service::new(shared))
        .serve_with_incoming_shutdown(ReceiverStream::new(incoming), async move {
            // An error: the sender is gone.
            while stopped.changed().await.is_ok() {}
        });
    let begin = async {
        begin.await;
        Ok(())
    };
    let served = tokio::try_join!(begin, serve).map(|_| ());
    served.map_err(io::Error::other)
}
