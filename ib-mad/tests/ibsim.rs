//! ibsim's protocol between our client and our server, and the server's handling of peers that
//! break it.

use std::io::{PipeWriter, Write, pipe};
use std::os::fd::AsFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::process;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use ib_mad::mad::{AttributeId, Lid, MKey, Method};
use ib_mad::requester::{Outcome, Requester};
use ib_mad::sma::{Fabric, NodeConfig, NodeKind, Sma};
use ib_mad::smp::{DATA, Path, Route, Smp};
use ib_mad::transport::ibsim::{BindError, ConnectError, Counters, Host, IbsimTransport, Server};
use ib_mad::transport::{ReceiveError, SendError, Transport};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

/// Upper bound of any wait; exceeding it is a failure.
const PATIENCE: Duration = Duration::from_secs(20);

/// The server's node: the tester's, linked to a switch.
struct Node(Fabric);

impl Node {
    fn new() -> Self {
        let config = |kind, lid| NodeConfig {
            kind,
            description: "node".into(),
            guid: 0x0200_0000_0000_0000 + u64::from(lid) * 0x100,
            lid: Lid(lid),
            master_sm_lid: Lid(1),
            port_state: 4,
            linear_fdb_cap: 0,
            random_fdb_cap: 1024,
            m_key: MKey(if lid == 2 { 0x77 } else { 0 }),
            m_key_protect_bits: 0,
            m_key_lease_period: 0,
            response_time_value: 8,
            subnet_timeout: 8,
        };
        let tester = Sma::new(config(NodeKind::ChannelAdapter, 1), Vec::new());
        Self(Fabric {
            tester,
            dut: Sma::new(config(NodeKind::Switch(4), 2), Vec::new()),
        })
    }
}

impl Host for Node {
    fn name(&self) -> &str {
        "Hca1"
    }

    fn attribute(&mut self, attribute: AttributeId, modifier: u32) -> Option<[u8; DATA]> {
        let get = Smp::request(
            Method::GET,
            attribute,
            modifier,
            &Route::Directed(Path::default()),
        );
        let answer = self.0.send(Duration::ZERO, &get, Lid::PERMISSIVE);
        answer
            .first()
            .and_then(|answer| Smp::parse(&answer.octets).ok())
            .map(|smp| *smp.data())
    }
}

/// A server in a thread of its own; it ends when this is dropped.
struct Running {
    name: String,
    stop: Option<PipeWriter>,
    thread: Option<JoinHandle<Counters>>,
}

impl Running {
    fn start(test: &str) -> Self {
        let name = format!("ib-mad-{test}-{}", process::id());
        let mut server = Server::bind(&name).unwrap();
        let (stopped, stop) = pipe().unwrap();
        let thread = thread::spawn(move || {
            let mut node = Node::new();
            let mut packets = Vec::new();
            loop {
                server.receive(&mut node, &mut packets).unwrap();
                for packet in packets.drain(..) {
                    for delivery in node.0.send(Duration::ZERO, &packet.smp, packet.to) {
                        server.deliver(packet.client, packet.to, &delivery.octets);
                    }
                }
                let mut events = vec![PollFd::new(stopped.as_fd(), PollFlags::POLLIN)];
                events.extend(
                    server
                        .sockets()
                        .map(|socket| PollFd::new(socket, PollFlags::POLLIN)),
                );
                poll(&mut events, PollTimeout::NONE).unwrap();
                if events[0].any().unwrap() {
                    return server.counters();
                }
            }
        });
        Self {
            name,
            stop: Some(stop),
            thread: Some(thread),
        }
    }

    fn connect(&self) -> Result<IbsimTransport, ConnectError> {
        IbsimTransport::connect(&self.name, "Hca1", PATIENCE)
    }

    fn stop(mut self) -> Counters {
        self.stop = None;
        self.thread.take().unwrap().join().unwrap()
    }

    fn address(&self, socket: &str) -> SocketAddr {
        SocketAddr::from_abstract_name(format!("{}:{socket}\0", self.name)).unwrap()
    }

    /// Binds a control socket of a client with this number by hand.
    fn control(&self, id: u32) -> UnixDatagram {
        let socket = UnixDatagram::bind_addr(&self.address(&format!("ctl{id}"))).unwrap();
        socket.connect_addr(&self.address("ctl")).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        socket
    }
}

/// Makes a control datagram.
fn control(slot: u32, kind: u32, data: &[u8]) -> [u8; 80] {
    let mut octets = [0; 80];
    for (at, number) in [
        (0, 0xdead_beef),
        (4, slot),
        (8, kind),
        (12, data.len() as u32),
    ] {
        octets[at..at + 4].copy_from_slice(&u32::to_ne_bytes(number));
    }
    octets[16..16 + data.len()].copy_from_slice(data);
    octets
}

const CONNECT: u32 = 1;
const DISCONNECT: u32 = 2;

fn connect(id: u32, node: &str) -> [u8; 80] {
    let mut info = [0; 44];
    info[..4].copy_from_slice(&id.to_ne_bytes());
    info[12..12 + node.len()].copy_from_slice(node.as_bytes());
    control(0, CONNECT, &info)
}

/// Returns kind and slot of the answer.
fn ask(socket: &UnixDatagram, question: &[u8]) -> (u32, u32) {
    socket.send(question).unwrap();
    let mut answer = [0; 81];
    assert_eq!(socket.recv(&mut answer).unwrap(), 80);
    let number = |at: usize| u32::from_ne_bytes(answer[at..at + 4].try_into().unwrap());
    (number(8), number(16))
}

fn route() -> Route {
    Route::Directed("0,1".parse().unwrap())
}

/// Asks a node for its GUID.
fn guid(transport: IbsimTransport, route: &Route) -> u64 {
    let mut requester = Requester::new(Box::new(transport), 5);
    let exchange = requester
        .exchange(
            Smp::request(Method::GET, AttributeId::NODE_INFO, 0, route),
            route,
            PATIENCE,
        )
        .unwrap();
    let Outcome::Answered { smp, .. } = exchange.outcome else {
        panic!("{:?}", exchange.outcome)
    };
    u64::from_be_bytes(smp.data()[12..20].try_into().unwrap())
}

#[test]
fn packets_go_by_lid_and_by_path() {
    let server = Running::start("go");
    assert_eq!(
        guid(server.connect().unwrap(), &route()),
        0x0200_0000_0000_0200
    );
    assert_eq!(
        guid(server.connect().unwrap(), &Route::Lid(Lid(2))),
        0x0200_0000_0000_0200
    );
    assert_eq!(
        guid(server.connect().unwrap(), &Route::Lid(Lid(1))),
        0x0200_0000_0000_0100
    );
    assert_eq!(server.stop(), Counters::default());
}

#[test]
fn a_trap_comes_to_the_client_that_takes_traps() {
    let server = Running::start("trap");
    let mut transport = server.connect().unwrap();
    // A Set without the M_Key is not answered; its trap arrives instead.
    let set = Smp::request(Method::SET, AttributeId::PORT_INFO, 0, &route());
    transport.send(&set, Lid::PERMISSIVE, PATIENCE).unwrap();
    let received = transport
        .receive(transport.now() + PATIENCE)
        .unwrap()
        .unwrap();
    let trap = Smp::parse(&received.octets).unwrap();
    assert_eq!(
        (trap.method(), trap.attribute()),
        (Method::TRAP, AttributeId::NOTICE)
    );
}

#[test]
fn each_client_gets_its_own_answers() {
    let server = Running::start("own");
    let mut clients: Vec<IbsimTransport> = (0..10).map(|_| server.connect().unwrap()).collect();
    assert!(matches!(
        server.connect(),
        Err(ConnectError::Refused { .. })
    ));
    for (number, client) in clients.iter_mut().enumerate() {
        let mut smp = Smp::request(Method::GET, AttributeId::NODE_INFO, 0, &route());
        smp.set_tid(ib_mad::mad::Tid(number as u64));
        client.send(&smp, Lid::PERMISSIVE, PATIENCE).unwrap();
    }
    for (number, client) in clients.iter_mut().enumerate() {
        let received = client.receive(client.now() + PATIENCE).unwrap().unwrap();
        assert_eq!(Smp::parse(&received.octets).unwrap().tid().0, number as u64);
        assert_eq!(client.receive(client.now()).unwrap(), None);
    }
    // Dropping a client disconnects it and frees its slot.
    clients.pop();
    clients.push(server.connect().unwrap());
}

#[test]
fn clients_that_vanish_make_room() {
    let server = Running::start("vanish");
    for id in 1..=25 {
        let socket = server.control(id);
        let data = UnixDatagram::bind_addr(&server.address(&format!("in{id}"))).unwrap();
        assert_eq!(ask(&socket, &connect(id, "")).0, CONNECT, "client {id}");
        drop((socket, data));
    }
    server.connect().unwrap();
}

#[test]
fn a_client_that_connects_again_takes_its_place() {
    let server = Running::start("again");
    let socket = server.control(1);
    let _data = UnixDatagram::bind_addr(&server.address("in1")).unwrap();
    for _ in 0..25 {
        assert_eq!(ask(&socket, &connect(1, "Hca1")), (CONNECT, 0));
    }
}

#[test]
fn what_is_not_of_the_protocol_is_ignored_and_counted() {
    let server = Running::start("junk");
    let socket = server.control(1);
    let mut wrong_magic = control(0, DISCONNECT, &[]);
    wrong_magic[0] ^= 1;
    let mut long = control(0, DISCONNECT, &[]);
    long[12..16].copy_from_slice(&65_u32.to_ne_bytes());
    let junk: [&[u8]; 6] = [
        &[],
        &[0; 79],
        &[0xff; 5000],
        &wrong_magic,
        &long,
        &control(0, 11, &[]),
    ];
    for octets in junk {
        socket.send(octets).unwrap();
    }
    // Refused rather than ignored, because an answer has to go somewhere: another client's number,
    // no client yet, no such slot.
    assert_eq!(ask(&socket, &connect(2, "")).0, 0);
    assert_eq!(ask(&socket, &control(0, DISCONNECT, &[])).0, 0);
    assert_eq!(ask(&socket, &control(u32::MAX, 7, &[])).0, 0);
    assert_eq!(ask(&socket, &connect(1, "Nowhere")).0, 0);

    let transport = server.connect().unwrap();
    // From a socket that is not the client's, and not of a MAD's length.
    let stranger = UnixDatagram::unbound().unwrap();
    stranger
        .send_to_addr(&[0; 288], &server.address("out0"))
        .unwrap();
    stranger
        .send_to_addr(&[0; 287], &server.address("out0"))
        .unwrap();
    // A client cannot end another one.
    assert_eq!(ask(&socket, &control(0, DISCONNECT, &[])).0, 0);
    assert_eq!(guid(transport, &route()), 0x0200_0000_0000_0200);
    assert_eq!(
        server.stop(),
        Counters {
            ignored: 6 + 2 + 2 + 1,
            dropped: 0
        }
    );
}

#[test]
fn a_client_that_does_not_read_loses_its_packets_and_keeps_no_other_waiting() {
    let server = Running::start("deaf");
    let mut client = server.connect().unwrap();
    let smp = Smp::request(Method::GET, AttributeId::NODE_INFO, 0, &route());
    // Twice as much as the server's socket can have on its way (SO_SNDBUF; a packet takes more of
    // it than its 288 octets).
    let room: usize = std::fs::read_to_string("/proc/sys/net/core/wmem_default")
        .unwrap()
        .trim()
        .parse()
        .unwrap();
    let mut accepted = 0;
    while accepted < 2 * room / 288 {
        match client.send(&smp, Lid::PERMISSIVE, PATIENCE) {
            Ok(()) => accepted += 1,
            Err(_) => thread::yield_now(),
        }
    }
    assert_eq!(
        guid(server.connect().unwrap(), &route()),
        0x0200_0000_0000_0200
    );
    drop(client);
    assert!(server.stop().dropped > 0);
}

#[test]
fn errors_of_connecting_say_what_to_do() {
    let none = IbsimTransport::connect("ib-mad-no-such-server", "Hca1", PATIENCE).unwrap_err();
    assert_eq!(
        none.to_string(),
        "no ibsim server is called \"ib-mad-no-such-server\": start \
         `IBSIM_SOCKNAME=ib-mad-no-such-server ibsim -s NETFILE`, or `validator dut sma --socket \
         ib-mad-no-such-server`, in this network namespace"
    );
    let server = Running::start("errors");
    let no_node = IbsimTransport::connect(&server.name, "Hca2", PATIENCE).unwrap_err();
    assert_eq!(
        no_node.to_string(),
        format!(
            "the fabric of ibsim server {:?} has no node \"Hca2\": name one that it has, such \
             as \"Hca1\"",
            server.name
        )
    );
    for (name, host, message) in [
        ("", "Hca1", "\"\" cannot be the name of an ibsim server: "),
        (
            "a\0b",
            "Hca1",
            "\"a\\0b\" cannot be the name of an ibsim server: ",
        ),
        (
            &"n".repeat(107),
            "Hca1",
            "cannot be the name of an ibsim server: at most 90 octets",
        ),
        ("n", "", "\"\" cannot be a node of ibsim: "),
        (
            "n",
            &"h".repeat(32),
            "cannot be a node of ibsim: at most 31 octets",
        ),
    ] {
        let error = IbsimTransport::connect(name, host, PATIENCE)
            .unwrap_err()
            .to_string();
        assert!(error.contains(message), "{error}");
    }
    assert_eq!(
        Server::bind(&server.name).unwrap_err().to_string(),
        format!(
            "an ibsim server is called {:?} already: choose another name, or end that one",
            server.name
        )
    );
    assert!(matches!(Server::bind(""), Err(BindError::Name(_))));
}

#[test]
fn a_server_that_does_not_answer_is_not_waited_for_for_ever() {
    let name = format!("ib-mad-mute-{}", process::id());
    let address = SocketAddr::from_abstract_name(format!("{name}:ctl\0")).unwrap();
    let mute = UnixDatagram::bind_addr(&address).unwrap();
    let error = IbsimTransport::connect(&name, "Hca1", Duration::from_millis(20)).unwrap_err();
    assert!(
        matches!(
            &error,
            ConnectError::TimedOut { timeout, .. } if *timeout == Duration::from_millis(20)
        ),
        "{error}"
    );
    // An answer outside the protocol is another error.
    let asked = thread::spawn(move || {
        let mut octets = [0; 80];
        // The first is the question above.
        mute.recv_from(&mut octets).unwrap();
        let (_, from) = mute.recv_from(&mut octets).unwrap();
        mute.send_to_addr(&[0; 80], &from).unwrap();
    });
    let error = IbsimTransport::connect(&name, "Hca1", PATIENCE).unwrap_err();
    assert!(matches!(error, ConnectError::Protocol { .. }), "{error}");
    asked.join().unwrap();
}

#[test]
fn a_server_that_is_gone_is_an_error_of_sending() {
    let server = Running::start("gone");
    let mut transport = server.connect().unwrap();
    server.stop();
    let smp = Smp::request(Method::GET, AttributeId::NODE_INFO, 0, &route());
    assert!(matches!(
        transport.send(&smp, Lid::PERMISSIVE, PATIENCE),
        Err(SendError::System { .. })
    ));
}

#[test]
fn a_wake_ends_every_wait_until_it_is_taken_away() {
    let server = Running::start("wake");
    let mut transport = server.connect().unwrap();
    let (wake, mut waker) = pipe().unwrap();
    transport.set_wake(Some(wake.into()));
    waker.write_all(&[1]).unwrap();
    for _ in 0..2 {
        assert!(matches!(
            transport.receive(transport.now() + PATIENCE),
            Err(ReceiveError::Interrupted)
        ));
    }
    transport.set_wake(None);
    let before = transport.now();
    assert_eq!(
        transport
            .receive(before + Duration::from_millis(5))
            .unwrap(),
        None
    );
    assert!(transport.now() >= before + Duration::from_millis(5));
}
