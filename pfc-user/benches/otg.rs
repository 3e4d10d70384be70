//! Measures `get_metrics` of 256 flows over HTTP and gRPC, as a client sees it, while all of them
//! are sent as fast as the machine can. Root; `cargo bench -p pfc-user --features otg --bench otg`.
//!
//! Server and client are threads of their own; both ports of a veth pair are the engine's, so that
//! each frame is counted as well.

#[path = "common/mod.rs"]
mod common;
#[path = "../otg/tests/common/rpc.rs"]
mod rpc;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use common::{Extent, Report, Spread};
use rpc::{Client, argument};
use serde_json::{Value, json};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;
use tonic::Request;
use validator::driver::kernel::link::{End, create_veth};
use validator::driver::kernel::netns::Namespace;
use validator::engine::{LiveEngine, Options};
use validator_otg::{Access, Certificates, Places, Server, Tls};

const REPORT: Report = Report("otg");
const FLOWS: usize = 256;
const METRICS: &str = r#"{"choice":"flow"}"#;
/// Longest wait for the first frames: no client waits as long.
const PATIENCE: Duration = Duration::from_secs(20);

fn main() {
    let namespace = Namespace::new().expect("root may make a network namespace");
    let end = |name, last| End {
        namespace: &namespace,
        name,
        mac: [2, 0, 0, 0, 0, last],
    };
    create_veth(end("a", 1), end("b", 2), 3400).expect("a veth pair");
    let (listens, listening) = mpsc::channel();
    let (stop, stopped) = oneshot::channel();
    thread::scope(|scope| {
        scope.spawn(|| namespace.run(|| serve(&listens, stopped)));
        let (grpc, http) = listening.recv().expect("a server");
        let measured = namespace.run(|| measure(grpc, http));
        drop(stop);
        measured.expect("a thread there");
    });
}

fn runtime() -> Runtime {
    let runtime = Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime")
}

/// Serves as `validator otg` does.
fn serve(listens: &mpsc::Sender<(SocketAddr, SocketAddr)>, stopped: oneshot::Receiver<()>) {
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    let options = validator_otg::Options {
        grpc: any,
        http: any,
        access: Access::open(),
        tls: Tls::new(&Certificates::default()).expect("a certificate"),
        lease: Duration::from_secs(600),
        warn: |text| eprintln!("{text}"),
    };
    let engine = LiveEngine::new(Options::default()).expect("an engine");
    runtime().block_on(async {
        let server = Server::bind(options).await.expect("free ports");
        let addresses = server.addresses().expect("addresses");
        listens.send(addresses).expect("a client");
        let stopped = async {
            // An error: the client is done.
            let _ = stopped.await;
        };
        server
            .run(Box::new(engine), Places::default(), stopped)
            .await;
    });
}

/// A connection for HTTP that is kept.
struct Http(BufReader<TcpStream>);

impl Http {
    fn ask(&mut self, line: &str, body: &str) -> Vec<u8> {
        let request = format!(
            "{line} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        self.0
            .get_mut()
            .write_all(request.as_bytes())
            .expect("sent");
        let mut length = 0;
        loop {
            let mut line = String::new();
            self.0.read_line(&mut line).expect("a line");
            let line = line.trim_end().to_ascii_lowercase();
            if let Some(octets) = line.strip_prefix("content-length: ") {
                length = octets.parse().expect("a number");
            }
            if line.is_empty() {
                break;
            }
        }
        let mut body = vec![0; length];
        self.0.read_exact(&mut body).expect("a body");
        body
    }

    fn json(&mut self, line: &str, body: &Value) -> Value {
        serde_json::from_slice(&self.ask(line, &body.to_string())).expect("JSON")
    }
}

fn config() -> Value {
    let flow = |number: usize| {
        json!({
            "name": format!("flow {number}"),
            "tx_rx": {"choice": "port", "port": {"tx_name": "a", "rx_names": ["b"]}},
            "packet": [{"choice": "ethernet"}, {"choice": "ipv4"}, {"choice": "udp"}],
            "size": {"choice": "fixed", "fixed": 64},
            "rate": {"choice": "pps", "pps": 100_000_000 / FLOWS},
            "metrics": {"enable": true, "loss": true, "latency": {"enable": true}},
        })
    };
    json!({
        "ports": [{"name": "a", "location": "a"}, {"name": "b", "location": "b"}],
        "layer1": [{"name": "l", "port_names": ["a", "b"], "speed": "speed_400_gbps"}],
        "flows": (0..FLOWS).map(flow).collect::<Vec<_>>(),
    })
}

fn measure(grpc: SocketAddr, http: SocketAddr) {
    let stream = TcpStream::connect(http).expect("a server");
    stream.set_nodelay(true).expect("an option");
    let mut http = Http(BufReader::new(stream));
    http.json("POST /config", &config());
    let start = json!({"choice": "traffic", "traffic": {"flow_transmit": {"state": "start"}}});
    http.json("POST /control/state", &start);
    until_all_are_sent(&mut http);
    let runtime = runtime();
    let mut client = runtime.block_on(Client::connect(grpc));
    let request = argument("GetMetrics", METRICS);
    let (mut over_http, mut over_grpc) = (Vec::new(), Vec::new());
    for _ in 0..Extent::asked().pick(20, 200) {
        let before = Instant::now();
        http.ask("POST /monitor/metrics", METRICS);
        over_http.push(before.elapsed());
        let before = Instant::now();
        let reply = client.unary("GetMetrics", Request::new(request.clone()));
        runtime.block_on(reply).expect("metrics");
        over_grpc.push(before.elapsed());
    }
    print("get_metrics of 256 flows at full load, HTTP", &over_http);
    print("get_metrics of 256 flows at full load, gRPC", &over_grpc);
}

fn until_all_are_sent(http: &mut Http) {
    let end = Instant::now() + PATIENCE;
    let request = serde_json::from_str(METRICS).expect("JSON");
    loop {
        let metrics = http.json("POST /monitor/metrics", &request);
        let flows = metrics["flow_metrics"].as_array().expect("flows");
        assert_eq!(flows.len(), FLOWS);
        if flows
            .iter()
            .all(|flow| flow["frames_rx"].as_u64() > Some(0))
        {
            return;
        }
        assert!(Instant::now() < end, "frames of all flows");
    }
}

fn print(name: &str, times: &[Duration]) {
    let millis: Vec<f64> = times.iter().map(|time| time.as_secs_f64() * 1e3).collect();
    let Spread { median, min, max } = Spread::of(&millis);
    println!("{name:<48} {median:>9.3} {min:>9.3} {max:>9.3} ms");
    REPORT.figure(name, "ms", &millis);
}
