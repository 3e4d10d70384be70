//! A client of gRPC that knows no more than the model's descriptor.

#![allow(
    dead_code,
    reason = "each program compiles this module anew, and few use all of it"
)]

use std::net::SocketAddr;

use bytes::Bytes;
use prost_reflect::prost::Message as _;
use prost_reflect::{DynamicMessage, ReflectMessage as _, Value};
use tonic::client::Grpc;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Status};
use validator_otg::api::OPERATIONS;
use validator_otg::grpc::Octets;
use validator_otg::json::{parse, text};
use validator_otg::model::descriptor;

/// A client of one connection.
pub struct Client(pub Grpc<Channel>);

impl Client {
    pub async fn connect(server: SocketAddr) -> Self {
        let endpoint = Endpoint::new(format!("http://{server}")).unwrap();
        Self::on(endpoint.connect().await.unwrap())
    }

    pub fn on(channel: Channel) -> Self {
        Self(Grpc::new(channel).max_decoding_message_size(usize::MAX))
    }

    pub async fn unary(&mut self, method: &str, request: Request<Bytes>) -> Result<Bytes, Status> {
        self.0.ready().await.unwrap();
        let path = path(method);
        Ok(self.0.unary(request, path, Octets).await?.into_inner())
    }

    /// A call with the JSON of its argument, if it has one, and the JSON of its response.
    pub async fn ask(&mut self, method: &str, json: &str) -> Result<String, Status> {
        let request = Request::new(argument(method, json));
        let reply = self.unary(method, request).await?;
        let response = descriptor(&format!("{method}Response"));
        Ok(text(&DynamicMessage::decode(response, reply).unwrap()))
    }
}

/// The request of a method with the JSON of its argument, if it takes one.
pub fn argument(method: &str, json: &str) -> Bytes {
    let operation = OPERATIONS.iter().find(|operation| operation.rpc == method);
    let Some(takes) = operation.unwrap().takes() else {
        return Bytes::new();
    };
    let mut request = DynamicMessage::new(descriptor(&format!("{method}Request")));
    let field = request.descriptor().fields().next().unwrap();
    let argument = parse(takes.name(), json.as_bytes()).unwrap();
    request.set_field(&field, Value::Message(argument));
    request.encode_to_vec().into()
}

/// The path of a method.
pub fn path(method: &str) -> PathAndQuery {
    format!("/otg.Openapi/{method}").parse().unwrap()
}
