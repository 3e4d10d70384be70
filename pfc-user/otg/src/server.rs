//! The server: listeners of both transports before one session.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};
use validator_core::engine::Engine;

use crate::access::Access;
use crate::places::Places;
use crate::session::Session;
use crate::shared::Shared;
use crate::tls::Tls;
use crate::{grpc, http, lease};

/// Longest time for connections to end when the server stops.
const GRACE: Duration = Duration::from_secs(3);

/// Options of a server: its addresses, and the clients that it serves.
#[derive(Clone)]
pub struct Options {
    /// Address for gRPC.
    pub grpc: SocketAddr,
    /// Address for HTTP, plain and by TLS.
    pub http: SocketAddr,
    /// Clients that may use it. Where clients show certificates, those without one may not.
    pub access: Access,
    /// TLS of both addresses, which take plain connections beside it.
    pub tls: Tls,
    /// Time without a request after which flows without an end are stopped.
    pub lease: Duration,
    /// Sink of messages that no client asks for.
    pub warn: fn(&str),
}

/// A server that listens, and does not serve yet.
pub struct Server {
    grpc: TcpListener,
    http: TcpListener,
    options: Options,
}

impl Server {
    /// Listens.
    ///
    /// # Errors
    ///
    /// An address that is taken, or that others reach though neither a token nor a certificate is
    /// asked of them.
    pub async fn bind(mut options: Options) -> io::Result<Self> {
        if options.tls.proves_clients {
            options.access = options.access.with_certificates();
        }
        for address in [options.grpc, options.http] {
            let allowed = options.access.listens(address);
            allowed.map_err(|why| io::Error::new(io::ErrorKind::PermissionDenied, why))?;
            if let Some(warning) = options.access.exposes(address) {
                (options.warn)(&warning);
            }
        }
        Ok(Self {
            grpc: listen(options.grpc).await?,
            http: listen(options.http).await?,
            options,
        })
    }

    /// Addresses of gRPC and HTTP.
    ///
    /// # Errors
    ///
    /// Errors of the system.
    pub fn addresses(&self) -> io::Result<(SocketAddr, SocketAddr)> {
        Ok((self.grpc.local_addr()?, self.http.local_addr()?))
    }

    /// Serves until `stop` is done. The engine is dropped then.
    pub async fn run(
        self,
        engine: Box<dyn Engine>,
        places: Places,
        stop: impl Future<Output = ()>,
    ) {
        let (last, requests) = watch::channel(Instant::now());
        let warn = self.options.warn;
        let session = Session::new(engine, places, warn);
        let shared = Arc::new(Shared::new(session, self.options.access, warn, last));
        let (stopping, stopped) = watch::channel(());
        let tls = |protocol| self.options.tls.acceptor(protocol);
        let (of_grpc, of_http) = (tls(grpc::PROTOCOL), tls(http::PROTOCOL));
        let grpc = grpc::serve(self.grpc, of_grpc, Arc::clone(&shared), stopped.clone());
        let http = http::serve(self.http, of_http, Arc::clone(&shared), stopped);
        let lease = lease::keep(Arc::clone(&shared), requests, self.options.lease);
        let stop = async {
            tokio::select! {
                () = lease => {}
                () = Arc::clone(&shared).sample() => {}
                () = stop => {}
            }
            drop(stopping);
            // A client that keeps its connection does not hold up the stop.
            sleep(GRACE).await;
        };
        tokio::select! {
            _ = async { tokio::join!(grpc, http) } => {}
            () = stop => {}
        }
        shared.close().await;
    }
}

async fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    TcpListener::bind(address).await.map_err(|error| {
        io::Error::new(error.kind(), format!("cannot listen on {address}: {error}"))
    })
}
