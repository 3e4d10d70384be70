//! Connections, plain or by TLS on the same port: the first octet tells them apart.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

/// The first octet of a TLS connection: a record of the handshake (RFC 8446, 5.1).
const HANDSHAKE: u8 = 0x16;
/// Connections at a time.
const CONNECTIONS: usize = 256;
/// Longest wait for the head of a request; idle connections are closed after it, too.
const HEAD: Duration = Duration::from_secs(60);
/// Longest time to end what is under way when the server stops.
const GRACE: Duration = Duration::from_secs(2);

/// Serves connections until the sender of `stopped` is gone.
///
/// # Errors
///
/// Those of the listener.
pub async fn serve(
    listener: TcpListener,
    tls: TlsAcceptor,
    router: Router,
    mut stopped: watch::Receiver<()>,
    tell: fn(&str),
) -> io::Result<()> {
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    let mut connections = JoinSet::new();
    loop {
        let accept = async {
            // An error: it was closed, which it never is.
            let place = Arc::clone(&places).acquire_owned().await;
            (place, listener.accept().await)
        };
        let (place, stream) = tokio::select! {
            accepted = accept => accepted,
            _ = stopped.changed() => break,
        };
        let stream = match stream {
            Ok((stream, _)) => stream,
            // A connection that was reset before it was accepted, or no descriptors for now.
            Err(error) => {
                tell(&format!("cannot accept a connection: {error}"));
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        let (tls, router, stopped) = (tls.clone(), router.clone(), stopped.clone());
        connections.spawn(async move {
            // The client is gone, or spoke something else; it knows.
            let _ = connection(stream, tls, router, stopped).await;
            drop(place);
        });
        while connections.try_join_next().is_some() {}
    }
    let ended = async { while connections.join_next().await.is_some() {} };
    // What is left is dropped.
    let _ = timeout(GRACE, ended).await;
    Ok(())
}

async fn connection(
    stream: TcpStream,
    tls: TlsAcceptor,
    router: Router,
    stopped: watch::Receiver<()>,
) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut first = [0];
    timeout(HEAD, stream.peek(&mut first)).await??;
    if first[0] == HANDSHAKE {
        let stream = timeout(HEAD, tls.accept(stream)).await??;
        requests(stream, router, stopped).await
    } else {
        requests(stream, router, stopped).await
    }
}

async fn requests(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    router: Router,
    mut stopped: watch::Receiver<()>,
) -> io::Result<()> {
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    tokio::pin!(connection);
    tokio::select! {
        ended = connection.as_mut() => return ended.map_err(io::Error::other),
        _ = stopped.changed() => connection.as_mut().graceful_shutdown(),
    }
    connection.await.map_err(io::Error::other)
}
