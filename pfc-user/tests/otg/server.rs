//! A server in a network namespace of its own, with two ports that are connected to each other.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
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
    http: SocketAddr,
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
        Self::of(program(), namespace, journal)
    }

    /// Starts one by a command of the program without arguments.
    pub fn of(mut command: Command, namespace: &Namespace, journal: &Path) -> Self {
        command
            .args(["otg", "--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0"])
            .env("VALIDATOR_JOURNAL", journal)
            .stdout(Stdio::piped());
        let mut child = namespace.run(|| command.spawn()).unwrap().unwrap();
        let mut line = String::new();
        let out = child.stdout.take().unwrap();
        BufReader::new(out).read_line(&mut line).unwrap();
        let http = line.trim().rsplit_once("https://").expect("a line").1;
        Self {
            child,
            namespace: namespace.try_clone().unwrap(),
            http: http.parse().unwrap(),
        }
    }

    /// The JSON of a reply that is no refusal.
    pub fn request(&self, line: &str, body: &Value) -> Value {
        let answer = self.answer(line, body);
        answer.unwrap_or_else(|refusal| panic!("{line}: {refusal}"))
    }

    /// The JSON of a reply, or of a refusal.
    pub fn answer(&self, line: &str, body: &Value) -> Result<Value, Value> {
        let body = body.to_string();
        let request = format!(
            "{line} HTTP/1.1\r\nHost: tester\r\nConnection: close\r\n\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let exchange = || {
            let mut stream = TcpStream::connect(self.http)?;
            stream.write_all(request.as_bytes())?;
            let mut reply = String::new();
            stream.read_to_string(&mut reply).map(|_| reply)
        };
        let reply = self.namespace.run(exchange).unwrap().unwrap();
        let (head, body) = reply.split_once("\r\n\r\n").expect("a head");
        let body = serde_json::from_str(body).unwrap();
        if head.starts_with("HTTP/1.1 200 ") {
            Ok(body)
        } else {
            Err(body)
        }
    }

    /// Kills it, as nothing that it could answer to.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        let status = self.child.wait().unwrap();
        assert_eq!(status.signal(), Some(Signal::SIGKILL as i32));
    }

    /// Ends it as its user does.
    pub fn stop(mut self) {
        let id = Pid::from_raw(self.child.id().try_into().unwrap());
        kill(id, Signal::SIGTERM).unwrap();
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Errors: it has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
