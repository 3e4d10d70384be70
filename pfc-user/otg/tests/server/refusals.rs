//! Refusals, in the same words over both transports.

use std::sync::Mutex;

use bytes::Bytes;
use prost_reflect::prost::encoding::encode_varint;
use serde_json::Value;
use tonic::{Code, Request, Status};
use validator_core::engine::Problem;
use validator_otg::{Access, Certificates};

use crate::client::{Reply, request, send};
use crate::http::{START, TWO_PORTS, two_ports};
use crate::rpc::{Client, argument};
use crate::served::Served;

/// Requests that are refused while [`TWO_PORTS`] is in force: the gRPC method, the HTTP method and
/// path, and arguments.
const WRONG: [(&str, &str, &[&str]); 9] = [
    (
        "SetConfig",
        "POST /config",
        &[
            r#"{"ports":[{"name":"p","location":"veth0"},{"name":"p","location":"veth1"}],
                "lags":[{"name":"l"}]}"#,
        ],
    ),
    (
        "UpdateConfig",
        "PATCH /config",
        &[
            "{}",
            r#"{"choice":"flows","flows":{"property_names":["rate"],"flows":[
                {"name":"h","rate":{"choice":"percentage","percentage":150}}]}}"#,
        ],
    ),
    ("AppendConfig", "PATCH /config/append", &["{}"]),
    ("DeleteConfig", "PATCH /config/delete", &["{}"]),
    (
        "SetControlState",
        "POST /control/state",
        &[
            "{}",
            r#"{"choice":"traffic","traffic":{"flow_transmit":{"flow_names":["x"]}}}"#,
            r#"{"choice":"port","port":{"choice":"capture","capture":
                {"port_names":["p1"],"state":"start"}}}"#,
        ],
    ),
    ("SetControlAction", "POST /control/action", &["{}"]),
    (
        "GetMetrics",
        "POST /monitor/metrics",
        &[
            r#"{"choice":"bgpv4"}"#,
            r#"{"choice":"flow","flow":{"flow_names":["f","nobody"]}}"#,
            r#"{"choice":"flow","flow":{"tagged_metrics":{"include_empty_metrics":false}}}"#,
        ],
    ),
    (
        "GetStates",
        "POST /monitor/states",
        &[r#"{"choice":"bgp_prefixes"}"#],
    ),
    (
        "GetCapture",
        "POST /monitor/capture",
        &[
            r#"{"port_name":"p"}"#,
            r#"{"port_name":"p1"}"#,
            r#"{"port_name":"p2","packets":{"choice":"slice"}}"#,
            r#"{"port_name":"p2","packets":{"slice":{}}}"#,
            r#"{"port_name":"p2"}"#,
        ],
    ),
];

/// Content of a refusal.
#[derive(Clone, Debug, PartialEq)]
struct Refusal {
    kind: String,
    errors: Vec<String>,
}

/// Reads a refusal in JSON, which has its code, too.
fn refusal(json: &Value, code: u16) -> Refusal {
    assert_eq!(json["code"], code, "{json}");
    let refusal = Refusal {
        kind: json["kind"].as_str().unwrap().to_owned(),
        errors: serde_json::from_value(json["errors"].clone()).unwrap(),
    };
    assert!(!refusal.errors.is_empty(), "{json}");
    refusal
}

fn over_http(reply: &Reply) -> (u16, Refusal) {
    (reply.status, refusal(&reply.json(), reply.status))
}

fn over_grpc(status: &Status) -> (Code, Refusal) {
    let json = serde_json::from_str(status.message());
    let json = json.unwrap_or_else(|error| panic!("{error}: {status:?}"));
    (status.code(), refusal(&json, status.code() as u16))
}

#[tokio::test]
async fn both_transports_refuse_what_is_wrong_in_the_same_words() {
    let served = two_ports().await;
    let mut client = Client::connect(served.grpc).await;
    let each = |(rpc, line, bodies): (_, _, &[&'static str])| {
        bodies
            .iter()
            .map(move |body| (rpc, line, *body))
            .collect::<Vec<_>>()
    };
    for (rpc, line, body) in WRONG.into_iter().flat_map(each) {
        let (status, http) = over_http(&send(served.http, line, body).await);
        let refused = client.ask(rpc, body).await.unwrap_err();
        let (code, grpc) = over_grpc(&refused);
        assert_eq!(
            (status, code),
            (400, Code::InvalidArgument),
            "{line} {body}"
        );
        assert_eq!(http, grpc, "{line} {body}");
        assert_eq!(http.kind, "validation");
    }
    served.stop().await;
}

#[tokio::test]
async fn both_transports_tell_the_machines_fault_from_the_requests() {
    let served = two_ports().await;
    let mut client = Client::connect(served.grpc).await;
    let order = |text: &str| Problem::Order(text.into());
    let machine = |text: &str| Problem::Machine(text.into());
    let update = r#"{"choice":"flows","flows":{"property_names":["size"],"flows":[
        {"name":"f","size":{"choice":"fixed","fixed":9000}}]}}"#;
    for (problems, expected) in [
        (
            vec![order("no such interface"), machine("no memory")],
            (400, Code::InvalidArgument, "validation"),
        ),
        (
            vec![machine("no memory"), machine("no room")],
            (500, Code::Internal, "internal"),
        ),
    ] {
        for [rpc, line, body] in [
            ["SetConfig", "POST /config", TWO_PORTS],
            ["UpdateConfig", "PATCH /config", update],
            ["SetControlState", "POST /control/state", START],
        ] {
            let refuse = || served.record.get().problems.clone_from(&problems);
            refuse();
            let (status, http) = over_http(&send(served.http, line, body).await);
            refuse();
            let (code, grpc) = over_grpc(&client.ask(rpc, body).await.unwrap_err());
            assert_eq!((status, code, &*http.kind), expected, "{line}");
            assert_eq!(http, grpc, "{line}");
            let texts: Vec<String> = problems.iter().map(ToString::to_string).collect();
            assert_eq!(http.errors, texts);
        }
    }
    served.stop().await;
}

#[tokio::test]
async fn both_transports_refuse_what_is_no_request() {
    let served = Served::start().await;
    let mut client = Client::connect(served.grpc).await;
    for body in ["{", "[1]", "", r#"{"port":[]}"#] {
        let (status, http) = over_http(&send(served.http, "POST /config", body).await);
        assert_eq!((status, &*http.kind), (400, "validation"), "{body}");
    }
    // No message, none in it, one that is cut off, and one with a field that nobody knows.
    for octets in [
        &[0xff; 9][..],
        &[],
        &[0x0a, 9, 1],
        &[0x0a, 3, 0xf8, 0x7f, 1],
    ] {
        let request = Request::new(Bytes::from_static(octets));
        let refused = client.unary("SetConfig", request).await.unwrap_err();
        let (code, grpc) = over_grpc(&refused);
        assert_eq!(
            (code, &*grpc.kind),
            (Code::InvalidArgument, "validation"),
            "{octets:?}"
        );
    }
    for line in ["GET /nothing", "DELETE /config", "GET /config/append"] {
        let (status, http) = over_http(&send(served.http, line, "").await);
        assert_eq!((status, &*http.kind), (404, "validation"), "{line}");
        assert_eq!(http.errors, [format!("there is no {line}")]);
    }
    for method in ["Nothing", "streamGetVersion", "streamUpdateConfig"] {
        let refused = client.unary(method, Request::new(Bytes::new())).await;
        let (code, grpc) = over_grpc(&refused.unwrap_err());
        assert_eq!((code, &*grpc.kind), (Code::Unimplemented, "validation"));
        let text = format!("there is no method /otg.Openapi/{method}");
        assert_eq!(grpc.errors, [text]);
    }
    served.stop().await;
}

#[tokio::test]
async fn both_transports_refuse_100_mb_and_the_server_goes_on() {
    let served = Served::start().await;
    let body = vec![b' '; 100_000_000];
    let reply = request(served.http, "POST /config", &[], &body).await;
    let (status, http) = over_http(&reply);
    assert_eq!((status, &*http.kind), (413, "validation"));
    assert!(http.errors[0].contains("67108864"), "{http:?}");
    let mut client = Client::connect(served.grpc).await;
    let whole = client.unary("SetConfig", Request::new(body.into())).await;
    // Each piece is short enough, and all together are not.
    let pieces = (0..100).map(|_| vec![b' '; 1_000_000].into());
    let pieces = client
        .in_pieces("streamSetConfig", tokio_stream::iter(pieces))
        .await;
    for refused in [whole.unwrap_err(), pieces.unwrap_err()] {
        assert_eq!(over_grpc(&refused), (Code::ResourceExhausted, http.clone()));
    }
    let version = send(served.http, "GET /capabilities/version", "").await;
    assert_eq!(version.json()["api_spec_version"], "^1.0.0");
    client.ask("GetVersion", "").await.unwrap();
    served.stop().await;
}

#[tokio::test]
async fn both_transports_refuse_61_mib_of_empty_flows_in_short() {
    let served = Served::start().await;
    let flows = (61 << 20) / "{},".len();
    let body = format!(r#"{{"flows":[{}{{}}]}}"#, "{},".repeat(flows - 1));
    let reply = request(served.http, "POST /config", &[], body.as_bytes()).await;
    let (status, http) = over_http(&reply);
    assert_eq!((status, &*http.kind), (413, "validation"));
    assert!(reply.body.len() < 1000, "{}", reply.body.len());
    assert!(http.errors[0].contains("at most 2097152"), "{http:?}");
    // The key of the configuration, its length, and the configuration.
    let argument = argument("SetConfig", r#"{"flows":[{}]}"#);
    let [request_of, 2, flow @ ..] = &argument[..] else {
        panic!("a configuration with one empty flow: {argument:?}")
    };
    let config = flow.repeat(flows);
    let mut octets = vec![*request_of];
    encode_varint(config.len() as u64, &mut octets);
    let whole = Request::new([octets, config.clone()].concat().into());
    let mut client = Client::connect(served.grpc).await;
    let whole = client.unary("SetConfig", whole).await;
    let pieces: Vec<Bytes> = config.chunks(1 << 20).map(Bytes::copy_from_slice).collect();
    let pieces = client
        .in_pieces("streamSetConfig", tokio_stream::iter(pieces))
        .await;
    for refused in [whole.unwrap_err(), pieces.unwrap_err()] {
        let (code, grpc) = over_grpc(&refused);
        assert_eq!((code, &*grpc.kind), (Code::ResourceExhausted, "validation"));
        assert!(grpc.errors[0].contains("at most 2097152"), "{grpc:?}");
    }
    served.stop().await;
}

#[tokio::test]
async fn both_transports_serve_nothing_without_the_token() {
    const TOKEN: &str = "0123456789abcdef";
    let access = Access::token(TOKEN).unwrap();
    let served = Served::with(access, &Certificates::default()).await;
    for line in [
        "GET /config",
        "GET /metrics",
        "GET /counters",
        "GET /nothing",
    ] {
        let (status, http) = over_http(&send(served.http, line, "").await);
        assert_eq!((status, &*http.kind), (401, "validation"), "{line}");
    }
    let mut client = Client::connect(served.grpc).await;
    for method in ["GetVersion", "Nothing"] {
        let refused = client.unary(method, Request::new(Bytes::new())).await;
        let (code, grpc) = over_grpc(&refused.unwrap_err());
        assert_eq!((code, &*grpc.kind), (Code::Unauthenticated, "validation"));
        assert!(grpc.errors[0].contains("a token is needed"), "{grpc:?}");
    }
    let header = format!("Authorization: Bearer {TOKEN}");
    let reply = request(served.http, "GET /config", &[&header], b"").await;
    assert_eq!(reply.status, 200);
    let mut request = Request::new(Bytes::new());
    let token = format!("Bearer {TOKEN}").parse().unwrap();
    request.metadata_mut().insert("authorization", token);
    client.unary("GetVersion", request).await.unwrap();
    served.stop().await;
}

#[tokio::test]
async fn beyond_loopback_any_name_is_served_and_a_token_in_clear_text_is_warned_of() {
    static WARNINGS: Mutex<Vec<String>> = Mutex::new(Vec::new());
    const TOKEN: &str = "0123456789abcdef";
    let access = Access::token(TOKEN).unwrap();
    let warn = |text: &str| WARNINGS.lock().unwrap().push(text.to_owned());
    let served = Served::on([0; 4], access, &Certificates::default(), warn).await;
    let headers = [
        "Host: tester.example".to_owned(),
        format!("Authorization: Bearer {TOKEN}"),
    ];
    let headers = headers.each_ref().map(|header| &**header);
    let reply = request(served.http, "GET /config", &headers, b"").await;
    assert_eq!(reply.status, 200);
    served.stop().await;
    let warnings = WARNINGS.lock().unwrap();
    // One warning is of gRPC, and one of HTTP.
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    for text in &*warnings {
        assert!(text.contains("the token in clear text"), "{warnings:?}");
    }
}

#[tokio::test]
async fn what_is_no_grpc_is_refused_as_json_too() {
    let served = Served::start().await;
    let mut client = Client::connect(served.grpc).await;
    // A compressed message, which the server does not read.
    let mut compressed = Request::new(Bytes::new());
    let gzip = "gzip".parse().unwrap();
    compressed.metadata_mut().insert("grpc-encoding", gzip);
    let refused = client.unary("GetConfig", compressed).await.unwrap_err();
    let (code, grpc) = over_grpc(&refused);
    assert_eq!((code, &*grpc.kind), (Code::InvalidArgument, "validation"));
    assert!(grpc.errors[0].contains("gzip"), "{grpc:?}");
    served.stop().await;
}

#[test]
fn each_operation_that_takes_something_is_among_those_refused() {
    for operation in &validator_otg::api::OPERATIONS {
        let refused = WRONG.iter().any(|(rpc, ..)| *rpc == operation.rpc);
        assert_eq!(refused, operation.takes().is_some(), "{}", operation.rpc);
    }
}
