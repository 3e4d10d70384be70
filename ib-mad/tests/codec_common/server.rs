//! Exercises a server of ibsim's protocol with datagrams of a client that keeps to nothing.

use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};

use ib_mad::mad::{AttributeId, Lid};
use ib_mad::smp::DATA;
use ib_mad::transport::ibsim::{Host, Server};

/// The client's number in the addresses of its sockets.
const ID: u32 = 7;
const MAGIC: u32 = 0xdead_beef;

/// A node without attributes of its own.
struct Node;

impl Host for Node {
    fn name(&self) -> &str {
        "Hca1"
    }

    fn attribute(&mut self, attribute: AttributeId, _: u32) -> Option<[u8; DATA]> {
        (attribute != AttributeId::NODE_DESCRIPTION).then_some([0x5a; DATA])
    }
}

/// Sends datagrams to a server of its own. Each of `octets` has a head of two octets: where it
/// goes, and its length. Those for the control socket may get what makes them control datagrams.
pub fn exercise(octets: &[u8]) {
    static SERVERS: AtomicU32 = AtomicU32::new(0);
    let number = SERVERS.fetch_add(1, Ordering::Relaxed);
    let name = format!("exercise-{}-{number}", process::id());
    let mut server = Server::bind(&name).expect("a name of its own");
    let address = |socket: String| {
        SocketAddr::from_abstract_name(format!("{name}:{socket}\0")).expect("a short name")
    };
    let bind = |socket: String| {
        let bound = UnixDatagram::bind_addr(&address(socket)).expect("an address of its own");
        bound.set_nonblocking(true).expect("a socket");
        bound
    };
    let (control, data) = (bind(format!("ctl{ID}")), bind(format!("in{ID}")));
    let mut rest = octets;
    while let [to, length, more @ ..] = rest {
        let (body, more) = more.split_at(usize::from(*length).min(more.len()));
        rest = more;
        let (socket, destination, datagram) = match to % 16 {
            0 => (&control, "ctl".to_owned(), body.to_vec()),
            1..=4 => (&control, "ctl".to_owned(), control_datagram(body)),
            slot => (&data, format!("out{}", slot % 10), data_datagram(body)),
        };
        // A socket of a slot may not be served.
        let _ = socket.send_to_addr(&datagram, &address(destination));
        let mut packets = Vec::new();
        server.receive(&mut Node, &mut packets).expect("a socket");
        for packet in packets {
            assert!(!format!("{packet:?}").is_empty());
            server.deliver(packet.client, Lid(1), &packet.smp.octets()[..]);
        }
        let mut answer = [0; 512];
        for socket in [&control, &data] {
            while let Ok(length) = socket.recv(&mut answer) {
                assert!(matches!(length, 80 | 288), "{length} octets");
            }
        }
    }
    assert!(server.sockets().count() <= 11);
}

/// Magic, slot, kind and length before the data: of a client with the right number.
fn control_datagram(body: &[u8]) -> Vec<u8> {
    let [kind, slot, data @ ..] = body else {
        return Vec::new();
    };
    let head = [MAGIC, u32::from(*slot), u32::from(*kind) % 16, 64];
    let mut datagram: Vec<u8> = head.iter().flat_map(|word| word.to_ne_bytes()).collect();
    datagram.extend(ID.to_ne_bytes());
    datagram.extend(data);
    datagram.resize(80, 0);
    datagram
}

/// A packet with its addresses, as long as the server takes it.
fn data_datagram(body: &[u8]) -> Vec<u8> {
    let mut datagram = vec![0; 32 + 256];
    datagram[30] = 1;
    datagram[32..34].copy_from_slice(&[1, 0x81]);
    let packet = datagram[34..].iter_mut();
    packet.zip(body).for_each(|(to, from)| *to = *from);
    datagram
}
