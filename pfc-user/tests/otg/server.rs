//! A server in a network namespace of its own, with two ports that are connected to each other.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use validator::driver::kernel::link::{End, create_veth};
use validator::driver::kernel::netns::Namespace;

/// Nothing here takes as long.
const PATIENCE: Duration = Duration::from_secs(20);
/// Octets of an IP packet that the ports take.
pub const MTU: u32 = 9200;

/// A server that listens; it is killed where it is not ended.
pub struct Server {
    child: Child,
    namespace: Namespace,
    pub grpc: SocketAddr,
    pub http: SocketAddr,
}

/// A namespace with the ports `a` and `b`.
pub fn ports() -> Namespace {
    let namespace = Namespace::new().unwrap();
    let end = |name, last| End {
        namespace: &namespace,
        name,
        mac: [2, 0, 0, 0, 0, last],
    };
    create_veth(end("a", 1), end("b", 2), MTU).unwrap();
    namespace
}

/// The program.
fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_validator"));
    command.stdin(Stdio::null());
    command
}

/// Runs a command of the program to its end, which notes in `journal` what it changes.
pub fn run(namespace: &Namespace, journal: &Path, arguments: &[&str]) -> Output {
    let mut command = program();
    command.args(arguments).env("VALIDATOR_JOURNAL", journal);
    namespace.run(|| command.output()).unwrap().unwrap()
}

/// A flow of UDP from the port `a` to `b`, which is counted.
pub fn flow(name: &str, rate: u64, duration: Value) -> Value {
    json!({
        "name": name,
        "tx_rx": {"choice": "port", "port": {"tx_name": "a", "rx_names": ["b"]}},
        "packet": [{"choice": "ethernet"}, {"choice": "ipv4"}, {"choice": "udp"}],
        "rate": {"choice": "pps", "pps": rate},
        "duration": duration,
        "metrics": {"enable": true},
    })
}

/// End of a flow: so many frames.
pub fn frames(count: u64) -> Value {
    json!({"choice": "fixed_packets", "fixed_packets": {"packets": count}})
}

/// End of a flow: an order.
pub fn endless() -> Value {
    json!({"choice": "continuous"})
}

/// Both ports as links of 1 Gbit/s that take IP packets of so many octets, and flows.
pub fn config(mtu: u32, flows: &[Value]) -> Value {
    json!({
        "ports": [{"name": "a", "location": "a"}, {"name": "b", "location": "b"}],
        "layer1": [{"name": "l", "port_names": ["a", "b"], "speed": "speed_1_gbps", "mtu": mtu}],
        "flows": flows,
    })
}

/// Waits until `is` is true.
pub fn until(what: &str, is: impl Fn() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !is() {
        assert!(Instant::now() < end, "never saw {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

impl Server {
    /// Starts one, and waits until it listens.
    pub fn start(namespace: &Namespace, journal: &Path) -> Self {
        Self::of(program(), namespace, journal, &[])
    }

    /// Starts one with more arguments.
    pub fn with(namespace: &Namespace, journal: &Path, arguments: &[&str]) -> Self {
        Self::of(program(), namespace, journal, arguments)
    }

    /// Starts one by a command of the program without arguments.
    pub fn of(
        mut command: Command,
        namespace: &Namespace,
        journal: &Path,
        arguments: &[&str],
    ) -> Self {
        command
            .args(["otg", "--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0"])
            .args(arguments)
            .env("VALIDATOR_JOURNAL", journal)
            .stdout(Stdio::piped());
        let mut child = namespace.run(|| command.spawn()).unwrap().unwrap();
        let mut line = String::new();
        let out = child.stdout.take().unwrap();
        BufReader::new(out).read_line(&mut line).unwrap();
        let (grpc, http) = line.trim().split_once(", HTTP http://").expect("a line");
        let grpc = grpc.strip_prefix("ready: gRPC ").expect("its beginning");
        let http = http.split(' ').next().expect("an address");
        Self {
            child,
            namespace: namespace.try_clone().unwrap(),
            grpc: grpc.parse().unwrap(),
            http: http.parse().unwrap(),
        }
    }

    /// Does something in the server's namespace.
    pub fn within<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        self.namespace.run(work).unwrap()
    }

    /// A connection for HTTP.
    pub fn connect(&self) -> TcpStream {
        self.within(|| TcpStream::connect(self.http)).unwrap()
    }

    /// Starts all flows of the configuration in force.
    pub fn start_flows(&self) {
        let start = json!({"choice": "traffic", "traffic": {"flow_transmit": {"state": "start"}}});
        self.request("POST /control/state", &start);
    }

    /// Metrics of all flows, in the configuration's order; a reply without flows has no list.
    pub fn flows(&self) -> Vec<Value> {
        let metrics = self.request("POST /monitor/metrics", &json!({"choice": "flow"}));
        metrics["flow_metrics"]
            .as_array()
            .cloned()
            .unwrap_or_default()
    }

    /// The JSON of a reply that is no refusal.
    pub fn request(&self, line: &str, body: &Value) -> Value {
        let answer = self.answer(line, body);
        answer.unwrap_or_else(|refusal| panic!("{line}: {refusal}"))
    }

    /// The JSON of a reply, or of a refusal.
    pub fn answer(&self, line: &str, body: &Value) -> Result<Value, Value> {
        let json = |text: String| serde_json::from_str(&text).unwrap();
        let reply = self.reply(line, &body.to_string());
        reply.map(json).map_err(json)
    }

    /// The body of a reply, or of a refusal.
    pub fn reply(&self, line: &str, body: &str) -> Result<String, String> {
        let mut stream = self.connect();
        write!(
            stream,
            "{line} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        )
        .unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).unwrap();
        let (head, body) = reply.split_once("\r\n\r\n").expect("a head");
        if head.starts_with("HTTP/1.1 200 ") {
            Ok(body.to_owned())
        } else {
            Err(body.to_owned())
        }
    }

    /// Kills it, as nothing that it could answer to.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        let status = self.child.wait().unwrap();
        assert_eq!(status.signal(), Some(Signal::SIGKILL as i32));
    }

    /// Ends it as its user does, or the system.
    pub fn stop(self) {
        self.end(Signal::SIGTERM);
    }

    /// Ends it by a signal that it answers to.
    pub fn end(mut self, signal: Signal) {
        let id = Pid::from_raw(self.child.id().try_into().unwrap());
        kill(id, signal).unwrap();
        assert!(self.child.wait().unwrap().success(), "{signal}");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Errors: it has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
