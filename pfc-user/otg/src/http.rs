//! The HTTP interface: the model's operations, and the engine's own counts.

use std::future::ready;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Extension, Request, State};
use axum::http::uri::Authority;
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodFilter, get, on};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;
use validator_core::prometheus::CONTENT_TYPE;

use crate::api::{Answer, OPERATIONS, Operation};
use crate::body::Taken;
use crate::connections::{self, Connection, Handle, IDLE, Peer};
use crate::error::{Refusal, Why};
use crate::json;
use crate::session::Session;
use crate::shared::Shared;

const JSON: &str = "application/json";
/// Content type of octets. Its character set says nothing of them: without one, snappi searches a
/// whole capture for signs of one, and takes a minute for 100 MB.
const OCTETS: &str = "application/octet-stream; charset=iso-8859-1";

/// The protocol's name in TLS.
pub const PROTOCOL: &str = "http/1.1";

/// Serves until the sender of `stopped` is gone.
pub async fn serve(
    listener: TcpListener,
    tls: TlsAcceptor,
    shared: Arc<Shared>,
    stopped: watch::Receiver<()>,
) {
    let warn = shared.warn;
    let local = listener.local_addr();
    let local = local.is_ok_and(|address| address.ip().is_loopback());
    let router = router(shared, local);
    let begin = move |connection: Connection| {
        let router = router
            .clone()
            .layer(Extension(connection.peer))
            .layer(Extension(connection.handle()));
        ready(Ok(http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(IDLE)
            .serve_connection(
                TokioIo::new(connection),
                TowerToHyperService::new(router),
            )))
    };
    connections::serve(listener, tls, stopped, warn, begin).await;
}

/// All paths; `local`: they are offered on loopback alone.
fn router(shared: Arc<Shared>, local: bool) -> Router {
    let mut router = Router::new()
        .route("/counters", get(counters))
        .route("/metrics", get(prometheus));
    for operation in &OPERATIONS {
        let (method, path) = operation.http;
        let filter = match method {
            "GET" => MethodFilter::GET,
            "PATCH" => MethodFilter::PATCH,
            _ => MethodFilter::POST,
        };
        let handler = move |State(shared): State<Arc<Shared>>, request: Request| {
            perform(shared, operation, request)
        };
        router = router.route(path, on(filter, handler));
    }
    router
        .fallback(unknown)
        .method_not_allowed_fallback(unknown)
        .layer(middleware::from_fn_with_state(
            (Arc::clone(&shared), local),
            guard,
        ))
        .with_state(shared)
}

/// Lets in who may use the server.
async fn guard(
    State((shared, local)): State<(Arc<Shared>, bool)>,
    Extension(peer): Extension<Peer>,
    Extension(handle): Extension<Handle>,
    request: Request,
    next: Next,
) -> Result<Response, Refusal> {
    let headers = request.headers();
    // A page in a browser reaches loopback, too. No other client sends the header.
    if headers.contains_key(header::ORIGIN) {
        let text = "requests of web pages are not served";
        return Err(Refusal::new(Why::Foreign, text));
    }
    // Browsers leave that header out of what a page only loads, and the page can read the reply if
    // its own name leads here. By TLS no name does: the browser asks for its certificate.
    if let Some(host) = headers.get(header::HOST)
        && local
        && !peer.tls
        && !is_no_name(host)
    {
        let host = String::from_utf8_lossy(host.as_bytes());
        let text = format!(
            "the name \"{host}\" is not served on loopback, where web pages could make it lead: \
             come by localhost, 127.0.0.1 or https://"
        );
        return Err(Refusal::new(Why::Foreign, text));
    }
    let token = headers.get(header::AUTHORIZATION);
    let token = token.map(HeaderValue::as_bytes);
    let words = ("a header, Authorization", "https://");
    shared.access.admits(peer, token, words)?;
    let _under_way = handle.let_in();
    Ok(next.run(request).await)
}

/// Names of loopback, also in the files of hosts of Debian and Fedora.
const LOCAL: [&str; 4] = [
    "localhost",
    "localhost.localdomain",
    "ip6-localhost",
    "ip6-loopback",
];

/// Returns true for a host that cannot be made to lead elsewhere: one of loopback's names (RFC
/// 6761, 6.3) or an address.
fn is_no_name(host: &HeaderValue) -> bool {
    let Ok(authority) = Authority::try_from(host.as_bytes()) else {
        return false;
    };
    let host = authority.host();
    let within = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'));
    match within {
        Some(address) => address.parse::<Ipv6Addr>().is_ok(),
        None => {
            let name = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
            let is_local = LOCAL.contains(&&*name) || name.ends_with(".localhost");
            is_local || host.parse::<IpAddr>().is_ok()
        }
    }
}

async fn perform(
    shared: Arc<Shared>,
    operation: &'static Operation,
    request: Request,
) -> Result<Response, Refusal> {
    let Taken { octets, room } = shared.room.read(request.into_body()).await?;
    let argument = move || operation.argument(|kind| json::parse(kind.name(), &octets));
    Ok(match shared.perform(operation, room, argument).await? {
        Answer::Message(message) => reply(StatusCode::OK, JSON, json::text(&message)),
        Answer::File(file) => {
            let body = Body::from_stream(tokio_stream::iter(file));
            reply(StatusCode::OK, OCTETS, body)
        }
    })
}

async fn counters(State(shared): State<Arc<Shared>>) -> Result<Response, Refusal> {
    // A client that only looks on is alive.
    shared.asked();
    let counters = shared.look(Session::counters).await?;
    let text =
        serde_json::to_string(&counters).map_err(|error| Refusal::internal(error.to_string()))?;
    Ok(reply(StatusCode::OK, JSON, text))
}

/// Serves Prometheus, which asks for as long as it runs, whether or not there is a client.
async fn prometheus(State(shared): State<Arc<Shared>>) -> Result<Response, Refusal> {
    let counters = shared.look(Session::counters).await?;
    Ok(reply(StatusCode::OK, CONTENT_TYPE, counters.prometheus()))
}

async fn unknown(method: Method, request: Request) -> Refusal {
    let text = format!("there is no {method} {}", request.uri().path());
    Refusal::new(Why::Unknown, text)
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        reply(self.why.http(), JSON, self.body())
    }
}

fn reply(status: StatusCode, kind: &'static str, body: impl Into<Body>) -> Response {
    (status, [(header::CONTENT_TYPE, kind)], body.into()).into_response()
}
