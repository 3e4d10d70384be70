//! The server: listeners of both transports before one session.

use std::future::{Future, pending};
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use prost_reflect::DynamicMessage;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};
use validator_core::engine::Engine;
use validator_core::engine::snapshot::SAMPLING;

use crate::access::Access;
use crate::api::{self, Answer, Call};
use crate::body::Room;
use crate::error::Refusal;
use crate::places::Places;
use crate::session::Session;
use crate::tls::Tls;
use crate::{grpc, http, lease};

/// Longest request, in octets: a configuration of 4096 flows has about 8 MiB of JSON.
pub const LONGEST: usize = 64 << 20;
/// Longest time for a request to come in.
pub const REQUEST: Duration = Duration::from_secs(30);

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
    pub tell: fn(&str),
}

/// A server that listens, and does not serve yet.
pub struct Server {
    grpc: TcpListener,
    http: TcpListener,
    options: Options,
}

/// State that the requests of all connections share.
pub struct Shared {
    /// `None` once the server stops.
    session: Mutex<Option<Session>>,
    /// Clients that may use the server.
    pub access: Access,
    /// Sink of messages that no client asks for.
    pub tell: fn(&str),
    /// Memory for requests that are coming in.
    pub room: Room,
    last: watch::Sender<Instant>,
}

impl Server {
    /// Listens.
    ///
    /// # Errors
    ///
    /// An address that is taken, or that others reach though neither a token nor a certificate is
    /// asked of them.
    pub async fn bind(mut options: Options) -> io::Result<Self> {
        if options.tls.proves_clients() {
            options.access = options.access.with_certificates();
        }
        for address in [options.grpc, options.http] {
            let allowed = options.access.listens(address);
            allowed.map_err(|why| io::Error::new(io::ErrorKind::PermissionDenied, why))?;
            if let Some(warning) = options.access.exposes(address) {
                (options.tell)(&warning);
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
        let shared = Arc::new(Shared {
            session: Mutex::new(Some(Session::new(engine, places, self.options.tell))),
            access: self.options.access,
            tell: self.options.tell,
            room: Room::new(),
            last,
        });
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

impl Shared {
    /// Carries out a call on a thread that may block.
    ///
    /// # Errors
    ///
    /// Errors of the call.
    pub async fn perform(
        self: &Arc<Self>,
        call: Call,
        argument: impl FnOnce() -> Result<Option<DynamicMessage>, Refusal> + Send + 'static,
    ) -> Result<Answer, Refusal> {
        self.asked();
        self.blocking(move |shared| {
            let argument = argument()?;
            shared.with_session(|session| {
                let answer = api::perform(session, call, argument);
                // A long request is no silence of the client.
                shared.asked();
                answer
            })
        })
        .await
    }

    /// Notes a sign of life of a client.
    pub fn asked(&self) {
        self.last.send_replace(Instant::now());
    }

    /// Returns the time since the last sign of life of a client, which a request gives when it
    /// begins and when it has been carried out.
    pub fn silence(&self) -> Duration {
        self.last.borrow().elapsed()
    }

    /// Runs `look` on the session, on a thread that may block. By itself, this is no request of a
    /// client.
    ///
    /// # Errors
    ///
    /// Errors of `look`.
    pub async fn look<T: Send + 'static>(
        self: &Arc<Self>,
        look: impl FnOnce(&mut Session) -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, Refusal> {
        self.blocking(move |shared| shared.with_session(look)).await
    }

    /// Notes counts as often as rates need it; returns only if the server is gone.
    async fn sample(self: Arc<Self>) {
        let mut ticks = interval(Duration::from_nanos(SAMPLING));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let sampled = self.look(|session| {
                session.sample();
                Ok(())
            });
            let sampled = sampled.await;
            if sampled.is_err() {
                return pending().await;
            }
        }
    }

    async fn blocking<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&Self) -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, Refusal> {
        let shared = Arc::clone(self);
        let done = tokio::task::spawn_blocking(move || work(&shared)).await;
        done.unwrap_or_else(|error| Err(Refusal::internal(format!("the request failed: {error}"))))
    }

    fn with_session<T>(
        &self,
        work: impl FnOnce(&mut Session) -> Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        let Ok(mut session) = self.session.lock() else {
            return Err(Refusal::internal(
                "an earlier request made the engine fail: restart the server",
            ));
        };
        match session.as_mut() {
            Some(session) => work(session),
            None => Err(Refusal::internal("the server stops")),
        }
    }

    /// Drops the engine, which puts the ports back as it found them.
    async fn close(self: Arc<Self>) {
        let dropped = tokio::task::spawn_blocking(move || {
            let mut session = self.session.lock().unwrap_or_else(PoisonError::into_inner);
            drop(session.take());
        });
        if let Err(error) = dropped.await {
            // The engine panicked; the message is on standard error.
            debug_assert!(error.is_panic());
        }
    }
}

async fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    TcpListener::bind(address).await.map_err(|error| {
        io::Error::new(error.kind(), format!("cannot listen on {address}: {error}"))
    })
}
