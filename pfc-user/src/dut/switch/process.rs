//! Connects the model to interfaces of this network namespace or of named ones.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use nix::errno::Errno;
use nix::poll::PollFd;
use thiserror::Error;
use validator_core::evidence::pfc::{DutReport, Stall};
use validator_core::fault::switch::Fault;
use validator_core::plan::Nanos;

use super::args::SwitchArgs;
use super::config::{ConfigError, SwitchConfig};
use super::counters::Counters;
use super::model::{Departure, Switch};
use crate::driver::kernel::netns::{Namespace, NamespaceError};
use crate::driver::kernel::packet::{Batch, DevicePort, Received};
use crate::driver::kernel::{clock, realtime};
use crate::dut::stamping;
use crate::dut::stop::{self, Stop};

/// Time between rounds under load. Frames are read and sent in batches, so they leave at most this
/// much late.
const ROUND: Nanos = 100_000;
/// Shortest sleep of a process that keeps up: at real-time priority it must not keep its CPU for
/// good.
const MIN_SLEEP: Nanos = 20_000;
/// How long a frame is offered again while the kernel has no room for it.
const PATIENCE: Nanos = 10_000_000;
/// Most stalls listed one by one; further ones prolong the last.
const MAX_STALLS: usize = 10_000;

/// Error of running a switch.
#[derive(Debug, Error)]
pub enum ProcessError {
    /// A port's interface cannot be used.
    #[error(
        "cannot use {port} as a port: {source}; expected an Ethernet interface of this network \
         namespace, or NAMESPACE:INTERFACE, and CAP_NET_RAW with CAP_NET_ADMIN"
    )]
    Port {
        /// The port, as given.
        port: String,
        /// The kernel's reason.
        source: io::Error,
    },
    /// Two ports are the same.
    #[error("{0} is given as two ports: expected different interfaces")]
    SamePort(String),
    /// A port's namespace cannot be entered.
    #[error(transparent)]
    Namespace(#[from] NamespaceError),
    /// The socket for counts cannot be made.
    #[error("cannot listen at {}: {source}; a switch that was killed leaves its socket", .path.display())]
    Counters {
        /// Its path.
        path: PathBuf,
        /// The kernel's reason.
        source: io::Error,
    },
    /// The configuration is invalid.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A system call failed while running.
    #[error("the switch could not go on: {0}")]
    Io(#[from] io::Error),
}

/// Runs a switch until one of `stop` has an event. Calls `ready` as soon as all ports take frames.
///
/// # Errors
/// Fails if a port cannot be opened or fails. Frames that the kernel refuses to send are counted in
/// the report, not an error.
pub fn run(
    args: &SwitchArgs,
    stop: &[PollFd<'_>],
    ready: impl FnOnce() -> io::Result<()>,
) -> Result<DutReport, ProcessError> {
    let sockets = open(&args.ports)?;
    let mut process = Process::new(args, &sockets)?;
    let listen = |path: &PathBuf| {
        Counters::listen(path).map_err(|source| ProcessError::Counters {
            path: path.clone(),
            source,
        })
    };
    let counters = args.counters.as_ref().map(listen).transpose()?;
    // Without stamps PFC would be acted on late.
    stamping::wait();
    process.latest.fill(clock::now());
    ready()?;

    let mut sleep = Sleep {
        until: None,
        for_frames: true,
    };
    let mut asleep_since = clock::now();
    loop {
        sleep = process.round(sleep, asleep_since)?;
        asleep_since = clock::now();

        let timeout = sleep.until.map(|until| until.saturating_sub(asleep_since));
        let timeout = sockets
            .iter()
            .fold(timeout.map(Duration::from_nanos), |sleep, socket| {
                socket.at_most(sleep)
            });
        let ports = sockets.iter().filter(|_| sleep.for_frames);
        let files = counters.iter().map(AsFd::as_fd);
        let files = files.chain(ports.map(AsFd::as_fd));
        let Some(ready) = stop::wait(stop, files, timeout)? else {
            // A process that was stopped until now has frames to pass on, and its stall to note.
            process.round(sleep, asleep_since)?;
            return process.report();
        };
        if let Some(counters) = &counters
            && ready[0]
        {
            counters.publish(&process.switch)?;
        }
    }
}

/// The sleep between two rounds.
#[derive(Clone, Copy, Debug)]
struct Sleep {
    /// Latest time to wake up.
    until: Option<Nanos>,
    /// Also wake up when a frame arrives.
    for_frames: bool,
}

/// A received frame: time of arrival, port, octets.
type Arrived = (Nanos, usize, Vec<u8>);

struct Process<'a> {
    switch: Switch,
    sockets: &'a [DevicePort],
    batch: Batch,
    received: Vec<Received>,
    /// Per port: the time when it was ready, then that of its last frame. Later frames never count
    /// as earlier: reading the two clocks is inexact and must not change the order of a port's
    /// frames.
    latest: Vec<Nanos>,
    /// Frames for the switch, by time.
    arrived: VecDeque<Arrived>,
    /// Frames for the kernel, by port.
    departed: Vec<VecDeque<Departure>>,
    report: DutReport,
}

fn open(ports: &[String]) -> Result<Vec<DevicePort>, ProcessError> {
    let mut twice = (1..ports.len()).filter(|at| ports[..*at].contains(&ports[*at]));
    if let Some(at) = twice.next() {
        return Err(ProcessError::SamePort(ports[at].clone()));
    }
    let open = |port: &String| {
        let (namespace, interface) = match port.rsplit_once(':') {
            Some((namespace, interface)) => (Some(namespace), interface),
            None => (None, &**port),
        };
        let opened = Namespace::open(namespace)?.run(|| DevicePort::open(interface))?;
        opened.map_err(|source| ProcessError::Port {
            port: port.clone(),
            source,
        })
    };
    ports.iter().map(open).collect()
}

impl<'a> Process<'a> {
    fn new(args: &SwitchArgs, sockets: &'a [DevicePort]) -> Result<Self, ProcessError> {
        let config = SwitchConfig {
            macs: sockets.iter().map(|socket| socket.address).collect(),
            ..args.config()
        };
        config.check()?;
        let faults = args.faults.iter().map(Fault::to_string).collect();
        Ok(Self {
            switch: Switch::new(config, &args.faults),
            sockets,
            batch: Batch::default(),
            received: Vec::new(),
            latest: vec![0; sockets.len()],
            arrived: VecDeque::new(),
            departed: vec![VecDeque::new(); sockets.len()],
            report: DutReport {
                received: vec![0; sockets.len()],
                sent: vec![0; sockets.len()],
                faults,
                ..DutReport::default()
            },
        })
    }

    /// Takes what has come since it fell asleep, notes if it woke too late, and does what is due.
    fn round(&mut self, sleep: Sleep, asleep_since: Nanos) -> io::Result<Sleep> {
        let begun = clock::now();
        let known = self.receive(begun)?;
        let due = self.due(sleep, asleep_since);
        note_stall(&mut self.report, due, begun);
        Ok(self.serve(known, begun))
    }

    /// Reads the frames received and sorts them by time. Returns the time up to which all are
    /// known: `begun`, when the round began, or that of the last frame read if more may be waiting.
    fn receive(&mut self, begun: Nanos) -> io::Result<Nanos> {
        let ahead = realtime_ahead();
        let mut known = begun;
        for port in 0..self.sockets.len() {
            let more = self.sockets[port].receive(&mut self.batch, &mut self.received)?;
            self.report.received[port] += self.received.len() as u64;
            // If the clock was set while a frame waited, the frame must not lie in the future.
            let now = clock::now();
            for Received { realtime, frame } in self.received.drain(..) {
                self.latest[port] = realtime
                    .saturating_sub(ahead)
                    .min(now)
                    .max(self.latest[port]);
                self.arrived.push_back((self.latest[port], port, frame));
            }
            if let Some((last, ..)) = self.arrived.back().filter(|_| more) {
                known = known.min(*last);
            }
        }
        self.arrived.make_contiguous().sort_by_key(|(at, ..)| *at);
        Ok(known)
    }

    /// Returns when the round should have begun.
    fn due(&self, sleep: Sleep, asleep_since: Nanos) -> Nanos {
        let frame = self
            .arrived
            .front()
            .filter(|_| sleep.for_frames)
            .map(|(at, ..)| (*at).max(asleep_since));
        sleep
            .until
            .into_iter()
            .chain(frame)
            .min()
            .unwrap_or(Nanos::MAX)
    }

    /// Runs the model up to `known` and sends what has left by then. Later frames wait for the next
    /// round: an earlier one of another port may not have been read yet.
    fn serve(&mut self, known: Nanos, begun: Nanos) -> Sleep {
        let mut idle = self.arrived.is_empty();
        while let Some((at, port, frame)) = self.arrived.pop_front_if(|(at, ..)| *at <= known) {
            // The kernel itself may deliver a frame late.
            note_stall(&mut self.report, at, self.switch.now());
            self.switch.ingress(port, at, frame);
        }
        self.switch.advance(known);
        while let Some(departure) = self.switch.pop_departure() {
            self.departed[departure.port].push_back(departure);
        }
        for port in 0..self.sockets.len() {
            self.send(port);
            idle &= self.departed[port].is_empty();
        }
        if known < begun {
            Sleep {
                until: Some(begun),
                for_frames: false,
            }
        } else if idle {
            Sleep {
                until: self.switch.next_event().map(|next| next.max(begun + ROUND)),
                for_frames: true,
            }
        } else {
            Sleep {
                until: Some((begun + ROUND).max(clock::now() + MIN_SLEEP)),
                for_frames: false,
            }
        }
    }

    fn send(&mut self, port: usize) {
        let departed = &mut self.departed[port];
        while let Some(first) = departed.front().map(|departure| departure.at) {
            let frames = departed.iter().map(|departure| &*departure.frame);
            let sent = self.sockets[port].send(frames);
            let now = clock::now();
            match sent {
                Ok(sent) => {
                    let late = now.saturating_sub(first);
                    self.report.max_lateness = self.report.max_lateness.max(late);
                    self.report.sent[port] += sent as u64;
                    note_stall(&mut self.report, first, now);
                    departed.drain(..sent);
                }
                Err(Errno::ENOBUFS) if now < first + PATIENCE => return,
                Err(_) => {
                    departed.pop_front();
                    self.report.send_errors += 1;
                }
            }
        }
    }

    fn report(mut self) -> Result<DutReport, ProcessError> {
        self.report.overruns = self.batch.truncated;
        for socket in self.sockets {
            self.report.overruns += socket.overruns()?;
        }
        self.report.model_drops = self
            .switch
            .drops()
            .iter()
            .map(|(reason, frames)| ((*reason).to_owned(), *frames))
            .collect();
        self.report.xoff_sent = self.switch.xoff_sent();
        Ok(self.report)
    }
}

/// Records a stall if what was due at `from` happened at `to`, too much later.
fn note_stall(report: &mut DutReport, from: Nanos, to: Nanos) {
    if to.saturating_sub(from) <= Stall::ABOVE {
        return;
    }
    let full = report.stalls.len() >= MAX_STALLS;
    match report.stalls.last_mut() {
        Some(last) if full || from <= last.to => {
            *last = Stall {
                from: last.from.min(from),
                to: last.to.max(to),
            };
        }
        _ => report.stalls.push(Stall { from, to }),
    }
}

/// Measures how far CLOCK_REALTIME is ahead of CLOCK_MONOTONIC. Takes the best of a few readings:
/// an interruption between the clocks falsifies one by half its length.
fn realtime_ahead() -> Nanos {
    let read = |_| {
        let before = clock::now();
        let realtime = SystemTime::now().duration_since(UNIX_EPOCH);
        let after = clock::now();
        let realtime = realtime.map_or(0, |since| since.as_nanos() as Nanos);
        (
            after - before,
            realtime.saturating_sub(before.midpoint(after)),
        )
    };
    (0..3).map(read).min().map_or(0, |(_, ahead)| ahead)
}

/// `validator dut switch`: writes a line `{"ready":true}` to `stdout` as soon as the ports take
/// frames. Runs until SIGTERM, SIGINT or, if `stdin` is a pipe, its end; then prints the
/// [`DutReport`] as a line of JSON.
///
/// Signals are blocked for the calling thread, which should be the only one of its process.
pub fn main(args: SwitchArgs, stdin: impl AsFd, mut stdout: impl Write) -> anyhow::Result<()> {
    let stop = Stop::install(stdin.as_fd())?;
    // If neither is allowed, the switch is late more often; its report shows it.
    realtime::last_cpu().map(realtime::pin);
    realtime::enter_fifo(realtime::DUT);
    let report = run(&args, &stop.events(), || {
        writeln!(stdout, r#"{{"ready":true}}"#).and_then(|()| stdout.flush())
    })?;
    writeln!(stdout, "{}", serde_json::to_string(&report)?)?;
    Ok(())
}
