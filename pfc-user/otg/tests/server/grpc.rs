//! Calls over gRPC.

use std::io;
use std::time::Duration;

use bytes::Bytes;
use hyper_util::rt::TokioIo;
use prost_reflect::DynamicMessage;
use prost_reflect::prost::Message as _;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_stream::{Stream, StreamExt as _};
use tonic::codegen::http::Uri;
use tonic::transport::Endpoint;
use tonic::{Request, Status, Streaming};
use validator_core::engine::Order;
use validator_otg::grpc::Octets;
use validator_otg::json::{parse, text};
use validator_otg::model::{Builder, descriptor};

use crate::client::send;
use crate::http::two_ports;
use crate::rpc::{Client, path};
use crate::served::Served;

/// Octets with which a client of HTTP/2 begins.
pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// A frame of HTTP/2 without settings.
pub const SETTINGS: &[u8] = &[0, 0, 0, 4, 0, 0, 0, 0, 0];

impl Client {
    /// A client on this stream, which has no second one.
    pub async fn over(stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static) -> Self {
        let mut stream = Some(TokioIo::new(stream));
        let once = tower::service_fn(move |_: Uri| {
            let stream = stream.take().ok_or(io::ErrorKind::NotConnected);
            async move { stream.map_err(io::Error::from) }
        });
        let endpoint = Endpoint::from_static("http://tester.example");
        Self::on(endpoint.connect_with_connector(once).await.unwrap())
    }

    /// A call whose argument goes in these pieces.
    pub async fn in_pieces(
        &mut self,
        method: &str,
        pieces: impl Stream<Item = Bytes> + Send + 'static,
    ) -> Result<Bytes, Status> {
        let pieces = pieces.map(|datum| {
            let data = Builder::new("Data").with("datum", datum).done();
            Bytes::from(data.encode_to_vec())
        });
        self.0.ready().await.unwrap();
        let request = Request::new(pieces);
        let reply = self.0.client_streaming(request, path(method), Octets).await;
        Ok(reply?.into_inner())
    }

    /// The messages of a reply.
    pub async fn streamed(&mut self, method: &str, request: Bytes) -> Streaming<Bytes> {
        self.0.ready().await.unwrap();
        let request = Request::new(request);
        let reply = self.0.server_streaming(request, path(method), Octets).await;
        reply.unwrap().into_inner()
    }
}

/// Octets of a piece.
pub fn datum(piece: Bytes) -> Bytes {
    let data = DynamicMessage::decode(descriptor("Data"), piece).unwrap();
    data.get_field_by_name("datum")
        .unwrap()
        .as_bytes()
        .unwrap()
        .clone()
}

const CONFIG: &str = r#"{"ports":[{"name":"p","location":"veth0"}],
    "captures":[{"name":"c","port_names":["p"]}]}"#;

#[tokio::test]
async fn a_configuration_goes_there_and_back_and_its_warning_is_present() {
    let served = Served::start().await;
    let mut client = Client::connect(served.grpc).await;
    let reply = client.ask("SetConfig", CONFIG).await.unwrap();
    assert_eq!(
        reply,
        r#"{"warning":{"warnings":["a fake engine sends nothing"]}}"#
    );
    let state = r#"{"choice":"protocol","protocol":{"choice":"all","all":{"state":"start"}}}"#;
    let reply = client.ask("SetControlState", state).await;
    assert_eq!(reply.unwrap(), r#"{"warning":{}}"#);
    let reply = client
        .unary("GetConfig", Request::new(Bytes::new()))
        .await
        .unwrap();
    let config = DynamicMessage::decode(descriptor("GetConfigResponse"), reply).unwrap();
    assert!(text(&config).starts_with(r#"{"config":{"ports":[{"location":"veth0""#));
    let metrics = r#"{"choice":"port","port":{"column_names":["link"]}}"#;
    let reply = client.ask("GetMetrics", metrics).await.unwrap();
    assert_eq!(
        reply,
        "{\"metrics_response\":{\"choice\":\"port_metrics\",\"port_metrics\":[{\"name\":\"p\",\
         \"link\":\"up\"}]}}"
    );
    served.stop().await;
}

#[tokio::test]
async fn each_state_reaches_the_engine_as_its_order_over_http_and_grpc() {
    let served = two_ports().await;
    let mut client = Client::connect(served.grpc).await;
    let mut expected = Vec::new();
    for (state, order) in [
        ("start", Order::Start),
        ("pause", Order::Pause),
        ("resume", Order::Resume),
        ("stop", Order::Stop),
    ] {
        let state = format!(
            r#"{{"choice":"traffic","traffic":{{"choice":"flow_transmit",
                "flow_transmit":{{"state":"{state}","flow_names":["g"]}}}}}}"#
        );
        let reply = send(served.http, "POST /control/state", &state).await;
        assert_eq!(reply.status, 200, "{reply:?}");
        client.ask("SetControlState", &state).await.unwrap();
        expected.extend([(vec![1], order), (vec![1], order)]);
    }
    assert_eq!(served.record.get().orders, expected);
    served.stop().await;
}

#[tokio::test]
async fn requests_and_replies_go_in_pieces() {
    let served = Served::start().await;
    let mut client = Client::connect(served.grpc).await;
    let config = parse("Config", CONFIG.as_bytes()).unwrap().encode_to_vec();
    let pieces: Vec<Bytes> = config.chunks(7).map(Bytes::copy_from_slice).collect();
    let pieces = tokio_stream::iter(pieces);
    let reply = client.in_pieces("streamSetConfig", pieces).await.unwrap();
    let reply = DynamicMessage::decode(descriptor("SetConfigResponse"), reply);
    assert!(reply.unwrap().has_field_by_name("warning"));
    let mut pieces = client.streamed("streamGetConfig", Bytes::new()).await;
    let mut whole = Vec::new();
    while let Some(piece) = pieces.next().await {
        whole.extend_from_slice(&datum(piece.unwrap()));
    }
    assert_eq!(
        DynamicMessage::decode(descriptor("Config"), &whole[..]).unwrap(),
        parse("Config", CONFIG.as_bytes()).unwrap()
    );
    served.stop().await;
}

/// Connections that the server takes at a time.
pub const PLACES: usize = 256;

/// A client that has begun to speak HTTP/2, and that the server has answered.
async fn greeted(served: &Served) -> TcpStream {
    let mut stream = TcpStream::connect(served.grpc).await.unwrap();
    stream
        .write_all(&[PREFACE, SETTINGS].concat())
        .await
        .unwrap();
    stream.read_exact(&mut [0; 9]).await.unwrap();
    stream
}

/// Asks the server for an answer, and waits for it (RFC 9113, 6.7).
async fn ping(client: &mut TcpStream) {
    const OPAQUE: [u8; 8] = *b"answered";
    let frame = [&[0, 0, 8, 6, 0, 0, 0, 0, 0][..], &OPAQUE].concat();
    client.write_all(&frame).await.unwrap();
    let mut heard = Vec::new();
    while !heard.ends_with(&OPAQUE) {
        assert!(client.read_buf(&mut heard).await.unwrap() > 0, "closed");
    }
}

#[tokio::test]
async fn the_client_that_was_silent_for_longest_gives_way() {
    let served = Served::start().await;
    let mut clients = Vec::new();
    for _ in 0..PLACES {
        clients.push(greeted(&served).await);
    }
    // It speaks: the second one is silent for longest.
    ping(&mut clients[0]).await;
    // Long before any is left for its silence.
    let next = timeout(Duration::from_secs(5), greeted(&served)).await;
    assert!(next.is_ok(), "not served though others are silent");
    let end = timeout(
        Duration::from_secs(5),
        clients[1].read_to_end(&mut Vec::new()),
    )
    .await;
    assert!(end.is_ok(), "the second one is served still");
    // The third one gives way too where this machine stands still for a second.
    for other in [0, PLACES / 2, PLACES - 1] {
        ping(&mut clients[other]).await;
    }
    drop((clients, next));
    served.stop().await;
}
