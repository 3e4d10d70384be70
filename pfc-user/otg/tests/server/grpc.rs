//! Calls over gRPC.

use std::time::Duration;

use bytes::Bytes;
use prost_reflect::prost::Message as _;
use prost_reflect::{DynamicMessage, Value};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::Channel;
use tonic::{Code, Request, Status};
use validator_otg::grpc::Octets;
use validator_otg::json::{parse, text};
use validator_otg::model::{Builder, descriptor};
use validator_otg::{Access, Certificates};

use crate::served::Served;

/// A client of one connection.
pub struct Client(tonic::client::Grpc<Channel>);

impl Client {
    async fn connect(served: &Served) -> Self {
        let endpoint = tonic::transport::Endpoint::new(format!("http://{}", served.grpc)).unwrap();
        Self::on(endpoint.connect().await.unwrap())
    }

    pub fn on(channel: Channel) -> Self {
        Self(tonic::client::Grpc::new(channel).max_decoding_message_size(usize::MAX))
    }

    pub async fn unary(&mut self, method: &str, request: Request<Bytes>) -> Result<Bytes, Status> {
        self.0.ready().await.unwrap();
        let path = path(method);
        Ok(self.0.unary(request, path, Octets).await?.into_inner())
    }

    /// A call with the JSON of its argument, and the JSON of its response.
    async fn call(&mut self, method: &str, field: &str, json: &str) -> Result<String, Status> {
        let request = descriptor(&format!("{method}Request"));
        let kind = request.get_field_by_name(field).unwrap().kind();
        let argument = parse(kind.as_message().unwrap().name(), json.as_bytes()).unwrap();
        let mut message = DynamicMessage::new(request);
        message.set_field_by_name(field, Value::Message(argument));
        let octets = message.encode_to_vec().into();
        let reply = self.unary(method, Request::new(octets)).await?;
        let response = descriptor(&format!("{method}Response"));
        Ok(text(&DynamicMessage::decode(response, reply).unwrap()))
    }
}

fn path(method: &str) -> PathAndQuery {
    format!("/otg.Openapi/{method}").parse().unwrap()
}

const CONFIG: &str = r#"{"ports":[{"name":"p","location":"veth0"}],
    "captures":[{"name":"c","port_names":["p"]}]}"#;

#[tokio::test]
async fn a_configuration_goes_there_and_back_and_its_warning_is_present() {
    let served = Served::start().await;
    let mut client = Client::connect(&served).await;
    let reply = client.call("SetConfig", "config", CONFIG).await.unwrap();
    assert_eq!(
        reply,
        r#"{"warning":{"warnings":["a fake engine sends nothing"]}}"#
    );
    let state = r#"{"choice":"protocol","protocol":{"choice":"all","all":{"state":"start"}}}"#;
    let reply = client.call("SetControlState", "control_state", state).await;
    assert_eq!(reply.unwrap(), r#"{"warning":{}}"#);
    let reply = client
        .unary("GetConfig", Request::new(Bytes::new()))
        .await
        .unwrap();
    let config = DynamicMessage::decode(descriptor("GetConfigResponse"), reply).unwrap();
    assert!(text(&config).starts_with(r#"{"config":{"ports":[{"location":"veth0""#));
    let metrics = r#"{"choice":"port","port":{"column_names":["link"]}}"#;
    let reply = client
        .call("GetMetrics", "metrics_request", metrics)
        .await
        .unwrap();
    assert_eq!(
        reply,
        "{\"metrics_response\":{\"choice\":\"port_metrics\",\"port_metrics\":[{\"name\":\"p\",\
         \"link\":\"up\"}]}}"
    );
    served.stop().await;
}

#[tokio::test]
async fn a_refusal_has_the_json_of_the_model_as_its_message() {
    let served = Served::start().await;
    let mut client = Client::connect(&served).await;
    let config = r#"{"ports":[{"name":"p"}],"lags":[{"name":"l"}]}"#;
    let status = client
        .call("SetConfig", "config", config)
        .await
        .unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument);
    let json: serde_json::Value = serde_json::from_str(status.message()).unwrap();
    assert_eq!(
        (&json["code"], &json["kind"]),
        (&3.into(), &"validation".into())
    );
    assert_eq!(json["errors"].as_array().unwrap().len(), 2);
    let missing = client
        .unary("SetConfig", Request::new(Bytes::new()))
        .await
        .unwrap_err();
    assert!(
        missing.message().contains("config is missing"),
        "{missing:?}"
    );
    let garbage = Request::new(Bytes::from_static(&[0xff; 9]));
    let garbage = client.unary("SetConfig", garbage).await.unwrap_err();
    assert_eq!(garbage.code(), Code::InvalidArgument);
    let unknown = client
        .unary("Nothing", Request::new(Bytes::new()))
        .await
        .unwrap_err();
    assert_eq!(unknown.code(), Code::Unimplemented);
    served.stop().await;
}

#[tokio::test]
async fn requests_and_replies_go_in_pieces() {
    use tokio_stream::StreamExt as _;
    let served = Served::start().await;
    let mut client = Client::connect(&served).await;
    let config = parse("Config", CONFIG.as_bytes()).unwrap().encode_to_vec();
    let pieces: Vec<Bytes> = config
        .chunks(7)
        .map(|piece| {
            let data = Builder::new("Data").with("datum", Bytes::copy_from_slice(piece));
            data.done().encode_to_vec().into()
        })
        .collect();
    client.0.ready().await.unwrap();
    let request = Request::new(tokio_stream::iter(pieces));
    let reply = client
        .0
        .client_streaming(request, path("streamSetConfig"), Octets)
        .await;
    let reply =
        DynamicMessage::decode(descriptor("SetConfigResponse"), reply.unwrap().into_inner());
    assert!(reply.unwrap().has_field_by_name("warning"));
    client.0.ready().await.unwrap();
    let request = Request::new(Bytes::new());
    let reply = client
        .0
        .server_streaming(request, path("streamGetConfig"), Octets)
        .await;
    let mut pieces = reply.unwrap().into_inner();
    let mut whole = Vec::new();
    while let Some(piece) = pieces.next().await {
        let data = DynamicMessage::decode(descriptor("Data"), piece.unwrap()).unwrap();
        whole.extend_from_slice(data.get_field_by_name("datum").unwrap().as_bytes().unwrap());
    }
    assert_eq!(
        DynamicMessage::decode(descriptor("Config"), &whole[..]).unwrap(),
        parse("Config", CONFIG.as_bytes()).unwrap()
    );
    served.stop().await;
}

#[tokio::test]
async fn a_message_of_100_mb_is_refused_and_the_server_goes_on() {
    let served = Served::start().await;
    let mut client = Client::connect(&served).await;
    let request = Request::new(Bytes::from(vec![0; 100_000_000]));
    let status = client.unary("SetConfig", request).await.unwrap_err();
    assert_eq!(status.code(), Code::OutOfRange, "{status:?}");
    assert!(status.message().contains("67108864"), "{status:?}");
    let mut client = Client::connect(&served).await;
    client
        .unary("GetVersion", Request::new(Bytes::new()))
        .await
        .unwrap();
    served.stop().await;
}

#[tokio::test]
async fn without_the_token_nothing_is_served() {
    const TOKEN: &str = "0123456789abcdef";
    let access = Access::token(TOKEN).unwrap();
    let served = Served::with(access, &Certificates::default()).await;
    let mut client = Client::connect(&served).await;
    let status = client
        .unary("GetVersion", Request::new(Bytes::new()))
        .await
        .unwrap_err();
    assert_eq!(status.code(), Code::Unauthenticated);
    let mut request = Request::new(Bytes::new());
    let token = format!("Bearer {TOKEN}").parse().unwrap();
    request.metadata_mut().insert("authorization", token);
    client.unary("GetVersion", request).await.unwrap();
    served.stop().await;
}

/// Connections that the server takes at a time.
const PLACES: usize = 256;

/// A client that has begun to speak HTTP/2, and that the server has answered.
async fn greeted(served: &Served) -> TcpStream {
    const EMPTY_SETTINGS: [u8; 9] = [0, 0, 0, 4, 0, 0, 0, 0, 0];
    let mut stream = TcpStream::connect(served.grpc).await.unwrap();
    let preface = [&b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"[..], &EMPTY_SETTINGS].concat();
    stream.write_all(&preface).await.unwrap();
    stream.read_exact(&mut [0; 9]).await.unwrap();
    stream
}

#[tokio::test]
async fn a_client_without_a_place_waits_until_another_has_gone() {
    let served = Served::start().await;
    let mut clients = Vec::new();
    for _ in 0..PLACES {
        clients.push(greeted(&served).await);
    }
    let mut next = Box::pin(greeted(&served));
    let early = timeout(Duration::from_millis(200), &mut next).await;
    assert!(early.is_err(), "served beside {PLACES} others");
    drop(clients.pop());
    drop(next.await);
    drop(clients);
    served.stop().await;
}
