//! The simulated switch as a process on veths, seen from outside: what goes in comes out.
//!
//! lane: frames

use std::io::{BufRead, BufReader, PipeReader, PipeWriter, pipe};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::thread::JoinHandleExt;
use std::process::{Command, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use clap::Parser;
use nix::sched::{CloneFlags, unshare};
use nix::sys::signal::{Signal, kill};
use nix::sys::socket::{MsgFlags, recv, send, setsockopt, sockopt};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use serde_json::json;
use validator::dut::switch::args::SwitchArgs;
use validator::dut::switch::process;
use validator_core::evidence::pfc::DutReport;

use crate::packet_socket::packet_socket;

/// Nothing here waits this long unless a frame is missing.
const PATIENCE: Duration = Duration::from_secs(20);

#[derive(Parser)]
struct CommandLine {
    #[command(flatten)]
    switch: SwitchArgs,
}

/// Moves this thread into a new network namespace with two veth pairs: `left` and `right` are the
/// tester's ends, `p0` and `p1` the switch's. The kernel removes it all when the threads in it have
/// ended.
fn lab() {
    unshare(CloneFlags::CLONE_NEWNET).expect("root");
    // Neighbour discovery would add frames of its own.
    std::fs::write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1").unwrap();
    for pair in [["left", "p0"], ["right", "p1"]] {
        ip(&format!(
            "link add {} type veth peer name {}",
            pair[0], pair[1]
        ));
        for end in pair {
            ip(&format!("link set {end} up"));
        }
    }
}

fn ip(arguments: &str) {
    let status = Command::new("ip")
        .args(arguments.split_whitespace())
        .status()
        .expect("iproute2");
    assert!(status.success(), "ip {arguments}");
}

/// A packet socket on an interface of the lab.
struct End(OwnedFd);

impl End {
    fn of(interface: &str) -> Self {
        let fd = packet_socket(interface, PATIENCE);
        setsockopt(&fd, sockopt::RcvBufForce, &(16 << 20)).unwrap();
        Self(fd)
    }

    fn send(&self, frame: &[u8]) {
        assert_eq!(
            send(self.0.as_raw_fd(), frame, MsgFlags::empty()),
            Ok(frame.len())
        );
    }

    /// The next test frame.
    fn receive(&self) -> Vec<u8> {
        let mut frame = [0; 2048];
        loop {
            let length =
                recv(self.0.as_raw_fd(), &mut frame, MsgFlags::empty()).expect("a frame in time");
            if frame[..6] == DESTINATION {
                return frame[..length].to_vec();
            }
        }
    }

    /// The numbers of the next test frames.
    fn receive_ids<const N: usize>(&self) -> [u32; N] {
        [(); N].map(|()| id(&self.receive()))
    }
}

/// Not the address of any port, so that it takes promiscuous ones.
const DESTINATION: [u8; 6] = [2, 0, 0, 0, 0, 0x22];

/// A frame with that DSCP in an IPv4 header; `id` tells it from others.
fn ipv4(dscp: u8, id: u32, length: usize) -> Vec<u8> {
    let mut frame = DESTINATION.to_vec();
    frame.extend([2, 0, 0, 0, 0, 0x11, 0x08, 0x00, 0x45, dscp << 2]);
    frame.extend(id.to_be_bytes());
    frame.extend((frame.len()..length).map(|at| at as u8));
    frame
}

fn id(frame: &[u8]) -> u32 {
    u32::from_be_bytes(frame[16..20].try_into().unwrap())
}

fn pfc(priority: u8, quanta: u16) -> Vec<u8> {
    let mut frame = vec![
        1,
        0x80,
        0xc2,
        0,
        0,
        1,
        2,
        0,
        0,
        0,
        0,
        0x11,
        0x88,
        0x08,
        1,
        1,
        0,
        1 << priority,
    ];
    frame.extend((0..8).flat_map(|class| if class == priority { quanta } else { 0 }.to_be_bytes()));
    frame.resize(60, 0);
    frame
}

/// `validator dut switch` in a thread of the lab.
struct Running {
    thread: JoinHandle<anyhow::Result<()>>,
    stdin: PipeWriter,
    stdout: BufReader<PipeReader>,
}

impl Running {
    /// Starts it; its first line, if there is one, has been read.
    fn start(flags: &str) -> (Self, String) {
        let args =
            CommandLine::parse_from(["switch"].into_iter().chain(flags.split_whitespace())).switch;
        let (its_stdin, stdin) = pipe().unwrap();
        let (stdout, its_stdout) = pipe().unwrap();
        let thread = thread::spawn(move || process::main(args, its_stdin, its_stdout));
        let mut stdout = BufReader::new(stdout);
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        (
            Self {
                thread,
                stdin,
                stdout,
            },
            line,
        )
    }

    /// Starts it on `p0` and `p1`, and waits until it is ready.
    fn ready(flags: &str) -> Self {
        let (running, line) = Self::start(&format!("--port p0 --port p1 {flags}"));
        assert_eq!(line, "{\"ready\":true}\n");
        running
    }

    /// Ends its standard input.
    fn stop(self) -> DutReport {
        drop(self.stdin);
        Self::report(self.thread, self.stdout)
    }

    /// Sends it SIGTERM.
    fn terminate(self) -> DutReport {
        // SAFETY: the thread has not been joined.
        let sent = unsafe { libc::pthread_kill(self.thread.as_pthread_t(), libc::SIGTERM) };
        assert_eq!(sent, 0);
        Self::report(self.thread, self.stdout)
    }

    fn report(
        thread: JoinHandle<anyhow::Result<()>>,
        mut stdout: BufReader<PipeReader>,
    ) -> DutReport {
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        thread.join().unwrap().unwrap();
        serde_json::from_str(&line).unwrap()
    }
}

#[test]
fn root_what_goes_in_comes_out_unchanged_both_ways() {
    const FRAMES: u32 = 5000;
    lab();
    let [left, right] = ["left", "right"].map(End::of);
    let switch = Running::ready("--lossless 3,4");
    let frames: Vec<_> = (0..FRAMES)
        .map(|n| ipv4(n as u8 % 64, n, 60 + n as usize % 1400))
        .collect();
    for (from, to) in [(&left, &right), (&right, &left)] {
        frames.iter().for_each(|frame| from.send(frame));
        let mut received: Vec<_> = frames.iter().map(|_| to.receive()).collect();
        let of_priority = |priority| {
            received
                .iter()
                .filter(move |frame| frame[15] >> 2 & 7 == priority)
        };
        assert!((0..8).all(|priority| of_priority(priority).is_sorted_by_key(|frame| id(frame))));
        received.sort_by_key(|frame| id(frame));
        assert!(received == frames);
    }
    let report = switch.stop();
    assert_eq!(
        (report.received, report.sent),
        (vec![FRAMES.into(); 2], vec![FRAMES.into(); 2])
    );
    assert_eq!(
        (report.overruns, report.send_errors, report.model_drops),
        (0, 0, vec![])
    );
}

#[test]
fn root_vlan_tags_stay_in_place() {
    lab();
    let [left, right] = ["left", "right"].map(End::of);
    let switch = Running::ready("--line-rate 1M --trust pcp --lossless 6");
    let untagged = ipv4(0, 1, 100);
    let tagged = |tags: &[u8]| [&untagged[..12], tags, &untagged[12..]].concat();
    let (inner, outer) = ([0x81, 0x00, 0x60, 0x05], [0x88, 0xa8, 0xc0, 0x07]);
    right.send(&pfc(6, 0xffff));
    left.send(&tagged(&[outer, inner].concat()));
    left.send(&tagged(&[inner, outer].concat()));
    // The kernel strips the outer tag on every reception. Both frames left the switch with two
    // tags.
    assert_eq!(right.receive(), tagged(&outer), "PCP 3 is not paused");
    right.send(&pfc(6, 0));
    assert_eq!(right.receive(), tagged(&inner), "PCP 6 was");
    switch.stop();
}

#[test]
fn root_pfc_holds_its_priority_back_until_xon() {
    lab();
    let [left, right] = ["left", "right"].map(End::of);
    // At 1 Mbit/s the pause lasts 33 s, longer than this test waits for a frame.
    let switch = Running::ready("--line-rate 1M --lossless 3");
    right.send(&pfc(3, 0xffff));
    left.send(&ipv4(3, 1, 60));
    left.send(&ipv4(4, 2, 60));
    left.send(&ipv4(4, 3, 60));
    assert_eq!(
        right.receive_ids(),
        [2, 3],
        "priority 3 is paused, 4 is not"
    );
    right.send(&pfc(3, 0));
    assert_eq!(right.receive_ids(), [1]);
    let report = switch.terminate();
    assert_eq!(
        (report.received, report.sent),
        (vec![3, 2], vec![0, 3]),
        "PFC is not forwarded"
    );
}

#[test]
fn root_a_full_buffer_asks_for_a_pause() {
    lab();
    let [left, right] = ["left", "right"].map(End::of);
    let switch = Running::ready("--line-rate 1M --lossless 3 --xoff 1000 --xon 500");
    right.send(&pfc(3, 0xffff));
    (0..11).for_each(|n| left.send(&ipv4(3, n, 100)));
    right.send(&pfc(3, 0));
    assert_eq!(
        right.receive_ids(),
        std::array::from_fn::<_, 11, _>(|n| n as u32)
    );
    let report = switch.stop();
    assert_eq!(report.xoff_sent, [0, 0, 0, 1, 0, 0, 0, 0]);
    assert_eq!(report.sent, [2, 11], "XOFF and XON");
}

#[test]
fn root_one_that_was_stopped_until_its_end_passes_on_what_came_and_notes_it() {
    const STOPPED: Duration = Duration::from_millis(20);
    lab();
    let [left, right] = ["left", "right"].map(End::of);
    let mut child = Command::new(env!("CARGO_BIN_EXE_validator"))
        .args("dut switch --port p0 --port p1".split(' '))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    stdout.read_line(&mut line).unwrap();
    assert_eq!(line, "{\"ready\":true}\n");
    let pid = Pid::from_raw(child.id() as i32);
    kill(pid, Signal::SIGSTOP).unwrap();
    let state = waitpid(pid, Some(WaitPidFlag::WUNTRACED)).unwrap();
    assert_eq!(state, WaitStatus::Stopped(pid, Signal::SIGSTOP));
    left.send(&ipv4(3, 1, 60));
    thread::sleep(STOPPED);
    drop(child.stdin.take());
    kill(pid, Signal::SIGCONT).unwrap();
    line.clear();
    stdout.read_line(&mut line).unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(right.receive_ids(), [1]);
    let report: DutReport = serde_json::from_str(&line).unwrap();
    let stood: u64 = report.stalls.iter().map(|stall| stall.length()).sum();
    assert!(u128::from(stood) >= STOPPED.as_nanos(), "{report:?}");
}

#[test]
fn root_its_counters_are_told_while_it_runs() {
    lab();
    let [left, right] = ["left", "right"].map(End::of);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("counters");
    let switch = Running::ready(&format!("--lossless 3 --counters {}", path.display()));
    let counters = || -> serde_json::Value {
        serde_json::from_reader(UnixStream::connect(&path).unwrap()).unwrap()
    };
    let none = [0; 8];
    let idle = json!({
        "received": none, "sent": none, "held": none, "dropped": none, "pfc_received": none,
        "pfc_sent": none, "pause_received": 0,
    });
    assert_eq!(counters(), json!([idle, idle]));
    left.send(&ipv4(3, 0, 60));
    left.send(&ipv4(5, 1, 60));
    // Each leaves before the frame that comes after it.
    assert_eq!(right.receive_ids(), [0, 1]);
    right.send(&pfc(3, 0));
    right.send(&ipv4(0, 2, 60));
    assert_eq!(left.receive_ids(), [2]);
    let [mut first, mut second] = [idle.clone(), idle];
    first["received"] = json!([0, 0, 0, 1, 0, 1, 0, 0]);
    first["sent"] = json!([1, 0, 0, 0, 0, 0, 0, 0]);
    second["received"] = json!([1, 0, 0, 0, 0, 0, 0, 0]);
    second["sent"] = json!([0, 0, 0, 1, 0, 1, 0, 0]);
    second["pfc_received"] = json!([0, 0, 0, 1, 0, 0, 0, 0]);
    assert_eq!(counters(), json!([first, second]));
    // A client that connects and says nothing holds nothing up.
    let silent = UnixStream::connect(&path).unwrap();
    assert_eq!(counters(), json!([first, second]));
    drop(silent);
    switch.stop();
    assert!(!path.exists(), "the socket is left");
}

#[test]
fn root_a_socket_that_is_there_is_nobodys_to_remove() {
    lab();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("counters");
    std::fs::write(&path, "kept").unwrap();
    let flags = format!("--port p0 --port p1 --counters {}", path.display());
    let (running, line) = Running::start(&flags);
    assert_eq!(line, "");
    let error = running.thread.join().unwrap().unwrap_err().to_string();
    let expected = format!(
        "cannot listen at {}: Address already in use (os error 98); a switch that was killed \
         leaves its socket",
        path.display()
    );
    assert_eq!(error, expected);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "kept");
}

#[test]
fn root_faults_are_in_force_and_in_the_report() {
    lab();
    let [left, right] = ["left", "right"].map(End::of);
    let switch = Running::ready("--fault drops=5:2 --fault forwards-control");
    (0..5).for_each(|n| left.send(&ipv4(5, n, 60)));
    assert_eq!(right.receive_ids(), [0, 2, 4]);
    let report = switch.stop();
    assert_eq!(report.faults, ["drops=5:2", "forwards-control"]);
    assert_eq!(report.model_drops, [("fault".to_owned(), 2)]);
}

#[test]
fn root_a_port_that_cannot_be_used_is_named() {
    lab();
    for (ports, message) in [
        ("--port p0 --port nowhere", "cannot use nowhere as a port: "),
        ("--port p0 --port p0", "p0 is given as two ports"),
        ("--port p0", "a switch has 2 to 8 ports, found 1"),
        (
            "--port p0 --port p1 --buffer 9KiB --xoff 9KiB --xon 1",
            "buffer must be above xoff (9216 octets), found 9216",
        ),
        (
            "--port p0 --port p1 --weights 1,1,1,1,1,1,1,2",
            "weights are those of the scheduler drr, found round-robin",
        ),
        (
            "--port p0 --port no-such:p1",
            "there is no network namespace \"no-such\"",
        ),
        (
            "--port p0 --port p1 --xon 9 --xoff 8",
            "xon must not be above xoff (8 octets), found 9",
        ),
    ] {
        let (running, line) = Running::start(ports);
        assert_eq!(line, "");
        let error = running.thread.join().unwrap().unwrap_err().to_string();
        assert!(error.starts_with(message), "{error}");
    }
}

/// Returns once frames can leave that interface: a carrier that came is acted on later.
fn wait_for_carrier(interface: &str) {
    let show = ["-o", "link", "show", "dev", interface];
    let is_up = || {
        let shown = Command::new("ip").args(show).output().expect("iproute2");
        String::from_utf8_lossy(&shown.stdout).contains("state UP")
    };
    let begun = Instant::now();
    while !is_up() {
        assert!(begun.elapsed() < PATIENCE, "{interface}");
    }
}

#[test]
fn root_three_ports_in_namespaces_are_a_bridge() {
    lab();
    ip("link add third type veth peer name p2");
    // Named namespaces are seen by every test.
    let namespace = format!("switch-{}", std::process::id());
    let _namespace = Named::new(&namespace);
    ip(&format!("link set p2 netns {namespace}"));
    ip(&format!("-n {namespace} link set p2 up"));
    ip("link set third up");
    let [left, right, third] = ["left", "right", "third"].map(End::of);
    let ports = format!("--port p0 --port p1 --port {namespace}:p2 --lossless 3 --xoff 1000");
    let (switch, line) = Running::start(&format!("{ports} --xon 500 --line-rate 1M"));
    assert_eq!(line, "{\"ready\":true}\n");
    let station = |from: u8, to: [u8; 6], id| {
        let mut frame = ipv4(3, id, 100);
        frame[..6].copy_from_slice(&to);
        frame[6..12].copy_from_slice(&[2, 0, 0, 0, 0, from]);
        frame
    };
    // Who has the destination is not known yet; then it is behind the third port.
    third.send(&station(0x22, [0xff; 6], 0));
    left.send(&station(0x11, DESTINATION, 1));
    assert_eq!(third.receive_ids(), [1]);
    // Two ports fill the third, which is paused: each is asked to wait.
    third.send(&pfc(3, 0xffff));
    (0..11).for_each(|n| left.send(&station(0x11, DESTINATION, n)));
    (0..11).for_each(|n| right.send(&station(0x33, DESTINATION, n)));
    third.send(&pfc(3, 0));
    let mut ids = third.receive_ids::<22>();
    ids.sort_unstable();
    assert_eq!(ids, std::array::from_fn(|n| n as u32 / 2));
    let report = switch.stop();
    assert_eq!(report.xoff_sent, [0, 0, 0, 2, 0, 0, 0, 0]);
    // The broadcast at both, XOFF and XON at each of them.
    assert_eq!(report.sent, [3, 3, 23]);
}

/// A network namespace with a name.
struct Named<'n>(&'n str);

impl<'n> Named<'n> {
    fn new(name: &'n str) -> Self {
        ip(&format!("netns add {name}"));
        Self(name)
    }
}

impl Drop for Named<'_> {
    fn drop(&mut self) {
        ip(&format!("netns delete {}", self.0));
    }
}

#[test]
fn root_a_link_that_goes_and_comes_ends_no_switch() {
    lab();
    let [left, right] = ["left", "right"].map(End::of);
    let switch = Running::ready("");
    for (n, port) in (0..).zip(["p0", "p1", "p0"]) {
        ip(&format!("link set {port} down"));
        ip(&format!("link set {port} up"));
        ["left", "p0", "p1", "right"]
            .into_iter()
            .for_each(wait_for_carrier);
        left.send(&ipv4(0, n, 60));
        assert_eq!(right.receive_ids(), [n]);
    }
    // A port that is removed is one that cannot be used any more.
    ip("link set p1 down");
    ip("link delete p1");
    let Running { thread, stdin, .. } = switch;
    let error = thread.join().unwrap().unwrap_err().to_string();
    drop(stdin);
    assert!(error.contains("No such device"), "{error}");
}
