//! A client of ibsim or of our own server.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixDatagram;
use std::time::Duration;

use super::super::wait::{self, Waiter};
use super::super::{Overslept, ReceiveError, Received, SendError, Time, Transport};
use super::address;
use super::wire::{ClientInfo, Control, Datagram, Kind};
use crate::mad::Lid;
use crate::smp::Smp;

/// Longest wait for a server's answer when disconnecting.
const FAREWELL: Duration = Duration::from_secs(1);

/// Error of connecting to a server of ibsim's protocol.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The name does not fit into a socket's address.
    #[error("{0:?} cannot be the name of an ibsim server: at most 90 octets, none of them 0")]
    ServerName(String),
    /// The name does not fit into a datagram.
    #[error("{0:?} cannot be a node of ibsim: at most 31 octets, none of them 0")]
    NodeName(String),
    /// No server has bound the address.
    #[error(
        "no ibsim server is called {0:?}: start `IBSIM_SOCKNAME={0} ibsim -s NETFILE`, or \
         `validator dut sma --socket {0}`, in this network namespace"
    )]
    NoServer(String),
    /// The server accepts clients, but has no such node.
    #[error(
        "the fabric of ibsim server {server:?} has no node {host:?}: name one that it has, such as \
         {default:?}"
    )]
    NoNode {
        /// Its name.
        server: String,
        /// The node asked for.
        host: String,
        /// The node given to clients that name none.
        default: String,
    },
    /// The server accepts no further client.
    #[error(
        "ibsim server {0:?} refuses a client: it has room for ten; end one of them, or start the \
         server anew"
    )]
    Refused(String),
    /// The server did not answer.
    #[error(
        "ibsim server {server:?} did not answer within {timeout:?}: is it stopped, or not started \
         by `-s`?"
    )]
    TimedOut {
        /// Its name.
        server: String,
        /// Time that the client waited.
        timeout: Duration,
    },
    /// The answer does not follow the protocol.
    #[error(
        "ibsim server {0:?} gave an answer that is not of ibsim 0.10's protocol: use another server"
    )]
    Protocol(String),
    /// The system failed.
    #[error("ibsim server {server:?} cannot be reached: {source}")]
    System {
        /// Its name.
        server: String,
        /// Error of the system.
        source: io::Error,
    },
}

/// A node of an ibsim fabric; connected until it is dropped.
#[derive(Debug)]
pub struct IbsimTransport {
    control: ControlSocket,
    data: UnixDatagram,
    host: String,
    slot: u32,
    keeps_tids: bool,
    waiter: Waiter,
}

impl IbsimTransport {
    /// Connects to the server `server` (IBSIM_SOCKNAME) as its node `host` (SIM_HOST). Waits at
    /// most `timeout` for each answer.
    pub fn connect(server: &str, host: &str, timeout: Duration) -> Result<Self, ConnectError> {
        let system = |source| ConnectError::System {
            server: server.to_owned(),
            source,
        };
        if host.is_empty() || host.contains('\0') || host.len() >= ClientInfo::NAME {
            return Err(ConnectError::NodeName(host.to_owned()));
        }
        let (control, data, id) = bind(server)?;
        control
            .connect_addr(&address(server, "ctl").map_err(system)?)
            .map_err(|error| match error.kind() {
                io::ErrorKind::ConnectionRefused => ConnectError::NoServer(server.to_owned()),
                _ => system(error),
            })?;
        let control = ControlSocket {
            socket: control,
            server: server.to_owned(),
            timeout,
        };
        // Traps go to clients that are subnet managers. Stock ibsim accepts one such client per
        // node; without traps the transport works as well.
        let attached = match control.attach(id, host, true)? {
            None => control.attach(id, host, false)?,
            attached => attached,
        };
        let Some(info) = attached else {
            // A server refuses an unknown node and an eleventh client alike; a request that names
            // no node tells the two apart.
            let Some(info) = control.attach(id, "", false)? else {
                return Err(ConnectError::Refused(control.server));
            };
            control.ask(Control::new(info.id, Kind::Disconnect))?;
            let default = String::from_utf8_lossy(&info.node).into_owned();
            return Err(ConnectError::NoNode {
                server: control.server,
                host: host.to_owned(),
                default,
            });
        };
        data.set_nonblocking(true).map_err(system)?;
        let connected = Self {
            control,
            data,
            host: host.to_owned(),
            slot: info.id,
            keeps_tids: false,
            waiter: Waiter::new(),
        };
        connected
            .data
            .connect_addr(&address(server, &format!("out{}", info.id)).map_err(system)?)
            .map_err(system)?;
        Ok(connected)
    }

    /// Says that the server leaves all of a TID as it is: [`Server`](super::Server) does. Stock
    /// ibsim 0.10 makes the upper 16 bits 0.
    pub fn keeping_tids(mut self) -> Self {
        self.keeps_tids = true;
        self
    }
}

/// Binds the sockets for control and data. Returns them with the client's number in their
/// addresses.
fn bind(server: &str) -> Result<(UnixDatagram, UnixDatagram, u32), ConnectError> {
    let system = |source| ConnectError::System {
        server: server.to_owned(),
        source,
    };
    let bind = |socket: &str, id: u32| {
        let address = address(server, &format!("{socket}{id}"))
            .map_err(|_| ConnectError::ServerName(server.to_owned()))?;
        match UnixDatagram::bind_addr(&address) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => Ok(None),
            other => other.map(Some).map_err(system),
        }
    };
    if server.is_empty() || server.contains('\0') {
        return Err(ConnectError::ServerName(server.to_owned()));
    }
    // Clients that load libumad2sim use their process id. Above those, each of our processes has
    // 2^31 / 2^22 numbers.
    const MOST_PROCESSES: u32 = 1 << 22;
    let process = std::process::id() % MOST_PROCESSES;
    for id in (1..512).map(|turn| turn * MOST_PROCESSES + process) {
        if let Some(control) = bind("ctl", id)?
            && let Some(data) = bind("in", id)?
        {
            return Ok((control, data, id));
        }
    }
    Err(system(io::ErrorKind::AddrInUse.into()))
}

#[derive(Debug)]
struct ControlSocket {
    socket: UnixDatagram,
    server: String,
    timeout: Duration,
}

impl ControlSocket {
    /// Connects client `id` to the node `host`; `None` if the server refuses.
    fn attach(&self, id: u32, host: &str, is_sm: bool) -> Result<Option<ClientInfo>, ConnectError> {
        let mut connect = Control::new(0, Kind::Connect);
        let info = ClientInfo {
            id,
            qp: 0,
            is_sm,
            node: host.into(),
        };
        connect.data = info
            .data()
            .ok_or_else(|| ConnectError::NodeName(host.to_owned()))?;
        let answer = self.ask(connect)?;
        match answer.kind {
            Kind::Connect => Ok(Some(ClientInfo::from_data(&answer.data))),
            Kind::Error => Ok(None),
            _ => Err(ConnectError::Protocol(self.server.clone())),
        }
    }

    fn ask(&self, question: Control) -> Result<Control, ConnectError> {
        let failed = |source: io::Error| match source.kind() {
            io::ErrorKind::WouldBlock => ConnectError::TimedOut {
                server: self.server.clone(),
                timeout: self.timeout,
            },
            _ => ConnectError::System {
                server: self.server.clone(),
                source,
            },
        };
        // A time-out of 0 would wait for ever.
        let timeout = Some(self.timeout.max(Duration::from_micros(1)));
        self.socket
            .set_write_timeout(timeout)
            .and_then(|()| self.socket.set_read_timeout(timeout))
            .map_err(failed)?;
        self.socket.send(&question.octets()).map_err(failed)?;
        let mut octets = [0; Control::LENGTH + 1];
        let length = loop {
            match self.socket.recv(&mut octets) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => break other.map_err(failed)?,
            }
        };
        Control::parse(&octets[..length]).ok_or_else(|| ConnectError::Protocol(self.server.clone()))
    }
}

impl Drop for IbsimTransport {
    fn drop(&mut self) {
        // A server that is gone or does not answer has nothing to disconnect.
        self.control.timeout = self.control.timeout.min(FAREWELL);
        let _ = self.control.ask(Control::new(self.slot, Kind::Disconnect));
    }
}

impl Transport for IbsimTransport {
    fn name(&self) -> String {
        format!("ibsim {} node {}", self.control.server, self.host)
    }

    fn now(&self) -> Time {
        self.waiter.now()
    }

    fn send(&mut self, smp: &Smp, to: Lid, _wait: Duration) -> Result<(), SendError> {
        // ibsim replaces LID 0 by the node's LID, but not in a directed route.
        let (to, from) = if smp.is_directed() {
            (Lid::PERMISSIVE, Lid::PERMISSIVE)
        } else {
            (to, Lid(0))
        };
        let datagram = Datagram {
            to,
            from,
            mad: smp.octets().to_vec(),
        };
        match self.data.send(&datagram.octets()) {
            Ok(_) => Ok(()),
            Err(source) => Err(SendError::System {
                transport: self.name(),
                source,
            }),
        }
    }

    fn keeps_tids(&self) -> bool {
        self.keeps_tids
    }

    fn receive(&mut self, deadline: Time) -> Result<Option<Received>, ReceiveError> {
        let failed = |source| ReceiveError::System {
            transport: self.name(),
            source,
        };
        while self
            .waiter
            .readable(self.data.as_fd(), deadline, || self.name())?
        {
            let mut octets = [0; Datagram::LENGTH + 1];
            let length = match self.data.recv(&mut octets) {
                Ok(length) => length,
                Err(error) if wait::is_passing(&error) => continue,
                Err(error) => return Err(failed(error)),
            };
            let Some(datagram) = Datagram::parse(&octets[..length]) else {
                let found = format!(
                    "a datagram of {} octets expected, found one of {length}",
                    Datagram::LENGTH
                );
                return Err(failed(io::Error::new(io::ErrorKind::InvalidData, found)));
            };
            return Ok(Some(Received {
                at: self.now(),
                octets: datagram.mad,
            }));
        }
        Ok(None)
    }

    fn shows_unmatched(&self) -> bool {
        true
    }

    fn take_overslept(&mut self) -> Vec<Overslept> {
        self.waiter.take_overslept()
    }

    fn set_wake(&mut self, wake: Option<OwnedFd>) {
        self.waiter.wake = wake;
    }
}
