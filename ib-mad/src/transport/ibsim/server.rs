//! The server side, for a fabric with one node that clients attach to. The server owns the sockets
//! and is polled; it never waits.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::{SocketAddr, UnixDatagram};

use super::address;
use super::wire::{CONTROL_DATA, ClientInfo, Control, Datagram, Kind, array_at, u32_at, vendor};
use crate::attr::{Attribute, NodeInfo};
use crate::mad::{AttributeId, Lid, Method};
use crate::smp::{DATA, Smp};

/// Most clients at a time. It is ibsim's limit; libumad2sim cannot handle more.
const SLOTS: usize = 10;
/// Key of the default partition.
const DEFAULT_PKEY: [u8; 2] = [0xff, 0xff];
/// Most datagrams discarded at once.
const MAX_STALE: usize = 1000;

/// Error of starting a server.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// The name does not fit into a socket's address.
    #[error("{0:?} cannot be the name of an ibsim server: 1 to 90 octets, none of them 0")]
    Name(String),
    /// Another server has this name.
    #[error("an ibsim server is called {0:?} already: choose another name, or end that one")]
    InUse(String),
    /// The system failed.
    #[error("the sockets of ibsim server {name:?} cannot be made: {source}")]
    System {
        /// Its name.
        name: String,
        /// Error of the system.
        source: io::Error,
    },
}

/// The node that clients attach to.
pub trait Host {
    /// Its name (SIM_HOST).
    fn name(&self) -> &str;

    /// Current value of one of its attributes; `None` if the node does not have it.
    fn attribute(&mut self, attribute: AttributeId, modifier: u32) -> Option<[u8; DATA]>;
}

/// A client while it is connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientId {
    connection: u64,
}

/// A packet that a client sends.
#[derive(Clone, Debug)]
pub struct Packet {
    /// The client.
    pub client: ClientId,
    /// Destination, if LID-routed.
    pub to: Lid,
    /// The packet.
    pub smp: Smp,
}

/// Counters of discarded datagrams and packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Datagrams that break the protocol, come from strangers, or hold no SMP.
    pub ignored: u64,
    /// Packets dropped because their client's queue was full.
    pub dropped: u64,
}

#[derive(Debug)]
struct Client {
    connection: u64,
    control: SocketAddr,
    data: SocketAddr,
    is_sm: bool,
}

/// Serves ibsim's protocol.
#[derive(Debug)]
pub struct Server {
    name: String,
    control: UnixDatagram,
    data: [UnixDatagram; SLOTS],
    clients: [Option<Client>; SLOTS],
    connections: u64,
    counters: Counters,
}

impl Server {
    /// Binds the sockets of a server with this name (IBSIM_SOCKNAME) in the network namespace of
    /// the calling thread.
    pub fn bind(name: &str) -> Result<Self, BindError> {
        if name.is_empty() || name.contains('\0') {
            return Err(BindError::Name(name.to_owned()));
        }
        let bind = |socket: &str| {
            let address = address(name, socket).map_err(|_| BindError::Name(name.to_owned()))?;
            let bound = UnixDatagram::bind_addr(&address)
                .and_then(|socket| socket.set_nonblocking(true).map(|()| socket));
            bound.map_err(|source| match source.kind() {
                io::ErrorKind::AddrInUse => BindError::InUse(name.to_owned()),
                _ => BindError::System {
                    name: name.to_owned(),
                    source,
                },
            })
        };
        let data: Vec<UnixDatagram> = (0..SLOTS)
            .map(|slot| bind(&format!("out{slot}")))
            .collect::<Result<_, _>>()?;
        Ok(Self {
            name: name.to_owned(),
            // Bound last: a client that finds this socket finds the others too.
            control: bind("ctl")?,
            data: data.try_into().expect("as many as there are slots"),
            clients: Default::default(),
            connections: 0,
            counters: Counters::default(),
        })
    }

    /// The sockets to poll: [`Server::receive`] has work when one of them is readable.
    pub fn sockets(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let connected = self
            .data
            .iter()
            .zip(&self.clients)
            .filter(|(_, client)| client.is_some());
        [self.control.as_fd()]
            .into_iter()
            .chain(connected.map(|(socket, _)| socket.as_fd()))
    }

    /// Returns the counters so far.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Handles waiting datagrams, at most one per socket, so that no client starves another.
    /// Packets are appended to `packets`.
    pub fn receive(&mut self, host: &mut impl Host, packets: &mut Vec<Packet>) -> io::Result<()> {
        let mut octets = [0; Control::LENGTH + 1];
        if let Some((length, from)) = receive(&self.control, &mut octets)? {
            match Control::parse(&octets[..length]) {
                Some(control) => self.control(control, &from, host),
                None => self.counters.ignored += 1,
            }
        }
        for slot in 0..SLOTS {
            let Some(client) = &self.clients[slot] else {
                continue;
            };
            let mut octets = [0; Datagram::LENGTH + 1];
            let Some((length, from)) = receive(&self.data[slot], &mut octets)? else {
                continue;
            };
            let datagram =
                Datagram::parse(&octets[..length]).filter(|_| is_same(&from, &client.data));
            match datagram.and_then(|datagram| Some((datagram.to, Smp::parse(&datagram.mad).ok()?)))
            {
                Some((to, smp)) => {
                    let client = ClientId {
                        connection: client.connection,
                    };
                    packets.push(Packet { client, to, smp });
                }
                None => self.counters.ignored += 1,
            }
        }
        Ok(())
    }

    /// Delivers a packet of the fabric that a packet of `client` caused. A response goes to that
    /// client. As with ibsim, a trap or another node's request goes to the clients that are subnet
    /// managers. Others may fail on it: smpdump takes it for its response, and libumad2sim crashes
    /// without an agent for its class.
    pub fn deliver(&mut self, client: ClientId, from: Lid, octets: &[u8]) {
        let datagram = Datagram {
            to: Lid(0),
            from,
            mad: octets.to_vec(),
        }
        .octets();
        let is_response = octets
            .get(3)
            .is_none_or(|method| Method(*method).is_response());
        for slot in 0..SLOTS {
            let takes = |taker: &Client| {
                if is_response {
                    taker.connection == client.connection
                } else {
                    taker.is_sm
                }
            };
            if self.clients[slot].as_ref().is_some_and(takes) {
                self.send(slot, &datagram);
            }
        }
    }

    fn send(&mut self, slot: usize, datagram: &[u8]) {
        let Some(client) = &self.clients[slot] else {
            return;
        };
        match self.data[slot].send_to_addr(datagram, &client.data) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.counters.dropped += 1,
            // The client has ended without disconnecting.
            Err(_) => self.clients[slot] = None,
        }
    }

    fn control(&mut self, mut control: Control, from: &SocketAddr, host: &mut impl Host) {
        let answer = match control.kind {
            Kind::Connect => self.connect(&mut control, from, host),
            _ => self.answer(&mut control, from, host),
        };
        if answer.is_none() {
            control.kind = Kind::Error;
        }
        // A client that does not wait for the answer does not get it.
        if self.control.send_to_addr(&control.octets(), from).is_err() {
            self.counters.dropped += 1;
        }
    }

    /// Connects a client and writes the answer to `control`; `None` refuses.
    fn connect(
        &mut self,
        control: &mut Control,
        from: &SocketAddr,
        host: &impl Host,
    ) -> Option<()> {
        let info = ClientInfo::from_data(&control.data);
        let expected = address(&self.name, &format!("ctl{}", info.id)).ok()?;
        if !is_same(from, &expected) {
            self.counters.ignored += 1;
            return None;
        }
        if !info.node.is_empty() && info.node != host.name().as_bytes() {
            return None;
        }
        let data = address(&self.name, &format!("in{}", info.id)).ok()?;
        self.forget_the_vanished(&data);
        let slot = self.clients.iter().position(Option::is_none)?;
        // Discards datagrams sent to an earlier client's socket.
        for _ in 0..MAX_STALE {
            match receive(&self.data[slot], &mut [0; 1]) {
                Ok(Some(_)) => self.counters.ignored += 1,
                _ => break,
            }
        }
        self.connections += 1;
        self.clients[slot] = Some(Client {
            connection: self.connections,
            control: expected,
            data,
            is_sm: info.is_sm,
        });
        control.slot = slot as u32;
        control.data = ClientInfo {
            id: slot as u32,
            node: host.name().into(),
            ..info
        }
        .data()?;
        Some(())
    }

    /// Frees the slots of clients that ended without disconnecting, and of an earlier client with
    /// the address `data`.
    fn forget_the_vanished(&mut self, data: &SocketAddr) {
        for slot in &mut self.clients {
            // A client accepts datagrams from its own data socket only: a living one refuses the
            // probe with another error (EPERM).
            let is_gone = |client: &Client| {
                let probe =
                    UnixDatagram::unbound().and_then(|probe| probe.connect_addr(&client.data));
                probe.is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
            };
            if slot
                .as_ref()
                .is_some_and(|client| is_same(&client.data, data) || is_gone(client))
            {
                *slot = None;
            }
        }
    }

    /// Writes the answer to `control`; `None` refuses.
    fn answer(
        &mut self,
        control: &mut Control,
        from: &SocketAddr,
        host: &mut impl Host,
    ) -> Option<()> {
        let slot = control.slot as usize;
        let client = self.clients.get_mut(slot)?.as_mut();
        let Some(client) = client.filter(|client| is_same(&client.control, from)) else {
            self.counters.ignored += 1;
            return None;
        };
        let mut data = [0; CONTROL_DATA];
        match control.kind {
            Kind::Error | Kind::Connect => return None,
            Kind::Disconnect => self.clients[slot] = None,
            Kind::SetIsSm => client.is_sm = u32_at(&control.data, 0) != 0,
            Kind::GetNodeInfo => data = host.attribute(AttributeId::NODE_INFO, 0)?,
            Kind::GetPortInfo => {
                data = host.attribute(AttributeId::PORT_INFO, control.data[0].into())?
            }
            Kind::GetPkeys => data[..2].copy_from_slice(&DEFAULT_PKEY),
            Kind::GetVendor => {
                let info = NodeInfo::from_data(host.attribute(NodeInfo::ID, 0)?);
                data = vendor(info.vendor_id(), info.device_id().into(), info.revision());
            }
            Kind::GetGuid => {
                data[..8].copy_from_slice(&host.attribute(AttributeId::NODE_INFO, 0)?[12..20])
            }
            Kind::GetGid => {
                data[8..16].copy_from_slice(&host.attribute(AttributeId::NODE_INFO, 0)?[12..20]);
                data[..8].copy_from_slice(&host.attribute(AttributeId::PORT_INFO, 0)?[8..16]);
            }
            Kind::GetPort => {
                let info = host.attribute(AttributeId::PORT_INFO, 0)?;
                data[..2].copy_from_slice(&u16::from_be_bytes(array_at(&info, 16)).to_ne_bytes());
                data[2] = info[32] & 0xf;
            }
        }
        control.data = data;
        Some(())
    }
}

/// Returns the next datagram's length, cut to `octets`, and its sender.
fn receive(socket: &UnixDatagram, octets: &mut [u8]) -> io::Result<Option<(usize, SocketAddr)>> {
    match socket.recv_from(octets) {
        Ok(received) => Ok(Some(received)),
        Err(error) if super::super::wait::is_passing(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

fn is_same(one: &SocketAddr, other: &SocketAddr) -> bool {
    use std::os::linux::net::SocketAddrExt;
    one.as_abstract_name()
        .is_some_and(|name| other.as_abstract_name() == Some(name))
}
