//! Exercises a client of ibsim's protocol with datagrams of a server that keeps to nothing.

use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::Duration;

use ib_mad::mad::LENGTH;
use ib_mad::transport::Transport;
use ib_mad::transport::ibsim::IbsimTransport;

const MAGIC: u32 = 0xdead_beef;
/// Octets of a control datagram, and of one with a packet.
const CONTROL: usize = 80;
const DATA: usize = 32 + LENGTH;
/// No question is left without an answer, so that nothing takes as long.
const PATIENCE: Duration = Duration::from_secs(60);

/// A datagram with a packet: its octets, whether the client took it, and the length of the packet
/// that the client read, if it read any.
struct Delivered {
    octets: usize,
    sent: bool,
    read: Option<usize>,
}

/// Answers a client with datagrams, and sends it packets once it is connected. Each of `octets` has
/// a head of two octets: what it is, and its length.
pub fn exercise(octets: &[u8]) {
    static SERVERS: AtomicU32 = AtomicU32::new(0);
    let number = SERVERS.fetch_add(1, Ordering::Relaxed);
    let name = format!("answers-{}-{number}", process::id());
    let bind = |socket: &str| {
        let address = format!("{name}:{socket}\0");
        let address = SocketAddr::from_abstract_name(address).expect("a short name");
        let bound = UnixDatagram::bind_addr(&address).expect("an address of its own");
        (bound, address)
    };
    let (control, address) = bind("ctl");
    let slots: Vec<_> = (0..10).map(|slot| bind(&format!("out{slot}")).0).collect();
    let (answers, packets) = datagrams(octets);
    let (addresses, clients) = channel();
    let delivered = thread::scope(|scope| {
        scope.spawn(move || answer(&control, answers, &addresses));
        let delivered = match IbsimTransport::connect(&name, "Hca1", PATIENCE) {
            Ok(mut client) => {
                let address = clients.try_iter().last().expect("it has asked");
                deliver(&mut client, &address, &slots, &packets)
            }
            Err(_) => Vec::new(),
        };
        // An empty question ends the server.
        let end = UnixDatagram::unbound().expect("a socket");
        end.send_to_addr(&[], &address)
            .expect("the server is there");
        delivered
    });
    for Delivered { octets, sent, read } in delivered {
        assert_eq!(read.is_some(), sent && octets == DATA, "{octets} octets");
        assert!(read.is_none_or(|length| length <= LENGTH), "{read:?}");
    }
}

/// Answers each question, after the last of the answers by refusing it.
fn answer(control: &UnixDatagram, answers: Vec<Vec<u8>>, addresses: &Sender<SocketAddr>) {
    let mut answers = answers.into_iter();
    loop {
        let (length, client) = control.recv_from(&mut [0; CONTROL]).expect("a socket");
        if length == 0 {
            return;
        }
        // First: once it has its answer, the client is looked for.
        let _ = addresses.send(data_address(&client));
        let answer = answers.next().unwrap_or_else(|| control_datagram(&[]));
        control.send_to_addr(&answer, &client).expect("it waits");
    }
}

/// The address to which packets for a client go.
fn data_address(client: &SocketAddr) -> SocketAddr {
    let name = client.as_abstract_name().expect("a client has a name");
    let name = String::from_utf8_lossy(name).replacen(":ctl", ":in", 1);
    SocketAddr::from_abstract_name(name).expect("a short name")
}

/// Sends packets from every slot, of which the client has one at most.
fn deliver(
    client: &mut IbsimTransport,
    address: &SocketAddr,
    slots: &[UnixDatagram],
    packets: &[Vec<u8>],
) -> Vec<Delivered> {
    let deliver = |packet: &Vec<u8>| {
        let takes = |slot: &&UnixDatagram| slot.send_to_addr(packet, address).is_ok();
        let sent = slots.iter().filter(takes).count() > 0;
        let now = client.now();
        let received = client.receive(now).ok().flatten();
        Delivered {
            octets: packet.len(),
            sent,
            read: received.map(|received| received.octets.len()),
        }
    };
    packets.iter().map(deliver).collect()
}

/// Answers and packets, as they come or with what makes them such.
fn datagrams(octets: &[u8]) -> (Vec<Vec<u8>>, Vec<Vec<u8>>) {
    let (mut answers, mut packets) = (Vec::new(), Vec::new());
    let mut rest = octets;
    while let [what, length, more @ ..] = rest {
        let (body, more) = more.split_at(usize::from(*length).min(more.len()));
        rest = more;
        match what % 4 {
            0 => answers.push(body.to_vec()),
            1 => answers.push(control_datagram(body)),
            2 => packets.push(body.to_vec()),
            _ => {
                let mut packet = body.to_vec();
                packet.resize(DATA, 0);
                packets.push(packet);
            }
        }
    }
    (answers, packets)
}

/// Magic, slot, kind and length before the data.
fn control_datagram(body: &[u8]) -> Vec<u8> {
    let (kind, data) = match body {
        [kind, data @ ..] => (*kind, data),
        [] => (0, body),
    };
    let head = [MAGIC, 0, u32::from(kind) % 16, 64];
    let mut datagram: Vec<u8> = head.iter().flat_map(|word| word.to_ne_bytes()).collect();
    datagram.extend(data);
    datagram.resize(CONTROL, 0);
    datagram
}
