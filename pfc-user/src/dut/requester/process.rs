//! Connects the model to an interface of the current network namespace, and serves the agent's
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
use nix::poll::PollFd;
use pfc_ebpf::wire::roce::UDP_PORT;
use tokio::sync::oneshot;
use validator_core::plan::Nanos;

use super::args::RequesterArgs;
use super::model::{Adapter, Model};
use crate::agent::backend::Backend;
use crate::agent::protocol::{Channel, Completion, Device, Failure, OpenChannel, QueuePair, Read};
use crate::agent::server::{self, ServerOptions};
use crate::driver::kernel::netns::Namespace;
use crate::driver::kernel::packet::{Batch, DevicePort, Received};
use crate::driver::kernel::{clock, link, realtime};
use crate::driver::stall;
use crate::dut::stop::{self, Stop};

/// Octets of an interface's MTU that are not payload: the longest headers, GRH, UDP, BTH, XRCETH
/// and AtomicETH, and the ICRC.
const HEADERS: u32 = 40 + 8 + 12 + 4 + 28 + 4;

/// A retry that leaves so late is the process' fault and not the model's.
const STALL: Nanos = 1_000_000;

/// The model, shared by the port's thread and the agent's.
struct Shared {
    model: Mutex<Model>,
    /// Signalled when there may be completions.
    completed: Condvar,
    /// Wakes the port's thread.
    wake: PipeWriter,
    /// Tells the port's thread to end.
    over: AtomicBool,
    stalls: Mutex<stall::Reporter>,
}

impl Shared {
    fn model(&self) -> MutexGuard<'_, Model> {
        // A panic elsewhere ends the process anyway.
        self.model.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reports a stall if the model's timer has ended long ago. To be called before the model gets
    /// the time.
    fn look(&self, model: &Model) {
        // A timer that waits for its packet to leave has no end yet.
        if let Some(due) = model.next_event().filter(|due| *due > 0) {
            let mut stalls = self.stalls.lock().unwrap_or_else(PoisonError::into_inner);
            stalls.due(due);
        }
    }

    fn wake(&self) {
        // The reader lives as long as the process serves, and empties the pipe.
        let _ = (&self.wake).write_all(&[0]);
    }
}

/// The model as the backend of a client.
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
            // Computed before the model is read, so that an empty result covers the whole wait.
            let left = wait.saturating_sub(start.elapsed());
            self.0.look(&model);
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

/// Counters of the port's frames.
#[derive(Clone, Copy, Debug, Default)]
struct Counters {
    sent: u64,
    refused: u64,
}

/// Moves frames between the model and the interface until one of `stop` has an event or
/// `shared.over` is set.
fn serve_port(
    shared: &Shared,
    socket: &DevicePort,
    mut woken: PipeReader,
    stop: &[PollFd<'_>],
) -> Result<Counters> {
    let mut counters = Counters::default();
    let (mut batch, mut received) = (Batch::default(), Vec::new());
    loop {
        let more = socket
            .receive(&mut batch, &mut received)
            .context("the port takes no more frames")?;
        let next = {
            let mut model = shared.model();
            shared.look(&model);
            for Received { frame, .. } in received.drain(..) {
                model.receive(clock::now(), &frame);
            }
            // The model takes the time of the call that returns no more frames for the time they
            // left.
            while let Some(frame) = model.poll_transmit(clock::now()) {
                match socket.send(std::iter::once(&*frame)) {
                    Err(_) => counters.refused += 1,
                    Ok(_) => counters.sent += 1,
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
        let wait = socket.at_most(wait.map(Duration::from_nanos));
        let files = [socket.as_fd(), woken.as_fd()];
        let ready = stop::wait(stop, files, wait).context("the port cannot wait")?;
        let Some(ready) = ready.filter(|_| !shared.over.load(Ordering::Acquire)) else {
            return Ok(counters);
        };
        if ready[1] {
            woken
                .read(&mut [0; 64])
                .context("the port cannot be woken")?;
        }
    }
}

/// Keeps the kernel from answering the tester's frames with ICMP port unreachable. Datagrams to
/// this socket are never read.
fn take_port(address: IpAddr) -> Result<Option<UdpSocket>> {
    match UdpSocket::bind((address, UDP_PORT)) {
        Ok(socket) => Ok(Some(socket)),
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
            bail!(
                "UDP port {UDP_PORT} of {address} is taken: expected no other RoCEv2 device with \
                 that address, end it or choose another"
            )
        }
        // If the address is not the host's own, its kernel answers nothing.
        Err(_) => Ok(None),
    }
}

fn token(options: &RequesterArgs) -> Result<Option<String>> {
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

/// The largest path MTU for which the interface has room.
fn active_mtu(interface: &str) -> Result<u16> {
    let mtu = link::state(&Namespace::current()?, interface)?.mtu;
    let active_mtu = [4096, 2048, 1024, 512, 256]
        .into_iter()
        .find(|path_mtu| u32::from(*path_mtu) + HEADERS <= mtu);
    active_mtu.with_context(|| {
        format!(
            "{interface} has MTU {mtu}, expected at least {}",
            256 + HEADERS
        )
    })
}

/// Runs until one of `stop` has an event. Calls `ready` with its address as soon as clients can
/// connect.
///
/// # Errors
/// Fails if the interface or an address cannot be used. Frames that the kernel refuses to send are
/// counted, not an error.
fn run(
    options: RequesterArgs,
    stop: &[PollFd<'_>],
    ready: impl FnOnce(SocketAddr) -> io::Result<()>,
) -> Result<Counters> {
    let token = token(&options)?;
    let RequesterArgs {
        interface,
        address,
        peer_mac,
        listen,
        faults,
        ..
    } = options;
    let active_mtu = active_mtu(&interface)?;
    let socket = DevicePort::open(&interface).with_context(|| {
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
        stalls: Mutex::new(stall::Reporter::new(STALL)),
    });
    serve(&shared, &socket, woken, stop, |ended| {
        ready(listens_on)?;
        let make = || Ok(Box::new(Handle(Arc::clone(&shared))) as Box<dyn Backend>);
        let options = ServerOptions {
            token,
            ..ServerOptions::default()
        };
        server::serve(listener, options, make, async {
            let _ = ended.await;
        })
    })
}

/// Serves the port in a thread of its own and the `agent`'s clients in this one, until `stop` or an
/// error of either.
fn serve(
    shared: &Shared,
    socket: &DevicePort,
    woken: PipeReader,
    stop: &[PollFd<'_>],
    agent: impl FnOnce(oneshot::Receiver<()>) -> Result<()>,
) -> Result<Counters> {
    let (running, ended) = oneshot::channel::<()>();
    thread::scope(|scope| {
        let port = thread::Builder::new()
            .name("port".into())
            .spawn_scoped(scope, || {
                // Its end, for whatever reason, ends the server.
                let _running = running;
                realtime::enter_fifo(realtime::DUT);
                serve_port(shared, socket, woken, stop)
            });
        let port = port.context("no thread for the port")?;
        let served = agent(ended);
        shared.over.store(true, Ordering::Release);
        shared.wake();
        let counters = port
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        served.map(|()| counters)
    })
}

/// `validator dut requester`: writes a line `ready: ADDRESS` to `stdout` as soon as clients can
/// connect. Runs until SIGTERM, SIGINT or, if `stdin` is a pipe, its end; then reports how much it
/// sent.
///
/// Signals are blocked for the calling thread, which should be the only one of its process.
pub fn main(args: RequesterArgs, stdin: impl AsFd, mut stdout: impl Write) -> Result<()> {
    let stop = Stop::install(stdin.as_fd())?;
    let Counters { sent, refused } = run(args, &stop.events(), |address| {
        writeln!(stdout, "ready: {address}")?;
        stdout.flush()
    })?;
    writeln!(
        stdout,
        "ended: {sent} frames sent, {refused} refused by the kernel"
    )?;
    Ok(())
}
