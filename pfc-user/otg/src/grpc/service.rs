//! Methods of the service, each in one message or in pieces.

use std::convert::Infallible;
use std::fmt::Display;
use std::iter::{empty, once};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http_body_util::{Full, StreamBody};
use hyper::body::Frame;
use pcap_file::PcapError;
use prost_reflect::prost::Message as _;
use prost_reflect::prost::encoding::{WireType, encode_key, encode_varint};
use prost_reflect::{DynamicMessage, FieldDescriptor, MessageDescriptor, MethodDescriptor, Value};
use tokio::sync::OwnedSemaphorePermit;
use tonic::body::Body;
use tonic::codegen::http;
use tonic::server::Grpc;
use tonic::{Request, Response, Status, Streaming};

use super::codec::Octets;
use crate::api::{Answer, OPERATIONS, Operation};
use crate::body::{LONGEST, Taken};
use crate::connections::{Handle, Peer};
use crate::error::{Refusal, Why};
use crate::model::{self, Builder};
use crate::session::File;
use crate::shared::Shared;
use crate::values;

/// Octets of a piece of a reply: well below the 4 MiB that clients take.
const PIECE: usize = 1 << 20;

type Reply = http::Response<Body>;

/// The body of a reply that is made while it is sent, in the reply's extensions: tonic makes a
/// message in one piece.
type Streamed = Arc<Mutex<Option<Body>>>;

/// Messages of a reply.
type Messages = Box<dyn Iterator<Item = Result<Bytes, Status>> + Send>;

impl From<Refusal> for Status {
    /// Makes a status whose message is the JSON of the refusal, which clients read.
    fn from(refusal: Refusal) -> Self {
        Self::new(refusal.why.grpc(), refusal.status_message())
    }
}

/// Carries out a call of the service.
///
/// # Errors
///
/// None: the reply carries the refusal.
pub async fn call<B>(
    shared: Arc<Shared>,
    peer: Peer,
    handle: Handle,
    request: http::Request<B>,
) -> Result<Reply, Infallible>
where
    B: hyper::body::Body<Data = Bytes, Error: Display>,
{
    let reply = answer(shared, peer, handle, request).await;
    Ok(reply.unwrap_or_else(|refusal| Status::from(refusal).into_http()))
}

async fn answer<B>(
    shared: Arc<Shared>,
    peer: Peer,
    handle: Handle,
    request: http::Request<B>,
) -> Result<Reply, Refusal>
where
    B: hyper::body::Body<Data = Bytes, Error: Display>,
{
    let token = request.headers().get("authorization");
    let token = token.map(http::HeaderValue::as_bytes);
    let words = ("metadata, authorization", "TLS");
    shared.access.admits(peer, token, words)?;
    let _under_way = handle.let_in();
    let path = request.uri().path();
    let (method, operation) = method(path)
        .ok_or_else(|| Refusal::new(Why::Unknown, format!("there is no method {path}")))?;
    let (head, body) = request.into_parts();
    let Taken { octets, mut room } = shared.room.read(body).await?;
    let request = http::Request::from_parts(head, Full::new(Bytes::from(octets)));
    let perform = move |request: Request<Streaming<Bytes>>| {
        perform(
            Arc::clone(&shared),
            method.clone(),
            operation,
            request.into_inner(),
            room.take(),
        )
    };
    let mut reply = Grpc::new(Octets)
        .max_decoding_message_size(LONGEST)
        .max_encoding_message_size(usize::MAX)
        .streaming(tower::service_fn(perform), request)
        .await;
    if let Some(body) = reply.extensions_mut().remove::<Streamed>() {
        let body = body.lock().unwrap_or_else(PoisonError::into_inner).take();
        return Ok(reply.map(|empty| body.unwrap_or(empty)));
    }
    match reply.extensions().get::<Status>() {
        // Words of tonic for what is no message of gRPC, or a compressed one.
        Some(status) if !status.message().starts_with('{') => {
            Err(Refusal::validation(status.message()))
        }
        _ => Ok(reply),
    }
}

/// The method of a path, and its operation.
fn method(path: &str) -> Option<(MethodDescriptor, &'static Operation)> {
    let name = path.strip_prefix("/otg.Openapi/")?;
    let rpc = name.strip_prefix("stream").unwrap_or(name);
    let operation = OPERATIONS.iter().find(|operation| operation.rpc == rpc)?;
    Some((model::method(name)?, operation))
}

/// Carries out a method.
async fn perform(
    shared: Arc<Shared>,
    method: MethodDescriptor,
    operation: &'static Operation,
    request: Streaming<Bytes>,
    room: Option<OwnedSemaphorePermit>,
) -> Result<Response<tokio_stream::Iter<Messages>>, Status> {
    let in_pieces = method.is_client_streaming();
    let octets = if in_pieces {
        gathered(request).await?
    } else {
        only(request).await?
    };
    let argument = move || argument(operation, &octets, !in_pieces);
    let answer = shared.perform(operation, room, argument).await?;
    let mut streamed = None;
    let messages: Messages = if method.is_server_streaming() {
        pieces(answer)
    } else {
        let field = only_field(&method.output());
        match answer {
            Answer::Message(message) => {
                let mut response = DynamicMessage::new(method.output());
                response.set_field(&field, Value::Message(message));
                Box::new(once(Ok(response.encode_to_vec().into())))
            }
            Answer::File(file) => {
                streamed = Some(Streamed::new(Mutex::new(Some(body(&field, file)?))));
                Box::new(empty())
            }
        }
    };
    let mut response = Response::new(tokio_stream::iter(messages));
    if let Some(body) = streamed {
        response.extensions_mut().insert(body);
    }
    Ok(response)
}

/// Reads the argument of an operation from a request: the field of its message, or all of what came
/// in pieces.
///
/// # Errors
///
/// Octets that are no such message or one of too many values, and a message without its field.
pub fn argument(
    operation: &Operation,
    octets: &[u8],
    within: bool,
) -> Result<DynamicMessage, Refusal> {
    operation.argument(|kind| {
        if !within {
            return decoded(kind, octets);
        }
        let request = operation.method().input();
        let field = only_field(&request);
        let message = decoded(request, octets)?;
        match message.get_field(&field).into_owned() {
            Value::Message(inner) if message.has_field(&field) => Ok(inner),
            _ => Err(Refusal::validation(format!("{} is missing", field.name()))),
        }
    })
}

fn decoded(kind: MessageDescriptor, octets: &[u8]) -> Result<DynamicMessage, Refusal> {
    values::limit_message(&kind, octets)?;
    DynamicMessage::decode(kind, octets)
        .map_err(|error| Refusal::validation(format!("the request is no message: {error}")))
}

/// The one field that messages around others have.
fn only_field(message: &MessageDescriptor) -> FieldDescriptor {
    let field = message.fields().next();
    field.expect("requests and responses of the model have one field")
}

/// The body of a reply that is one message with a file in this field. The file is written while it
/// is sent, as far as the client takes it.
fn body(field: &FieldDescriptor, file: File) -> Result<Body, Refusal> {
    let mut begin = Vec::new();
    encode_key(field.number(), WireType::LengthDelimited, &mut begin);
    encode_varint(file.octets, &mut begin);
    let length = u32::try_from(begin.len() as u64 + file.octets).map_err(|_| {
        Refusal::validation(format!(
            "the file has {} octets, and a message of gRPC less than 4 GiB: take it in pieces, by \
             the method with stream before its name, or over HTTP",
            file.octets
        ))
    })?;
    // A message that is not compressed, and its length.
    let head = [&[0u8][..], &length.to_be_bytes(), &begin].concat();
    let data = file.map(|piece| piece.map(Frame::data).map_err(lost));
    let mut trailers = http::HeaderMap::new();
    trailers.insert("grpc-status", http::HeaderValue::from_static("0"));
    let frames = once(Ok(Frame::data(Bytes::from(head))))
        .chain(data)
        .chain(once(Ok(Frame::trailers(trailers))));
    Ok(Body::new(StreamBody::new(tokio_stream::iter(frames))))
}

/// The messages in which a reply goes in pieces; one if it is empty.
fn pieces(answer: Answer) -> Messages {
    let piece = |octets: Bytes| {
        let message = Builder::new("Data")
            .with("chunk_size", PIECE as u64)
            .with("datum", octets)
            .done();
        Bytes::from(message.encode_to_vec())
    };
    match answer {
        Answer::Message(message) => {
            let whole = Bytes::from(message.encode_to_vec());
            let starts = (0..whole.len().max(1)).step_by(PIECE);
            Box::new(
                starts.map(move |start| {
                    Ok(piece(whole.slice(start..whole.len().min(start + PIECE))))
                }),
            )
        }
        Answer::File(file) => Box::new(file.map(move |octets| octets.map(piece).map_err(lost))),
    }
}

/// A file that cannot be written to its end.
fn lost(error: PcapError) -> Status {
    Refusal::internal(format!("cannot write the capture: {error}")).into()
}

/// The one message of a request that is not in pieces.
async fn only(mut request: Streaming<Bytes>) -> Result<Bytes, Status> {
    let message = request.message().await?;
    // Reads to the end, where an error may be.
    request.trailers().await?;
    message.ok_or_else(|| Refusal::validation("Missing request message.").into())
}

/// A request that came in pieces.
async fn gathered(mut pieces: Streaming<Bytes>) -> Result<Bytes, Status> {
    let mut whole = Vec::new();
    while let Some(octets) = pieces.message().await? {
        add_piece(&mut whole, &octets)?;
    }
    Ok(whole.into())
}

/// Adds a piece of a request to those before it.
///
/// # Errors
///
/// Octets that are no piece.
pub fn add_piece(whole: &mut Vec<u8>, octets: &[u8]) -> Result<(), Refusal> {
    let data = decoded(model::descriptor("Data"), octets)?;
    if let Some(Value::Bytes(datum)) = data.get_field_by_name("datum").as_deref() {
        whole.extend_from_slice(datum);
    }
    Ok(())
}
