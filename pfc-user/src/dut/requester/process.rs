//! Puts the model on an interface of the current network namespace, and serves the agent's
//! protocol.

use std::env;
use std::io::{self, PipeReader, PipeWriter, Read as _, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, UdpSocket};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use pfc_ebpf::wire::roce::UDP_PORT;
use tokio::sync::oneshot;

use super::args::RequesterArgs;
use super::model::{Adapter, Model};
use crate::agent::backend::Backend;
use crate::agent::protocol::{Channel, Completion, Device, Failure, OpenChannel, QueuePair, Read};
use crate::agent::server::{self, ServerOptions};
use crate::driver::netns::Namespace;
use crate::driver::{clock, link, realtime};
use crate::dut::socket::{Batch, PacketSocket, Received};
use crate::dut::stop::Stop;
use crate::fault::requester::Fault;

/// Octets of an interface's MTU that no payload gets: the longest headers, GRH, UDP, BTH, XRCETH
/// and AtomicETH, and the ICRC.
const HEADERS: u32 = 40 + 8 + 12 + 4 + 28 + 4;

/// Options of the process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequesterOptions {
    /// Interface.
    pub interface: String,
    /// The adapter's address.
    pub address: IpAddr,
    /// Where its frames go.
    pub peer_mac: [u8; 6],
    /// Where the tester connects to.
    pub listen: SocketAddr,
    /// Environment variable with the token that the tester must know.
    pub token_env: Option<String>,
    /// Faults in force.
    pub faults: Vec<Fault>,
}

/// The model, which the port's thread and the agent's share.
struct Shared {
    model: Mutex<Model>,
    /// There may be completions.
    completed: Condvar,
    /// Wakes the port's thread.
    wake: PipeWriter,
    /// The port's thread is to end.
    over: AtomicBool,
}

impl Shared {
    fn model(&self) -> MutexGuard<'_, Model> {
        // A panic elsewhere ends the process by itself.
        self.model.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wake(&self) {
        // The reader lives as long as the process serves, and empties the pipe.
        let _ = (&self.wake).write_all(&[0]);
    }
}

/// The model as a client's backend.
struct Handle(Arc<Shared>);

impl Backend for Handle {
    fn device(&self) -> Device {
        self.0.model().device()
    }

    fn open(&mut self, channel: &OpenChannel) -> Result<Channel, Failure> {
        self.0.model().open(clock::now(), channel)
    }

    fn post_read(&mut self, read: &Read) -> Result<(), Failure> {
        self.0.model().post_read(clock::now(), read)?;
        self.0.wake();
        Ok(())
    }

    fn poll(&mut self, wait: Duration) -> Result<Vec<Completion>, Failure> {
        let start = Instant::now();
        let mut model = self.0.model();
        loop {
            // Before the model is looked at: "none" is said of the whole wait.
            let left = wait.saturating_sub(start.elapsed());
            let completions = model.completions(clock::now());
            if !completions.is_empty() || left.is_zero() {
                return Ok(completions);
            }
            model = self
                .0
                .completed
                .wait_timeout(model, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }

    fn query(&mut self) -> Result<QueuePair, Failure> {
        self.0.model().query()
    }

    fn close(&mut self) -> Result<(), Failure> {
        self.0.model().close();
        Ok(())
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.0.model().close();
    }
}

/// The port's frames, counted.
#[derive(Clone, Copy, Debug, Default)]
struct Counters {
    sent: u64,
    refused: u64,
}

/// Moves frames between the model and the interface until one of `stop` has an event, or it is over
/// otherwise.
fn serve_port(
    shared: &Shared,
    socket: &PacketSocket,
    mut woken: PipeReader,
    stop: &[PollFd<'_>],
) -> Result<Counters> {
    let mut counters = Counters::default();
    let (mut batch, mut received) = (Batch::new(), Vec::new());
    loop {
        let more = socket
            .receive(&mut batch, &mut received)
            .context("the port takes no more frames")?;
        let next = {
            let mut model = shared.model();
            for Received { frame, .. } in received.drain(..) {
                model.receive(clock::now(), &frame);
            }
            // The model takes the time at which there are no more for the one at which they have
            // left.
            while let Some(frame) = model.poll_transmit(clock::now()) {
                match socket.send(&[&frame]) {
                    (0, _) => counters.refused += 1,
                    _ => counters.sent += 1,
                }
            }
            model.next_event()
        };
        shared.completed.notify_all();
        let wait = if more {
            Some(0)
        } else {
            next.map(|next| next.saturating_sub(clock::now()))
        };
        let mut events = stop.to_vec();
        events.extend([socket.as_fd(), woken.as_fd()].map(|fd| PollFd::new(fd, PollFlags::POLLIN)));
        match ppoll(
            &mut events,
            wait.map(|wait| TimeSpec::from_duration(Duration::from_nanos(wait))),
            None,
        ) {
            Ok(_) | Err(nix::Error::EINTR) => {}
            Err(error) => return Err(error).context("the port cannot wait"),
        }
        let ready = |event: &PollFd<'_>| event.any().unwrap_or(false);
        if events[..stop.len()].iter().any(ready) || shared.over.load(Ordering::Acquire) {
            return Ok(counters);
        }
        if events.last().is_some_and(ready) {
            woken
                .read(&mut [0; 64])
                .context("the port cannot be woken")?;
        }
    }
}

/// Keeps the kernel from answering the tester's frames with ICMP's port unreachable: what comes to
/// this socket is left there.
fn take_port(address: IpAddr) -> Result<Option<UdpSocket>> {
    match UdpSocket::bind((address, UDP_PORT)) {
        Ok(socket) => Ok(Some(socket)),
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
            bail!(
                "UDP port {UDP_PORT} of {address} is taken: expected no other RoCEv2 device with \
                 that address, end it or choose another"
            )
        }
        // Where the address is not the host's own, its kernel answers nothing.
        Err(_) => Ok(None),
    }
}

fn token(options: &RequesterOptions) -> Result<Option<String>> {
    let Some(name) = &options.token_env else {
        ensure!(
            options.listen.ip().is_loopback(),
            "{}: beyond loopback a token is needed: set one by --token-env",
            options.listen
        );
        return Ok(None);
    };
    let token = env::var(name).with_context(|| {
        format!("the token cannot be read from the environment variable {name}")
    })?;
    let token = token.trim();
    ensure!(!token.is_empty(), "{name}: expected a token, found nothing");
    Ok(Some(token.to_owned()))
}

/// Runs until one of `stop` has an event. `ready` is called with its address when clients can
/// connect.
///
/// # Errors
/// When the interface or an address cannot be used. Frames that the kernel refuses to send are no
/// error: they are counted.
fn run(
    options: RequesterOptions,
    stop: &[PollFd<'_>],
    ready: impl FnOnce(SocketAddr) -> io::Result<()>,
) -> Result<Counters> {
    let token = token(&options)?;
    let RequesterOptions {
        interface,
        address,
        peer_mac,
        listen,
        faults,
        ..
    } = options;
    let mtu = link::state(&Namespace::current()?, &interface)?.mtu;
    let active_mtu = [4096, 2048, 1024, 512, 256]
        .into_iter()
        .find(|path_mtu| u32::from(*path_mtu) + HEADERS <= mtu);
    let active_mtu = active_mtu.with_context(|| {
        format!(
            "{interface} has MTU {mtu}, expected at least {}",
            256 + HEADERS
        )
    })?;
    let socket = PacketSocket::open(&interface).with_context(|| {
        format!(
            "cannot use {interface}: expected an Ethernet interface, CAP_NET_RAW and CAP_NET_ADMIN"
        )
    })?;
    let _port = take_port(address)?;
    let listener =
        TcpListener::bind(listen).with_context(|| format!("cannot listen on {listen}"))?;
    let listens_on = listener
        .local_addr()
        .context("the address that it listens on cannot be read")?;

    let adapter = Adapter {
        name: interface,
        mac: socket.address,
        peer_mac,
        address,
        active_mtu,
    };
    let (woken, wake) = io::pipe().context("no pipe for the port's thread")?;
    let model = Mutex::new(Model::new(adapter, &faults));
    let shared = Arc::new(Shared {
        model,
        completed: Condvar::new(),
        wake,
        over: AtomicBool::new(false),
    });
    let (running, ended) = oneshot::channel::<()>();
    thread::scope(|scope| {
        let port = thread::Builder::new()
            .name("port".into())
            .spawn_scoped(scope, || {
                // However it ends, so does the server.
                let _running = running;
                realtime::enter_fifo(realtime::DUT);
                serve_port(&shared, &socket, woken, stop)
            });
        let port = port.context("no thread for the port")?;
        let make = || Ok(Box::new(Handle(Arc::clone(&shared))) as Box<dyn Backend>);
        let served = ready(listens_on).map_err(Into::into).and_then(|()| {
            server::serve(
                listener,
                ServerOptions {
                    token,
                    ..ServerOptions::default()
                },
                make,
                async {
                    let _ = ended.await;
                },
            )
        });
        shared.over.store(true, Ordering::Release);
        shared.wake();
        let counters = port
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        served.map(|()| counters)
    })
}

/// `validator dut requester`: runs until SIGTERM, SIGINT or, where `stdin` is a pipe, its end; then
/// says on `stdout` what it sent. A line `ready: ADDRESS` comes first, when clients can connect.
///
/// Signals are blocked for the calling thread: it should be the only one of its process.
pub fn main(args: RequesterArgs, stdin: impl AsFd, mut stdout: impl Write) -> Result<()> {
    let stop = Stop::install(stdin.as_fd())?;
    let Counters { sent, refused } = run(args.into_options(), &stop.events(), |address| {
        writeln!(stdout, "ready: {address}")?;
        stdout.flush()
    })?;
    writeln!(
        stdout,
        "ended: {sent} frames sent, {refused} refused by the kernel"
    )?;
    Ok(())
}
