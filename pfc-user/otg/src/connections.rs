//! Connections of both transports, plain or by TLS on the same port: the first octet tells them
//! apart.

use std::future::{Future, pending};
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use hyper_util::server::graceful::GracefulConnection;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, Sleep, sleep, sleep_until, timeout, timeout_at};
use tokio_rustls::TlsAcceptor;

/// The first octet of a TLS connection: a record of the handshake (RFC 8446, 5.1).
const HANDSHAKE: u8 = 0x16;
/// Connections that are served at a time.
const CONNECTIONS: usize = 256;
/// Longest time until the first request of a connection that is let in. Until then, the client that
/// takes a place is unknown.
const FIRST: Duration = Duration::from_secs(10);
/// Longest time without a request between two of them.
pub const IDLE: Duration = Duration::from_secs(60);
/// Longest silence of a connection that was asked to give way and has no request under way: hyper
/// waits for an answer of its client, which may be gone.
const SILENCE: Duration = Duration::from_millis(500);
/// Time from one look at how long such a connection is silent to the next.
const LOOK: Duration = Duration::from_millis(100);
/// Time for a connection that was asked to give way, until the next one is asked: what it has under
/// way is ended first. Longer than [`SILENCE`], so that a client that is gone takes no other along.
const GIVES_WAY: Duration = Duration::from_secs(1);
/// Longest time to end what is under way when the server stops.
const GRACE: Duration = Duration::from_secs(2);

/// Longest time for which a client takes nothing of what it is sent.
const TAKE: Duration = Duration::from_secs(60);

/// A stream of octets, plain or within TLS.
trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// A connection.
pub struct Connection {
    stream: Box<dyn Stream>,
    /// Properties of its client.
    pub peer: Peer,
    /// Set while the client takes nothing.
    stuck: Option<Pin<Box<Sleep>>>,
    place: Arc<Place>,
}

/// The places of all connections.
struct Places {
    free: Arc<Semaphore>,
    taken: Mutex<Vec<Weak<Place>>>,
}

/// The place of a connection, which is free for another one when this is dropped.
struct Place {
    /// Deadline for the first request that is let in.
    by: Instant,
    /// Set once that request has come.
    admitted: AtomicBool,
    /// Time at which the client last sent or took something.
    heard: Mutex<Instant>,
    /// Requests that have no reply yet.
    under_way: AtomicUsize,
    asked: AtomicBool,
    leave: Notify,
    _permit: OwnedSemaphorePermit,
}

impl Places {
    fn new(count: usize) -> Self {
        Self {
            free: Arc::new(Semaphore::new(count)),
            taken: Mutex::default(),
        }
    }

    /// Takes a place. Where none is free, the connection that was silent for longest gives way.
    async fn take(&self) -> Arc<Place> {
        let permit = loop {
            if self.free.available_permits() == 0 {
                self.ask_one_to_leave();
            }
            let free = Arc::clone(&self.free).acquire_owned();
            if let Ok(permit) = timeout(GIVES_WAY, free).await {
                break permit.expect("nobody closes the semaphore");
            }
        };
        let now = Instant::now();
        let place = Arc::new(Place {
            by: now + FIRST,
            admitted: AtomicBool::new(false),
            heard: Mutex::new(now),
            under_way: AtomicUsize::new(0),
            asked: AtomicBool::new(false),
            leave: Notify::new(),
            _permit: permit,
        });
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        taken.retain(|place| place.strong_count() > 0);
        taken.push(Arc::downgrade(&place));
        place
    }

    fn ask_one_to_leave(&self) {
        let taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let places = taken.iter().filter_map(Weak::upgrade);
        let staying = places.filter(|place| !place.asked.load(Relaxed));
        if let Some(silent) =
            staying.min_by_key(|place| (place.under_way.load(Relaxed) > 0, place.heard()))
        {
            silent.asked.store(true, Relaxed);
            silent.leave.notify_one();
        }
    }
}

impl Place {
    fn heard(&self) -> Instant {
        *self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn hears(&self) {
        *self.heard.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// Waits until the first request is late; for ever if it has come.
    async fn late(&self) {
        sleep_until(self.by).await;
        if self.admitted.load(Relaxed) {
            pending::<()>().await;
        }
    }

    /// Waits until nothing is under way and the client has been silent for [`SILENCE`].
    async fn silent(&self) {
        loop {
            let silent_at = self.heard() + SILENCE;
            if silent_at <= Instant::now() && self.under_way.load(Relaxed) == 0 {
                return;
            }
            sleep_until(silent_at.max(Instant::now() + LOOK)).await;
        }
    }
}

/// A handle of a connection, for those who serve its requests, perhaps longer than it lasts.
#[derive(Clone)]
pub struct Handle(Weak<Place>);

impl Handle {
    /// Lets a request in, which is under way until the value is dropped.
    pub fn let_in(&self) -> UnderWay {
        if let Some(place) = self.0.upgrade() {
            place.admitted.store(true, Relaxed);
            place.under_way.fetch_add(1, Relaxed);
        }
        UnderWay(Weak::clone(&self.0))
    }
}

/// A request that has no reply yet.
pub struct UnderWay(Weak<Place>);

impl Drop for UnderWay {
    fn drop(&mut self) {
        if let Some(place) = self.0.upgrade() {
            place.hears();
            place.under_way.fetch_sub(1, Relaxed);
        }
    }
}

/// Properties of a client that has connected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Peer {
    /// True if it has shown a certificate that an authority of the server's has signed.
    pub proven: bool,
    /// True if it came by TLS.
    pub tls: bool,
}

/// Serves each connection in the protocol that `begin` begins on it, until the sender of `stopped`
/// is gone.
pub async fn serve<F, C>(
    listener: TcpListener,
    tls: TlsAcceptor,
    mut stopped: watch::Receiver<()>,
    warn: fn(&str),
    begin: impl Fn(Connection) -> F + Clone + Send + 'static,
) where
    F: Future<Output = io::Result<C>> + Send + 'static,
    C: GracefulConnection<Error: Send> + Send,
{
    let places = Places::new(CONNECTIONS);
    let mut connections = JoinSet::new();
    loop {
        let accept = async {
            let (stream, _) = listener.accept().await?;
            Ok::<_, io::Error>((stream, places.take().await))
        };
        let accepted = tokio::select! {
            accepted = accept => accepted,
            _ = stopped.changed() => break,
        };
        let (stream, place) = match accepted {
            Ok(accepted) => accepted,
            // A connection that was reset before it was accepted, or no descriptors for now.
            Err(error) => {
                warn(&format!("cannot accept a connection: {error}"));
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        let (tls, begin, stopped) = (tls.clone(), begin.clone(), stopped.clone());
        connections.spawn(async move {
            let begun = tokio::select! {
                begun = Connection::begin(stream, &tls, Arc::clone(&place)) => begun,
                () = place.leave.notified() => return,
            };
            // Otherwise the client is gone, or spoke something else; it knows.
            if let Ok(connection) = begun
                && let Ok(connection) = begin(connection).await
            {
                let _ = serve_one(connection, &place, stopped).await;
            }
        });
        while connections.try_join_next().is_some() {}
    }
    let ended = async { while connections.join_next().await.is_some() {} };
    // Connections that are left are dropped.
    let _ = timeout(GRACE, ended).await;
}

/// Serves a connection until it ends, or its first request is late. Once another connection needs
/// its place, or the sender of `stopped` is gone, only requests under way are served.
///
/// # Errors
///
/// Errors that the client knows of: it spoke something else, or went.
async fn serve_one<C: GracefulConnection>(
    connection: C,
    place: &Place,
    mut stopped: watch::Receiver<()>,
) -> Result<(), C::Error> {
    tokio::pin!(connection);
    tokio::select! {
        ended = connection.as_mut() => return ended,
        () = place.late() => return Ok(()),
        () = place.leave.notified() => {
            connection.as_mut().graceful_shutdown();
            return tokio::select! {
                ended = connection => ended,
                () = place.silent() => Ok(()),
            };
        }
        _ = stopped.changed() => connection.as_mut().graceful_shutdown(),
    }
    connection.await
}

impl Connection {
    async fn begin(stream: TcpStream, tls: &TlsAcceptor, place: Arc<Place>) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        let mut octet = [0];
        timeout_at(place.by, stream.peek(&mut octet)).await??;
        let mut peer = Peer::default();
        let stream: Box<dyn Stream> = if octet[0] == HANDSHAKE {
            let stream = timeout_at(place.by, tls.accept(stream)).await??;
            peer.tls = true;
            peer.proven = stream.get_ref().1.peer_certificates().is_some();
            Box::new(stream)
        } else {
            Box::new(stream)
        };
        Ok(Self {
            stream,
            peer,
            stuck: None,
            place,
        })
    }

    /// Returns a handle of it.
    pub fn handle(&self) -> Handle {
        Handle(Arc::downgrade(&self.place))
    }

    /// Returns the deadline for its first request that is let in.
    pub fn by(&self) -> Instant {
        self.place.by
    }

    /// Returns an error where nothing could be written for too long.
    fn unless_stuck<T>(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.place.hears();
            self.stuck = None;
            return written;
        }
        let stuck = self.stuck.get_or_insert_with(|| Box::pin(sleep(TAKE)));
        ready!(stuck.as_mut().poll(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let read = Pin::new(&mut this.stream).poll_read(context, buffer);
        if read.is_ready() {
            this.place.hears();
        }
        read
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        octets: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.stream).poll_write(context, octets);
        this.unless_stuck(context, written)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.stream).poll_write_vectored(context, pieces);
        this.unless_stuck(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.stream).poll_flush(context);
        this.unless_stuck(context, written)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.stream).poll_shutdown(context);
        this.unless_stuck(context, written)
    }
}
