//! `validator agent` as a process: permitted addresses, and how it ends.

use std::fs;
use std::io::{self, BufRead, BufReader, Read as _};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex};

use clap::Parser;
use nix::sys::signal::{Signal, kill, raise};
use nix::unistd::Pid;
use validator::agent::args::{AgentArgs, TOKEN_VARIABLE};
use validator::agent::backend::Selection;
use validator::agent::client::Agent;
use validator::agent::process;
use validator::agent::protocol::FailureKind;

use super::fake::{Call, NEVER, Script, maker, open_channel};

/// Arguments for [`agent_on_the_fake`], which only runs as a process of its own.
const ARGUMENTS: &str = "VALIDATOR_TEST_AGENT";
/// A signal that it receives as soon as it is ready.
const AT_ONCE: &str = "VALIDATOR_TEST_AT_ONCE";

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    args: AgentArgs,
}

fn validator(line: &str, token: Option<&str>) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_validator"));
    command
        .arg("agent")
        .args(line.split_whitespace())
        .env_remove(TOKEN_VARIABLE)
        .stdin(Stdio::null());
    command
        .envs(token.map(|token| (TOKEN_VARIABLE, token)))
        .output()
        .unwrap()
}

#[track_caller]
fn assert_usage(output: &Output, message: &str) {
    assert_eq!(
        String::from_utf8_lossy(&output.stderr),
        format!("validator: {message}\n")
    );
    assert_eq!(
        (output.status.code(), &output.stdout[..]),
        (Some(2), &b""[..])
    );
}

/// Standard output. If a signal is set, this thread raises it right after `ready` was written.
struct Out(Option<Signal>);

impl io::Write for Out {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        io::stdout().write(octets)
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stdout().flush()?;
        self.0.map_or(Ok(()), |signal| Ok(raise(signal)?))
    }
}

/// Not a test of its own: the process of the tests below.
#[test]
fn agent_on_the_fake() {
    let Ok(line) = std::env::var(ARGUMENTS) else {
        return;
    };
    let args = Line::parse_from(format!("agent {line}").split_whitespace()).args;
    let (mut make, calls) = maker(&Arc::new(Mutex::new(Script::default())));
    let open = |selection: &Selection| {
        eprintln!("{selection:?}");
        make()
    };
    let at_once = std::env::var(AT_ONCE)
        .ok()
        .map(|name| name.parse().unwrap());
    process::run(&args, open, Out(at_once)).unwrap();
    println!("{:?}", calls.try_iter().collect::<Vec<_>>());
}

fn agent_on_the_fake_with(line: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args([
            "--exact",
            "agent::process::agent_on_the_fake",
            "--nocapture",
        ])
        .env(ARGUMENTS, line)
        .env_remove(TOKEN_VARIABLE);
    command.stdin(Stdio::null());
    command
}

/// The process and its address.
struct Process {
    child: Child,
    address: String,
    stdout: BufReader<std::process::ChildStdout>,
}

impl Process {
    fn start(line: &str, token: Option<&str>) -> Self {
        let mut child = agent_on_the_fake_with(line)
            .envs(token.map(|token| (TOKEN_VARIABLE, token)))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        while !line.contains("ready: ") {
            line.clear();
            assert!(stdout.read_line(&mut line).unwrap() > 0, "it has ended");
        }
        let address = line.split("ready: ").last().unwrap().trim().to_owned();
        Self {
            child,
            address,
            stdout,
        }
    }

    /// Sends a signal. Returns the rest of standard output, and all of standard error.
    fn end(mut self, signal: Signal) -> (String, String) {
        kill(Pid::from_raw(self.child.id() as i32), signal).unwrap();
        let (mut out, mut err) = (String::new(), String::new());
        self.stdout.read_to_string(&mut out).unwrap();
        self.child
            .stderr
            .take()
            .unwrap()
            .read_to_string(&mut err)
            .unwrap();
        assert!(self.child.wait().unwrap().success(), "{err}");
        (out, err)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn beyond_loopback_it_needs_a_token() {
    for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:4792"] {
        let message = format!(
            "on {address} anyone who reaches this host could use its adapter: set a token by \
             --token-file or VALIDATOR_TOKEN, here and for the tester, or listen on 127.0.0.1"
        );
        assert_usage(&validator(&format!("--listen {address}"), None), &message);
    }
}

#[test]
fn a_token_that_is_none_is_told() {
    assert_usage(
        &validator("--listen 0.0.0.0:0", Some(" ")),
        "VALIDATOR_TOKEN: expected a token, found nothing",
    );
    let missing = "the token cannot be read from /no/file: No such file or directory (os error 2)";
    assert_usage(
        &validator("--listen 0.0.0.0:0 --token-file /no/file", Some("t")),
        missing,
    );
}

#[cfg(not(feature = "verbs"))]
#[test]
fn without_verbs_it_says_how_to_get_them() {
    let message = "this validator was built without verbs, which its agent needs: build it with \
                   `cargo build --release --features verbs`";
    assert_usage(&validator("--listen 127.0.0.1:0", None), message);
    assert_usage(&validator("--listen 0.0.0.0:0", Some("t")), message);
}

#[test]
fn a_signal_ends_it_and_frees_the_channel() {
    for signal in [Signal::SIGTERM, Signal::SIGINT] {
        let process = Process::start(
            "--listen 127.0.0.1:0 --device d0 --port 2 --gid-index 3",
            None,
        );
        let mut agent = Agent::connect(process.address.as_str(), None, NEVER).unwrap();
        agent.open(&open_channel()).unwrap();
        let (out, err) = process.end(signal);
        // Opened once to check that it can be.
        let calls = [
            Call::Made,
            Call::Dropped,
            Call::Made,
            Call::Open(open_channel()),
            Call::Close,
            Call::Dropped,
        ];
        assert!(out.contains(&format!("{calls:?}\n")), "{out}");
        assert!(
            err.contains("Selection { device: Some(\"d0\"), port: Some(2), gid_index: Some(3) }\n"),
            "{err}"
        );
    }
}

#[test]
fn a_signal_right_after_ready_is_in_time() {
    for signal in [Signal::SIGTERM, Signal::SIGINT] {
        let output = agent_on_the_fake_with("--listen 127.0.0.1:0")
            .env(AT_ONCE, signal.as_str())
            .output()
            .unwrap();
        let out = String::from_utf8(output.stdout).unwrap();
        assert!(
            output.status.success() && out.contains("[Made, Dropped]\n"),
            "{}: {out}",
            output.status
        );
    }
}

#[test]
fn the_token_comes_from_the_file_or_the_environment() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    fs::write(&file, "  from the file\n").unwrap();
    let name = Path::new(&file).to_str().unwrap();
    for (line, token) in [
        (String::new(), "from the environment"),
        (format!("--token-file {name}"), "from the file"),
    ] {
        let process = Process::start(
            &format!("--listen 127.0.0.1:0 {line}"),
            Some("from the environment"),
        );
        let error = Agent::connect(process.address.as_str(), None, NEVER).unwrap_err();
        assert_eq!(
            error.failure().map(|failure| failure.kind),
            Some(FailureKind::Token)
        );
        Agent::connect(process.address.as_str(), Some(token), NEVER).unwrap();
        process.end(Signal::SIGTERM);
    }
}

#[test]
fn an_address_that_is_taken_is_told() {
    let process = Process::start("--listen 127.0.0.1:0", None);
    let taken = format!("--listen {}", process.address);
    let (make, _calls) = maker(&Arc::new(Mutex::new(Script::default())));
    let mut make = make;
    let args = Line::parse_from(format!("agent {taken}").split_whitespace()).args;
    let error = process::run(&args, |_: &Selection| make(), io::sink()).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("cannot listen on {}", process.address)
    );
}
