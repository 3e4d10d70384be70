//! On the wire: a veth pair between two network namespaces of the test; frames that the program
//! drops and passes.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::process::Command;
use std::time::{Duration, Instant};

use nix::sys::socket::{AddressFamily, SockFlag, SockProtocol, SockType, socket};
use pfc_ebpf::abi::responder::Counters;
use pfc_ebpf::wire::Octets;
use validator::driver::bpf::responder::{RecordedFrame, Responder};
use validator::driver::bpf::{AccountProgram, Sizes, XdpError, XdpMode};
use validator::driver::kernel::link::{End, create_veth};
use validator::driver::kernel::netns::Namespace;
use validator::driver::kernel::packet::PacketSocket;
use validator_core::roce::build::read_response;

use crate::common::need_root;
use crate::responder::QUEUE_PAIR;
use crate::roce_frames::Request;

/// Upper bound of any wait; exceeding it is a failure.
const PATIENCE: Duration = Duration::from_secs(30);
/// The requester's queue pair.
const REQUESTER: u32 = 0x65_4321;
/// Room for RoCEv2 packets of a path MTU of 4096.
const MTU: u32 = 4500;
const TESTER: &str = "192.0.2.2";
const DUT: &str = "192.0.2.1";

/// The tester's port `t0` and the DUT's `d0`, with the addresses of a [`Request`].
struct Lab {
    tester: Namespace,
    dut: Namespace,
}

impl Lab {
    fn new() -> Self {
        let (tester, dut) = (Namespace::new().unwrap(), Namespace::new().unwrap());
        let end = |namespace, name, last| End {
            namespace,
            name,
            mac: [0x02, 0, 0, 0, 0, last],
        };
        create_veth(end(&tester, "t0", 1), end(&dut, "d0", 2), MTU).unwrap();
        let lab = Self { tester, dut };
        lab.ip(&lab.tester, &format!("address add {TESTER}/24 dev t0"));
        lab.ip(
            &lab.tester,
            &format!("neighbour add {DUT} lladdr 02:00:00:00:00:02 dev t0"),
        );
        lab.ip(&lab.dut, &format!("address add {DUT}/24 dev d0"));
        lab.ip(
            &lab.dut,
            &format!("neighbour add {TESTER} lladdr 02:00:00:00:00:01 dev d0"),
        );
        lab
    }

    fn ip(&self, namespace: &Namespace, arguments: &str) -> String {
        let output = namespace
            .run(|| Command::new("ip").args(arguments.split(' ')).output())
            .unwrap()
            .unwrap();
        assert!(
            output.status.success(),
            "ip {arguments}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn attach(&self, mode: XdpMode) -> Result<Responder, XdpError> {
        self.tester.run(|| Responder::attach("t0", mode)).unwrap()
    }

    fn has_program(&self) -> bool {
        self.ip(&self.tester, "link show dev t0")
            .contains("prog/xdp")
    }

    fn send(&self, frames: &[Vec<u8>]) {
        let socket = self.dut.run(|| PacketSocket::open("d0")).unwrap().unwrap();
        for frame in frames {
            socket.send(frame).unwrap();
        }
    }
}

/// Waits for `count` records.
pub fn records(responder: &mut Responder, count: usize) -> Vec<RecordedFrame> {
    let end = Instant::now() + PATIENCE;
    let mut records = Vec::new();
    while records.len() < count {
        let left = end
            .checked_duration_since(Instant::now())
            .unwrap_or_else(|| panic!("{} of {count} records", records.len()));
        responder.wait(left).unwrap();
        records.extend(responder.records().unwrap());
    }
    records
}

fn requests() -> Vec<Vec<u8>> {
    let request = Request::new(QUEUE_PAIR);
    let requests = [
        request.clone(),
        Request {
            tags: vec![(0x8100, 5)],
            ..request.clone()
        },
        Request {
            v6: true,
            tags: vec![(0x88a8, 5), (0x8100, 6)],
            ..request.clone()
        },
        Request {
            opcode: 0x04,
            payload: vec![0x33; 4096],
            ..request
        },
    ];
    requests.iter().map(Request::octets).collect()
}

/// Sends an echo request of `length` octets and waits for its reply.
fn ping(from: &Namespace, to: &str, length: usize) {
    let open = || {
        socket(
            AddressFamily::Inet,
            SockType::Raw,
            SockFlag::SOCK_CLOEXEC,
            SockProtocol::Icmp,
        )
    };
    // UDP by type only: the standard library has no type for it.
    let socket = UdpSocket::from(from.run(open).unwrap().unwrap());
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut message = vec![8, 0, 0, 0, 0, 7, 0, 1];
    message.extend((0..length).map(|at| (at * 11) as u8));
    let sum = message[..].sum(0, message.len()).unwrap();
    message[2..4].copy_from_slice(&(!sum).to_be_bytes());
    socket.send_to(&message, (to, 0)).unwrap();
    let mut packet = [0; 8192];
    let length = socket.recv(&mut packet).unwrap();
    assert_eq!((packet[20], packet[21]), (0, 0), "an echo reply");
    assert_eq!(packet[24..length], message[4..]);
}

fn tcp_and_ping_pass(lab: &Lab) {
    ping(&lab.dut, TESTER, 56);
    ping(&lab.tester, DUT, 4000);
    let listener = lab
        .tester
        .run(|| TcpListener::bind((TESTER, 0)))
        .unwrap()
        .unwrap();
    let address = listener.local_addr().unwrap();
    let sent: Vec<u8> = (0..100_000u32).map(|at| (at * 3) as u8).collect();
    let received = std::thread::scope(|scope| {
        scope.spawn(|| {
            lab.dut
                .run(|| {
                    TcpStream::connect(address)
                        .unwrap()
                        .write_all(&sent)
                        .unwrap()
                })
                .unwrap()
        });
        let (mut stream, _) = listener.accept().unwrap();
        let mut received = Vec::new();
        stream.read_to_end(&mut received).unwrap();
        received
    });
    assert!(
        received == sent,
        "{} octets of {}",
        received.len(),
        sent.len()
    );
}

fn on_a_wire(mode: XdpMode, word: &str) {
    let lab = Lab::new();
    let mut responder = lab.attach(mode).unwrap();
    assert_eq!(responder.mode(), word);
    assert!(lab.has_program());
    responder.configure(QUEUE_PAIR).unwrap();
    // Receives the RoCEv2 packets that the program passes to the kernel.
    let stack = lab
        .tester
        .run(|| UdpSocket::bind((TESTER, 4791)))
        .unwrap()
        .unwrap();
    stack.set_read_timeout(Some(PATIENCE)).unwrap();

    let frames = requests();
    lab.send(&frames);
    let other = Request {
        payload: vec![0x77; 2000],
        ..Request::new(QUEUE_PAIR + 1)
    }
    .octets();
    lab.send(std::slice::from_ref(&other));
    let records = records(&mut responder, frames.len());
    for (record, frame) in records.iter().zip(&frames) {
        assert_eq!(record.length as usize, frame.len(), "{word}");
        assert_eq!(record.octets, frame[..frame.len().min(256)], "{word}");
    }
    let mut datagram = [0; 4096];
    let length = stack.recv(&mut datagram).unwrap();
    assert_eq!(
        datagram[..length],
        other[42..],
        "untouched, and the first that came through"
    );
    tcp_and_ping_pass(&lab);
    let Counters {
        dropped,
        lost,
        other,
        passed,
    } = responder.counters().unwrap();
    assert_eq!((dropped, lost, other), (frames.len() as u64, 0, 1));
    assert!(passed > 4, "{passed}");

    drop(responder);
    let end = Instant::now() + PATIENCE;
    // The kernel removes a link some time after its last descriptor is closed.
    while lab.has_program() {
        assert!(Instant::now() < end, "the program is still attached");
    }
    lab.send(&[Request::new(QUEUE_PAIR).octets()]);
    assert_eq!(
        stack.recv(&mut datagram).unwrap(),
        32,
        "it comes through now"
    );
}

#[test]
fn root_requests_are_dropped_on_the_wire_and_all_else_passes() {
    if !need_root("root_requests_are_dropped_on_the_wire_and_all_else_passes") {
        return;
    }
    for (mode, word) in [
        (XdpMode::Auto, "driver"),
        (XdpMode::Driver, "driver"),
        (XdpMode::Skb, "skb"),
    ] {
        on_a_wire(mode, word);
    }
}

#[test]
fn root_an_answer_reaches_the_requester() {
    if !need_root("root_an_answer_reaches_the_requester") {
        return;
    }
    let lab = Lab::new();
    let mut responder = lab.attach(XdpMode::Auto).unwrap();
    responder.configure(QUEUE_PAIR).unwrap();
    let requester = lab
        .dut
        .run(|| UdpSocket::bind((DUT, 4791)))
        .unwrap()
        .unwrap();
    requester.set_read_timeout(Some(PATIENCE)).unwrap();
    lab.send(&[Request::new(QUEUE_PAIR).octets()]);
    let request = records(&mut responder, 1).remove(0);
    let answer = read_response(&request.octets, REQUESTER, &[0x42; 1024]).unwrap();
    lab.tester
        .run(|| PacketSocket::open("t0"))
        .unwrap()
        .unwrap()
        .send(&answer)
        .unwrap();
    let mut datagram = [0; 4096];
    let (length, source) = requester.recv_from(&mut datagram).unwrap();
    assert_eq!(source.to_string(), format!("{TESTER}:{}", 0xc123));
    assert_eq!(datagram[..length], answer[42..]);
}

#[test]
fn root_a_program_that_is_attached_is_named_and_stays() {
    if !need_root("root_a_program_that_is_attached_is_named_and_stays") {
        return;
    }
    let lab = Lab::new();
    let message = |mode| {
        lab.attach(mode)
            .err()
            .expect("the port is occupied")
            .to_string()
    };
    let account = lab
        .tester
        .run(|| {
            AccountProgram::attach(
                "t0",
                XdpMode::Skb,
                Sizes {
                    flows: 1,
                    windows: 1,
                },
            )
        })
        .unwrap()
        .unwrap();
    for mode in [XdpMode::Auto, XdpMode::Driver, XdpMode::Skb] {
        let message = message(mode);
        assert!(
            message.contains("`t0` already has an XDP program, `account` (id "),
            "{message}"
        );
    }
    assert_eq!(account.mode(), "skb");
    assert!(lab.has_program());
    drop(account);
    let end = Instant::now() + PATIENCE;
    let responder = loop {
        match lab.attach(XdpMode::Driver) {
            Err(XdpError::Occupied { .. }) => {
                assert!(Instant::now() < end, "the port is still occupied")
            }
            other => break other.unwrap(),
        }
    };
    let message = message(XdpMode::Skb);
    assert!(
        message.contains("`t0` already has an XDP program, `responder` (id "),
        "{message}"
    );
    drop(responder);
}

#[test]
fn root_an_interface_that_does_not_exist_is_named() {
    if !need_root("root_an_interface_that_does_not_exist_is_named") {
        return;
    }
    let error = Namespace::new()
        .unwrap()
        .run(|| Responder::attach("nowhere", XdpMode::Auto).err())
        .unwrap()
        .expect("there is none");
    assert!(
        error.to_string().contains("no interface `nowhere`"),
        "{error}"
    );
}
