//! Two ports of a tester, each with a device at its other end, and the command in the tester's
//! namespace.

use std::io::{BufRead, BufReader, Read};
use std::net::UdpSocket;
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::resource::{Resource, setrlimit};
use nix::sys::signal::{Signal, kill};
use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::{Ipv4Tos, RcvBufForce};
use nix::unistd::Pid;
use serde_json::Value;
use validator::driver::kernel::link::{End, create_veth};
use validator::driver::kernel::netns::Namespace;
use validator::driver::kernel::packet::PacketSocket;

/// Longest wait for what has to come: only a failure takes as long.
pub const PATIENCE: Duration = Duration::from_secs(30);
/// Addresses of the ports t0 and t1.
pub const MACS: [[u8; 6]; 2] = [[2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]];
/// The tester's address on t0.
pub const TESTER: &str = "192.0.2.1";
/// An address that t0 reaches by the MAC of t1.
pub const BEYOND: &str = "192.0.2.2";

/// t0 and t1 in the tester's namespace; their peers d0 and d1 in the device's.
pub struct Lab {
    pub tester: Namespace,
    pub device: Namespace,
}

impl Lab {
    pub fn new() -> Self {
        let (tester, device) = (Namespace::new().unwrap(), Namespace::new().unwrap());
        let lab = Self { tester, device };
        lab.pair("t0", 0);
        lab.pair("t1", 1);
        lab.address();
        lab
    }

    /// Gives t0 the tester's address, and the MAC of t1 for the one beyond.
    pub fn address(&self) {
        self.ip(&self.tester, &format!("address add {TESTER}/24 dev t0"));
        self.ip(
            &self.tester,
            &format!("neighbour add {BEYOND} lladdr 02:00:00:00:00:02 dev t0"),
        );
    }

    /// Makes a port of the tester of that name, and its peer.
    pub fn pair(&self, port: &str, number: usize) {
        let peer = format!("d{number}");
        let end = |namespace, name, mac| End {
            namespace,
            name,
            mac,
        };
        let far = [2, 0, 0, 0, 1, number as u8];
        create_veth(
            end(&self.tester, port, MACS[number]),
            end(&self.device, &peer, far),
            1500,
        )
        .unwrap();
    }

    pub fn ip(&self, namespace: &Namespace, arguments: &str) -> String {
        self.tool(namespace, "ip", arguments)
    }

    /// Runs a program in that namespace and returns its output. Panics if the program fails.
    pub fn tool(&self, namespace: &Namespace, program: &str, arguments: &str) -> String {
        let output = namespace
            .run(|| Command::new(program).args(arguments.split(' ')).output())
            .unwrap()
            .unwrap();
        assert!(
            output.status.success(),
            "{program} {arguments}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// The command with these arguments, once it watches.
    pub fn watch(&self, arguments: &str) -> Running {
        let mut running = self.start(arguments);
        running.event("watching");
        running
    }

    /// The command once it watches, after an event that `check` is to look at.
    pub fn watch_from(&self, arguments: &str, event: &str, check: impl FnOnce(&Value)) -> Running {
        let mut running = self.start(arguments);
        check(&running.event(event));
        running.event("watching");
        running
    }

    /// The command before it watches.
    pub fn start(&self, arguments: &str) -> Running {
        self.limited(u64::MAX, arguments)
    }

    /// The command before it watches; no file that it writes may become longer than so many octets.
    pub fn limited(&self, octets: u64, arguments: &str) -> Running {
        let limit = move || Ok(setrlimit(Resource::RLIMIT_FSIZE, octets, octets)?);
        let spawn = || {
            let mut command = Command::new(env!("CARGO_BIN_EXE_validator"));
            // SAFETY: the closure makes one system call and touches no memory of others.
            unsafe { command.pre_exec(limit) };
            command
                .arg("watch")
                .arg("--json")
                .args(arguments.split(' '));
            if !arguments.contains("--dscp-map") {
                // The map of the class selectors, which have the same priorities everywhere.
                command.args(["--dscp-map", "dscp-high-bits"]);
            }
            command
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
        };
        let mut child = self.tester.run(spawn).unwrap().unwrap();
        let (out, err) = (
            BufReader::new(child.stdout.take().unwrap()),
            child.stderr.take().unwrap(),
        );
        Running { child, out, err }
    }

    /// A socket whose datagrams leave t0 with that DSCP, through the stack.
    pub fn sender(&self, dscp: i32) -> UdpSocket {
        let socket = self
            .tester
            .run(|| UdpSocket::bind((TESTER, 0)))
            .unwrap()
            .unwrap();
        setsockopt(&socket.as_fd(), Ipv4Tos, &(dscp << 2)).unwrap();
        socket
    }

    /// A socket that frames leave d0 by, past the stack.
    pub fn device_port(&self) -> PacketSocket {
        self.device
            .run(|| PacketSocket::open("d0"))
            .unwrap()
            .unwrap()
    }
}

/// Gives a socket room for all that a test sends.
pub fn with_room(socket: &impl AsFd) {
    setsockopt(&socket.as_fd(), RcvBufForce, &(256 << 20)).unwrap();
}

/// The command while it runs; killed where a test ends before it.
pub struct Running {
    child: Child,
    out: BufReader<ChildStdout>,
    err: ChildStderr,
}

impl Running {
    /// The next object; `None` at the end of the output.
    fn object(&mut self) -> Option<Value> {
        let mut line = String::new();
        self.out.read_line(&mut line).unwrap();
        (!line.is_empty())
            .then(|| serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}")))
    }

    /// The next object for which that holds.
    pub fn wait_for(&mut self, what: &str, mut holds: impl FnMut(&Value) -> bool) -> Value {
        let begin = Instant::now();
        loop {
            let Some(object) = self.object() else {
                panic!("{what}: the command ended; {}", self.errors())
            };
            if holds(&object) {
                return object;
            }
            assert!(begin.elapsed() < PATIENCE, "{what}: not in {PATIENCE:?}");
        }
    }

    pub fn event(&mut self, event: &str) -> Value {
        self.wait_for(event, |object| {
            object["type"] == "event" && object["event"] == event
        })
    }

    fn errors(&mut self) -> String {
        let mut text = String::new();
        self.err.read_to_string(&mut text).unwrap();
        text
    }

    /// Stops it by Ctrl-C, and returns its standard error.
    pub fn stopped(self) -> String {
        let (errors, code) = self.interrupted();
        assert_eq!(code, Some(130), "{errors}");
        errors
    }

    /// Stops it by Ctrl-C; its standard error and exit code.
    pub fn interrupted(mut self) -> (String, Option<i32>) {
        self.signal(Signal::SIGINT);
        while self.object().is_some() {}
        let errors = self.errors();
        (errors, self.child.wait().unwrap().code())
    }

    pub fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id() as i32), signal).unwrap();
    }

    /// Exit code and standard error, where nobody reads the output.
    pub fn unread_end(mut self) -> (Option<i32>, String) {
        let errors = self.errors();
        (self.child.wait().unwrap().code(), errors)
    }

    /// All objects up to the end, and the exit code.
    pub fn end(mut self) -> (Vec<Value>, Option<i32>) {
        let objects = std::iter::from_fn(|| self.object()).collect();
        (objects, self.child.wait().unwrap().code())
    }

    /// Stops it by Ctrl-C; what it says at the end about an interface.
    pub fn summary(self, interface: &str) -> Value {
        self.signal(Signal::SIGINT);
        let (objects, code) = self.end();
        assert_eq!(code, Some(130));
        let is_it =
            |object: &&Value| object["type"] == "summary" && object["interface"] == interface;
        objects
            .iter()
            .find(is_it)
            .unwrap_or_else(|| panic!("no summary of {interface}: {objects:?}"))["total"]
            .clone()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Both calls do nothing to a child that has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs the command where it is to refuse. Returns its exit code and its standard error.
pub fn refused(lab: &Lab, arguments: &str) -> (Option<i32>, String) {
    let mut running = lab.start(arguments);
    let errors = running.errors();
    (running.end().1, errors)
}
