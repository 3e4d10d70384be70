//! Serves a fabric of the tester's node and the DUT.

use std::collections::BTreeMap;
use std::env::consts::ARCH;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use ib_mad::mad::{AttributeId, Lid, Method};
use ib_mad::sma::{Fabric, Sma};
use ib_mad::smp::{DATA, Path, Route, Smp};
use ib_mad::transport::ibsim::{BindError, ClientId, Counters, Host, Packet, Server};
use ib_mad::transport::{Received, Time};
use nix::poll::PollFd;
use thiserror::Error;
use validator_core::plan::Nanos;

use super::args::{SmaArgs, TESTER};
use crate::driver::stall;
use crate::dut::stop::{self, Stop};

/// A packet due within this time goes at once: the kernel's timers are no finer (timer slack, 50
/// us), and sleeping would make it later still.
const AT_ONCE: Duration = Duration::from_micros(50);

/// Longest time from one look to the next while the process runs; it reports a much longer one.
const BEAT: Duration = Duration::from_millis(10);
/// Time that a busy machine may take to run it.
const STALL: Duration = Duration::from_millis(5);

/// Error of running the agent.
#[derive(Debug, Error)]
pub enum ProcessError {
    /// The server could not start.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// A system call failed while serving.
    #[error("the agent could not go on: {0}")]
    Io(#[from] io::Error),
}

/// Serves until one of `stop` has an event. Calls `ready` as soon as clients can connect.
///
/// # Errors
/// Fails if the server's name is taken or its sockets fail. Malformed packets of clients are
/// counted, not an error.
pub fn run(
    args: &SmaArgs,
    stop: &[PollFd<'_>],
    ready: impl FnOnce() -> io::Result<()>,
) -> Result<Counters, ProcessError> {
    let mut server = Server::bind(&args.socket)?;
    let mut process = Process::new(args);
    let mut packets = Vec::new();
    // From here on: a client may ask as soon as it knows that it can.
    let mut stalls = stall::Reporter::new(STALL.as_nanos() as Nanos);
    ready()?;
    loop {
        stalls.beat(BEAT.as_nanos() as Nanos);
        server.receive(&mut process, &mut packets)?;
        for packet in packets.drain(..) {
            process.send(&packet);
        }
        let next = process.deliver(&mut server).unwrap_or(BEAT);
        if stop::wait(stop, server.sockets(), Some(next.min(BEAT)))?.is_none() {
            return Ok(server.counters());
        }
    }
}

/// A packet for the tester: the client that caused it, the sender, and the octets.
type Due = (ClientId, Lid, Vec<u8>);

struct Process {
    fabric: Fabric,
    epoch: Instant,
    /// Packets not delivered yet, by time; those of the same time by their number.
    due: BTreeMap<(Time, u64), Due>,
    next: u64,
}

impl Process {
    fn new(args: &SmaArgs) -> Self {
        let [tester, dut] = args.nodes();
        Self {
            fabric: Fabric {
                tester: Sma::new(tester, Vec::new()),
                dut: Sma::new(dut, args.faults.clone()),
            },
            epoch: Instant::now(),
            due: BTreeMap::new(),
            next: 0,
        }
    }

    fn send(&mut self, packet: &Packet) {
        for Received { at, octets } in
            self.fabric
                .send(self.epoch.elapsed(), &packet.smp, packet.to)
        {
            self.due.insert(
                (at, self.next),
                (packet.client, source(packet.to, &octets), octets),
            );
            self.next += 1;
        }
    }

    /// Delivers the packets that are due. Returns the time until the next one.
    fn deliver(&mut self, server: &mut Server) -> Option<Duration> {
        loop {
            let first = self.due.first_entry()?;
            let left = first.key().0.saturating_sub(self.epoch.elapsed());
            if left > AT_ONCE {
                return Some(left);
            }
            let (client, from, octets) = first.remove();
            server.deliver(client, from, &octets);
        }
    }
}

/// Returns the sender of a packet: for a response the destination of its request, for a trap the
/// LID that it names (13.4.8.2).
fn source(to: Lid, octets: &[u8]) -> Lid {
    match Smp::parse(octets) {
        Ok(smp) if smp.method() == Method::TRAP => {
            Lid(u16::from_be_bytes([smp.data()[6], smp.data()[7]]))
        }
        _ => to,
    }
}

impl Host for Process {
    fn name(&self) -> &str {
        TESTER
    }

    fn attribute(&mut self, attribute: AttributeId, modifier: u32) -> Option<[u8; DATA]> {
        let itself = Route::Directed(Path::default());
        let mut get = Smp::request(Method::GET, attribute, modifier, &itself);
        get.set_m_key(self.fabric.tester.config().m_key);
        let [answer] = &self
            .fabric
            .send(self.epoch.elapsed(), &get, Lid::PERMISSIVE)[..]
        else {
            return None;
        };
        Smp::parse(&answer.octets).ok().map(|answer| *answer.data())
    }
}

/// `validator dut sma`: writes a line that begins with `ready` to `stdout` as soon as clients can
/// connect. Runs until SIGTERM, SIGINT or, if `stdin` is a pipe, its end; then reports what it
/// ignored.
///
/// Signals are blocked for the calling thread, which should be the only one of its process.
pub fn main(args: SmaArgs, stdin: impl AsFd, mut stdout: impl Write) -> anyhow::Result<()> {
    let stop = Stop::install(stdin.as_fd())?;
    let Counters { ignored, dropped } = run(&args, &stop.events(), || {
        let name = &args.socket;
        // Its place in Debian.
        let shim = format!("/usr/lib/{ARCH}-linux-gnu/umad2sim/libumad2sim.so");
        writeln!(
            stdout,
            "ready: IBSIM_SOCKNAME={name} SIM_HOST={TESTER} LD_PRELOAD={shim} smpquery -D nodeinfo \
             0,1"
        )?;
        stdout.flush()
    })?;
    writeln!(
        stdout,
        "ended: {ignored} datagrams ignored, {dropped} packets dropped"
    )?;
    Ok(())
}
