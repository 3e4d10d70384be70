//! Methods of the service, each in one message or in pieces.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use prost_reflect::prost::Message as _;
use prost_reflect::{DynamicMessage, FieldDescriptor, MessageDescriptor, Value};
use tonic::body::Body;
use tonic::codegen::{StdError, http};
use tonic::server::{Grpc, NamedService};
use tonic::{Code, Request, Response, Status, Streaming};

use super::codec::Octets;
use crate::access::Lacking;
use crate::api::{Answer, OPERATIONS, Operation, Pieces};
use crate::connections::Peer;
use crate::error::{Kind, Refusal};
use crate::model::{self, Builder};
use crate::server::{LONGEST, Shared};

/// Octets of a piece of a reply: well below the 4 MiB that clients take.
const PIECE: usize = 1 << 20;

/// The service.
#[derive(Clone)]
pub struct Service {
    shared: Arc<Shared>,
}

/// A method.
#[derive(Clone, Copy)]
struct Method {
    operation: &'static Operation,
    in_pieces: bool,
}

type Reply = http::Response<Body>;

impl Service {
    /// The service of a session.
    pub fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }
}

impl NamedService for Service {
    const NAME: &'static str = "otg.Openapi";
}

impl<B> tower::Service<http::Request<B>> for Service
where
    B: hyper::body::Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<StdError> + Send + 'static,
{
    type Response = Reply;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Reply, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<B>) -> Self::Future {
        let shared = Arc::clone(&self.shared);
        Box::pin(async move {
            let peer = request.extensions().get::<Peer>().copied();
            let token = request.headers().get("authorization");
            let lacking = shared.access.lacking(
                peer.unwrap_or_default(),
                token.map(http::HeaderValue::as_bytes),
            );
            if let Some(lacking) = lacking {
                let refusal = Refusal::validation(match lacking {
                    Lacking::Token => {
                        "a token is needed: send it as metadata, authorization: Bearer TOKEN"
                    }
                    Lacking::Certificate => {
                        "a client certificate is needed: come by TLS with one that the server's \
                         authority has signed"
                    }
                });
                return Ok(status(&refusal, Code::Unauthenticated).into_http());
            }
            let Some(method) = method(request.uri().path()) else {
                let text = format!("there is no method {}", request.uri().path());
                let refusal = Refusal::validation(text);
                return Ok(status(&refusal, Code::Unimplemented).into_http());
            };
            Ok(answer(shared, method, request).await)
        })
    }
}

/// The method of a path.
fn method(path: &str) -> Option<Method> {
    let name = path.strip_prefix("/otg.Openapi/")?;
    let in_pieces = name.starts_with("stream");
    let name = name.strip_prefix("stream").unwrap_or(name);
    let operation = OPERATIONS.iter().find(|operation| operation.rpc == name)?;
    (!in_pieces || operation.pieces != Pieces::No).then_some(Method {
        operation,
        in_pieces,
    })
}

async fn answer<B>(shared: Arc<Shared>, method: Method, request: http::Request<B>) -> Reply
where
    B: hyper::body::Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<StdError> + Send + 'static,
{
    let mut grpc = Grpc::new(Octets)
        .max_decoding_message_size(LONGEST)
        .max_encoding_message_size(usize::MAX);
    let operation = method.operation;
    match (method.in_pieces, operation.pieces) {
        (true, Pieces::Request) => {
            let whole = move |request: Request<Streaming<Bytes>>| {
                let shared = Arc::clone(&shared);
                async move {
                    let octets = gathered(request.into_inner()).await?;
                    let inner = perform(&shared, operation, octets, false).await?;
                    Ok::<_, Status>(Response::new(wrapped(operation, inner)))
                }
            };
            grpc.client_streaming(tower::service_fn(whole), request)
                .await
        }
        (true, _) => {
            let pieces = move |request: Request<Bytes>| {
                let shared = Arc::clone(&shared);
                async move {
                    let inner = perform(&shared, operation, request.into_inner(), true).await?;
                    let pieces = pieces(&bare(inner));
                    Ok::<_, Status>(Response::new(tokio_stream::iter(pieces)))
                }
            };
            grpc.server_streaming(tower::service_fn(pieces), request)
                .await
        }
        (false, _) => {
            let unary = move |request: Request<Bytes>| {
                let shared = Arc::clone(&shared);
                async move {
                    let inner = perform(&shared, operation, request.into_inner(), true).await?;
                    Ok::<_, Status>(Response::new(wrapped(operation, inner)))
                }
            };
            grpc.unary(tower::service_fn(unary), request).await
        }
    }
}

/// Carries out an operation whose argument is in a message of the request, or is all of it.
async fn perform(
    shared: &Arc<Shared>,
    operation: &'static Operation,
    octets: Bytes,
    within: bool,
) -> Result<Answer, Status> {
    let argument = move || {
        let Some(name) = operation.takes else {
            return Ok(None);
        };
        if !within {
            return decoded(model::descriptor(name), octets).map(Some);
        }
        let request = model::descriptor(&format!("{}Request", operation.rpc));
        let field = only_field(&request);
        let message = decoded(request, octets)?;
        match message.get_field(&field).into_owned() {
            Value::Message(inner) if message.has_field(&field) => Ok(Some(inner)),
            _ => Err(Refusal::validation(format!("{} is missing", field.name()))),
        }
    };
    let answer = shared.perform(operation.call, argument).await;
    answer.map_err(|refusal| {
        let code = match refusal.kind {
            Kind::Validation => Code::InvalidArgument,
            Kind::Internal => Code::Internal,
        };
        status(&refusal, code)
    })
}

fn decoded(kind: MessageDescriptor, octets: Bytes) -> Result<DynamicMessage, Refusal> {
    DynamicMessage::decode(kind, octets)
        .map_err(|error| Refusal::validation(format!("the request is no message: {error}")))
}

/// The one field that messages around others have.
fn only_field(message: &MessageDescriptor) -> FieldDescriptor {
    let field = message.fields().next();
    field.expect("requests and responses of the model have one field")
}

/// A response with the answer in it.
fn wrapped(operation: &Operation, answer: Answer) -> Bytes {
    let kind = model::descriptor(&format!("{}Response", operation.rpc));
    let field = only_field(&kind);
    let mut response = DynamicMessage::new(kind);
    let value = match answer {
        Answer::Message(message) => Value::Message(message),
        Answer::Octets(octets) => Value::Bytes(octets.into()),
    };
    response.set_field(&field, value);
    response.encode_to_vec().into()
}

fn bare(answer: Answer) -> Bytes {
    match answer {
        Answer::Message(message) => message.encode_to_vec().into(),
        Answer::Octets(octets) => octets.into(),
    }
}

/// The messages in which a reply goes in pieces; one if it is empty.
fn pieces(whole: &Bytes) -> Vec<Result<Bytes, Status>> {
    let piece = |octets: Bytes| {
        let message = Builder::new("Data")
            .with("chunk_size", PIECE as u64)
            .with("datum", octets)
            .done();
        Ok(message.encode_to_vec().into())
    };
    if whole.is_empty() {
        return vec![piece(Bytes::new())];
    }
    let starts = (0..whole.len()).step_by(PIECE);
    starts
        .map(|start| piece(whole.slice(start..whole.len().min(start + PIECE))))
        .collect()
}

/// A request that came in pieces.
async fn gathered(mut pieces: Streaming<Bytes>) -> Result<Bytes, Status> {
    let mut whole = Vec::new();
    while let Some(octets) = pieces.message().await? {
        let refused = |refusal| status(&refusal, Code::InvalidArgument);
        let data = decoded(model::descriptor("Data"), octets).map_err(refused)?;
        if let Some(Value::Bytes(datum)) = data.get_field_by_name("datum").as_deref() {
            whole.extend_from_slice(datum);
        }
        if whole.len() > LONGEST {
            let text = format!("the request has more than {LONGEST} octets, the most taken");
            return Err(status(&Refusal::validation(text), Code::ResourceExhausted));
        }
    }
    Ok(whole.into())
}

/// A status whose message is the JSON of the refusal, which clients read.
fn status(refusal: &Refusal, code: Code) -> Status {
    Status::new(code, refusal.status_message(code as i32))
}
