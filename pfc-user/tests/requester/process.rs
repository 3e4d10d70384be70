//! `validator dut requester` on a veth: frames sent and accepted, its control, and its end.

use std::borrow::Cow;
use std::fs::File;
use std::os::fd::{AsRawFd, OwnedFd};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::sys::socket::{MsgFlags, recv, send};
use nix::unistd::Pid;
use pcap_file::pcap::{PcapPacket, PcapWriter};
use pfc_ebpf::wire::roce::{self, Bth, Packet};
use validator::agent::client::Agent;
use validator::agent::protocol::{Completion, OpenChannel, Read, State};
use validator::driver::kernel::link::{End, create_veth};
use validator::driver::kernel::netns::Namespace;
use validator::driver::kernel::process::Child;
use validator::driver::stall;
use validator::dut::requester::frame::Path;

use crate::common::{need_root, need_tool};
use crate::packet_socket::packet_socket;
use crate::requester::frames::scapy;
use crate::requester::virtual_time::{Answer, FIRST_PSN, READ, adapter, settings};

/// Upper bound of any wait; exceeding it is a failure.
const PATIENCE: Duration = Duration::from_secs(20);
const LEAST: &str =
    "dut requester --interface dut --address 192.0.2.1 --peer-mac 02:00:00:00:00:02";

/// A cable from the tester's packet socket to the DUT's host.
struct Lab {
    host: Namespace,
    wire: OwnedFd,
    path: Path,
}

fn validator(flags: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_validator"));
    command
        .args(flags.split_whitespace())
        .env_remove("VALIDATOR_TOKEN");
    command
}

impl Lab {
    fn new() -> Self {
        Self::with_mtu(1500)
    }

    fn with_mtu(mtu: u32) -> Self {
        let (tester, host) = (Namespace::new().unwrap(), Namespace::new().unwrap());
        let (mac, peer_mac) = (adapter().mac, adapter().peer_mac);
        let ends =
            [(&tester, "tester", peer_mac), (&host, "dut", mac)].map(|(namespace, name, mac)| {
                End {
                    namespace,
                    name,
                    mac,
                }
            });
        create_veth(ends[0], ends[1], mtu).unwrap();
        let address = host.run(|| {
            Command::new("ip")
                .args("address add 192.0.2.1/24 dev dut".split(' '))
                .status()
        });
        assert!(address.unwrap().unwrap().success());
        let path = Path {
            mac,
            peer_mac,
            address: adapter().address,
            peer: settings(0, 0).remote,
        };
        Self {
            wire: tester.run(|| wire("tester")).unwrap(),
            host,
            path,
        }
    }

    fn start(&self, flags: &str) -> Running {
        let mut child = Child::spawn(
            Some(&self.host),
            validator(&format!("{LEAST} --listen 127.0.0.1:0 {flags}")),
        )
        .unwrap();
        let line = child.read_line(PATIENCE).unwrap();
        let address = line
            .strip_prefix("ready: ")
            .unwrap_or_else(|| panic!("{line}"))
            .to_owned();
        let agent = self
            .host
            .run(|| Agent::connect(address.as_str(), None, PATIENCE))
            .unwrap()
            .unwrap();
        Running {
            child,
            agent,
            address,
        }
    }

    /// Returns the error of a process that does not start.
    fn error(&self, command: Command) -> String {
        let mut command = command;
        // If it starts after all, this ends it.
        command.stdin(Stdio::piped());
        let output = self.host.run(|| command.output()).unwrap().unwrap();
        assert_eq!(output.status.code(), Some(2));
        String::from_utf8(output.stderr).unwrap()
    }

    fn receive(&self) -> Vec<u8> {
        let mut frame = vec![0; 9000];
        let length =
            recv(self.wire.as_raw_fd(), &mut frame, MsgFlags::empty()).expect("a frame in time");
        frame.truncate(length);
        frame
    }

    /// Receives the next frame, which must be RoCEv2.
    fn request(&self) -> (Vec<u8>, Packet) {
        let frame = self.receive();
        let packet = roce::parse(&frame[..])
            .unwrap_or_else(|| panic!("expected a RoCEv2 packet, found {frame:02x?}"));
        (frame, packet)
    }

    /// Answers a READ request.
    fn answer(&self, queue_pair: u32, bth: Bth, length: usize) {
        let answer = Answer {
            opcode: 0x10,
            partition: 0xffff,
            queue_pair,
            psn: bth.psn,
            syndrome: 0,
            length,
        };
        let frame = answer.frame(&self.path.reversed());
        assert_eq!(
            send(self.wire.as_raw_fd(), &frame, MsgFlags::empty()),
            Ok(frame.len())
        );
    }
}

fn wire(interface: &str) -> OwnedFd {
    let fd = packet_socket(interface, PATIENCE);
    // Excludes frames sent from here.
    let on: libc::c_int = 1;
    // SAFETY: the option's value is an int that outlives the call.
    let set = unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            libc::SOL_PACKET,
            libc::PACKET_IGNORE_OUTGOING,
            (&raw const on).cast(),
            4,
        )
    };
    assert_eq!(set, 0);
    fd
}

struct Running {
    child: Child,
    agent: Agent,
    address: String,
}

impl Running {
    fn completion(&mut self) -> (u64, u32) {
        let [
            Completion {
                work_request,
                status,
                ..
            },
        ] = self.agent.poll(Duration::from_secs(10)).unwrap()[..]
        else {
            panic!("expected one completion")
        };
        (work_request, status)
    }

    /// Ends the process and returns its last line. A busy machine may have made it stall before.
    fn end(self) -> String {
        let finished = self.child.finish(PATIENCE).unwrap();
        assert!(finished.status.success());
        let lines = finished.stdout.split_inclusive('\n');
        lines.filter(|line| stall::read(line).is_none()).collect()
    }
}

/// tshark's reading of each frame: opcode, destination, PSN, AckReq, address, R_Key, length.
fn tshark(frames: &[Vec<u8>]) -> Vec<Vec<u64>> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("frames.pcap");
    let mut writer = PcapWriter::new(File::create(&file).unwrap()).unwrap();
    for frame in frames {
        let packet = PcapPacket {
            timestamp: Duration::ZERO,
            orig_len: frame.len() as u32,
            data: Cow::Borrowed(frame),
        };
        writer.write_packet(&packet).unwrap();
    }
    drop(writer);
    let fields = [
        "bth.opcode",
        "bth.destqp",
        "bth.psn",
        "bth.a",
        "reth.va",
        "reth.r_key",
        "reth.dmalen",
    ];
    let fields = fields
        .iter()
        .flat_map(|field| ["-e".into(), format!("infiniband.{field}")]);
    let output = Command::new("tshark")
        .arg("-r")
        .arg(&file)
        .args(["-T", "fields"])
        .args(fields)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    // The number of digits depends on tshark's release.
    let number = |text: &str| {
        text.strip_prefix("0x")
            .map_or(text.parse(), |digits| u64::from_str_radix(digits, 16))
            .unwrap()
    };
    String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(|line| line.split('\t').map(number).collect())
        .collect()
}

#[test]
fn root_a_read_without_an_answer_is_retried_fails_and_leaves_the_queue_pair_in_error() {
    let name = "root_a_read_without_an_answer_is_retried_fails_and_leaves_the_queue_pair_in_error";
    if !need_root(name) || !need_tool(name, "scapy") || !need_tool(name, "tshark") {
        return;
    }
    let lab = Lab::new();
    let mut dut = lab.start("");
    let device = dut.agent.device().clone();
    assert_eq!(
        (
            device.name.as_str(),
            device.backend.as_str(),
            device.apm,
            device.active_mtu
        ),
        ("dut", "simulated", Some(false), 1024)
    );
    let channel = dut.agent.open(&settings(2, 12)).unwrap();
    assert_eq!(
        (
            channel.address,
            channel.attributes.state,
            channel.attributes.timeout
        ),
        (adapter().address, State::Rts, 12)
    );
    dut.agent.post_read(&READ).unwrap();
    let frames = [(); 3].map(|()| lab.request().0);
    assert_eq!(dut.completion(), (READ.work_request, 12));
    assert_eq!(dut.agent.query().unwrap().state, State::Error);
    dut.agent
        .post_read(&Read {
            work_request: 78,
            ..READ
        })
        .unwrap();
    assert_eq!(dut.completion(), (78, 5));
    dut.agent.close().unwrap();

    let scapy = scapy(&frames);
    let line = "02:00:00:00:00:02 02:00:00:00:00:01 192.0.2.1 192.0.2.2 4791 opcode=0xc \
                dqpn=0xabcdef psn=0xffffff ackreq=1 pkey=0xffff va=0x999000 rkey=0x12345 \
                dlen=1024 rest=0 checksum=True icrc=True\n";
    assert_eq!(scapy, line.repeat(3));
    assert_eq!(
        tshark(&frames),
        vec![vec![12, 0xabcdef, 0xffffff, 1, 0x99_9000, 0x12345, 1024]; 3]
    );
    assert_eq!(dut.end(), "ended: 3 frames sent, 0 refused by the kernel\n");
}

#[test]
fn root_an_answer_after_a_drop_succeeds_and_the_kernel_keeps_out_of_it() {
    if !need_root("root_an_answer_after_a_drop_succeeds_and_the_kernel_keeps_out_of_it") {
        return;
    }
    let lab = Lab::with_mtu(4500);
    let mut dut = lab.start("");
    assert_eq!(dut.agent.device().active_mtu, 4096);
    let settings = OpenChannel {
        path_mtu: 4096,
        ..settings(7, 16)
    };
    let channel = dut.agent.open(&settings).unwrap();
    let read = Read {
        length: 4096,
        ..READ
    };
    dut.agent.post_read(&read).unwrap();
    let first = lab.request().1.bth;
    let again = lab.request().1.bth;
    assert_eq!(first, again);
    lab.answer(channel.queue_pair, again, 4096);
    assert_eq!(dut.completion(), (READ.work_request, 0));
    let after = dut.agent.query().unwrap();
    assert_eq!(
        (after.state, after.retries_left, after.psn),
        (State::Rts, Some(7), (FIRST_PSN + 1) & 0xff_ffff)
    );

    // Frames before this request went through `lab.request()`, which accepts no ICMP of the kernel.
    dut.agent.post_read(&read).unwrap();
    let next = std::iter::repeat_with(|| lab.request().1.bth)
        .find(|bth| bth.psn != first.psn)
        .unwrap();
    assert_eq!(next.psn, after.psn);
    lab.answer(channel.queue_pair, next, 4096);
    assert_eq!(dut.completion(), (READ.work_request, 0));
}

#[test]
fn root_faults_are_in_force_and_a_client_that_goes_leaves_nothing_behind() {
    if !need_root("root_faults_are_in_force_and_a_client_that_goes_leaves_nothing_behind") {
        return;
    }
    let lab = Lab::new();
    let mut dut = lab.start("--fault no-retry --fault wrong-status=7 --fault apm");
    assert_eq!(dut.agent.device().apm, Some(true));
    let first = dut.agent.open(&settings(2, 12)).unwrap();
    drop(dut.agent);
    // Until the server has seen the first client go, it refuses a second.
    let patience = Instant::now() + PATIENCE;
    dut.agent = loop {
        match lab
            .host
            .run(|| Agent::connect(dut.address.as_str(), None, PATIENCE))
            .unwrap()
        {
            Ok(agent) => break agent,
            Err(error) => assert!(Instant::now() < patience, "{error}"),
        }
    };
    let second = dut.agent.open(&settings(2, 12)).unwrap();
    assert_ne!(first.queue_pair, second.queue_pair);
    dut.agent.post_read(&READ).unwrap();
    assert_eq!(dut.completion(), (READ.work_request, 7));
    assert_eq!(dut.end(), "ended: 1 frames sent, 0 refused by the kernel\n");
}

#[test]
fn root_sigterm_ends_it() {
    if !need_root("root_sigterm_ends_it") {
        return;
    }
    let lab = Lab::new();
    let mut dut = lab.start("");
    dut.agent.open(&settings(2, 31)).unwrap();
    dut.agent.post_read(&READ).unwrap();
    lab.request();
    kill(Pid::from_raw(dut.child.id() as i32), Signal::SIGTERM).unwrap();
    assert_eq!(
        dut.child.read_line(PATIENCE).unwrap(),
        "ended: 1 frames sent, 0 refused by the kernel"
    );
}

#[test]
fn root_what_cannot_be_used_is_named() {
    if !need_root("root_what_cannot_be_used_is_named") {
        return;
    }
    let lab = Lab::new();
    let listen = "--listen 127.0.0.1:0";
    let says = |command: Command, words: &[&str]| {
        let error = lab.error(command);
        assert!(words.iter().all(|word| error.contains(word)), "{error}");
    };
    says(
        validator(&format!("{LEAST} {listen}").replace("--interface dut", "--interface nothing")),
        &["nothing", "dut"],
    );
    says(
        validator(&format!("{LEAST} --listen 192.0.2.1:0")),
        &["192.0.2.1:0: beyond loopback a token is needed: set one by --token-env"],
    );
    says(
        validator(&format!("{LEAST} {listen} --token-env")),
        &["the token cannot be read from the environment variable VALIDATOR_TOKEN"],
    );
    let mut empty = validator(&format!("{LEAST} {listen} --token-env SECRET"));
    empty.env("SECRET", " ");
    says(empty, &["SECRET: expected a token, found nothing"]);
    let running = lab.start("");
    says(
        validator(&format!("{LEAST} {listen}")),
        &["UDP port 4791 of 192.0.2.1 is taken"],
    );
    says(
        validator(
            &format!("{LEAST} --listen {}", running.address).replace("192.0.2.1 ", "192.0.2.3 "),
        ),
        &["cannot listen on", &running.address],
    );

    let mut secret = validator(
        &format!("{LEAST} --listen 192.0.2.1:0 --token-env SECRET")
            .replace("--address 192.0.2.1", "--address 192.0.2.3"),
    );
    secret.env("SECRET", "sesame");
    let mut child = Child::spawn(Some(&lab.host), secret).unwrap();
    let line = child.read_line(PATIENCE).unwrap();
    let connect = |token| {
        lab.host
            .run(|| Agent::connect(&line["ready: ".len()..], token, PATIENCE).map(drop))
            .unwrap()
    };
    assert!(connect(None).is_err());
    assert!(connect(Some("simsim")).is_err());
    connect(Some("sesame")).unwrap();
}
