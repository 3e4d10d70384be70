//! Puts the model on two interfaces of the current network namespace.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::thread;
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use nix::time::{ClockId, clock_gettime};
use thiserror::Error;

use super::args::SwitchArgs;
use super::config::{ConfigError, SwitchConfig};
use super::model::{Departure, Switch};
use crate::driver::{clock, realtime};
use crate::dut::socket::{Batch, PacketSocket, Received};
use crate::dut::stop::Stop;
use crate::evidence::pfc::{DutReport, Stall};
use crate::fault::switch::Fault;
use crate::plan::Nanos;

/// Time from one round to the next under load: frames are read and sent in batches, and leave so
/// much later at most.
const ROUND: Nanos = 100_000;
/// The least sleep of a process that keeps up: at real-time priority it must not keep its CPU for
/// good.
const MIN_SLEEP: Nanos = 20_000;
/// Time for the kernel to begin to stamp frames: it does so from a work queue and tells nobody
/// (`net_enable_timestamp`). Until then the time of a frame is the time at which it is read, and
/// PFC would not be acted on when it came.
const SETTLE: Duration = Duration::from_millis(100);
/// How long a frame is offered again that the kernel had no room for.
const PATIENCE: Nanos = 10_000_000;
/// Frames handed to the kernel at once.
const SEND_BATCH: usize = 64;
/// Stalls listed one by one; what comes then makes the last one longer.
const MAX_STALLS: usize = 10_000;

/// Options of the process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SwitchOptions {
    /// Interfaces of ports 0 and 1.
    pub ports: [String; 2],
    /// Configuration; its addresses are replaced by the interfaces' own.
    pub config: SwitchConfig,
    /// Faults in force.
    pub faults: Vec<Fault>,
}

/// Why a switch could not run.
#[derive(Debug, Error)]
pub enum ProcessError {
    /// A port's interface cannot be used.
    #[error(
        "cannot use {interface} as a port: {source}; expected an Ethernet interface of this \
         network namespace, and CAP_NET_RAW with CAP_NET_ADMIN"
    )]
    Port {
        /// Interface.
        interface: String,
        /// The kernel's reason.
        source: io::Error,
    },
    /// Both ports are the same.
    #[error("{0} is given as both ports: expected two interfaces")]
    SamePort(String),
    /// The configuration makes no sense.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The kernel refused what it had granted before.
    #[error("the switch could not go on: {0}")]
    Io(#[from] io::Error),
}

/// Runs a switch until one of `stop` has an event. `ready` is called when both ports take frames.
///
/// # Errors
/// When a port cannot be opened or fails. Frames that the kernel refuses to send are no error: they
/// are in the report.
pub fn run(
    options: &SwitchOptions,
    stop: &[PollFd<'_>],
    ready: impl FnOnce() -> io::Result<()>,
) -> Result<DutReport, ProcessError> {
    let sockets = open(&options.ports)?;
    let mut process = Process::new(options, &sockets)?;
    let mut events: Vec<_> = stop.to_vec();
    events.extend(
        sockets
            .iter()
            .map(|socket| PollFd::new(socket.as_fd(), PollFlags::POLLIN)),
    );
    thread::sleep(SETTLE);
    process.latest = [clock::now(); 2];
    ready()?;

    let mut sleep = Sleep {
        until: None,
        for_frames: true,
    };
    let mut asleep_since = clock::now();
    loop {
        let begun = clock::now();
        let known = process.receive(begun)?;
        let due = process.due(sleep, asleep_since);
        note_stall(&mut process.report.stalls, due, begun);
        sleep = process.serve(known, begun);
        asleep_since = clock::now();

        let watched = if sleep.for_frames {
            events.len()
        } else {
            stop.len()
        };
        let timeout = sleep.until.map(|until| until.saturating_sub(asleep_since));
        let timeout = timeout.map(|nanos| {
            TimeSpec::new(
                (nanos / 1_000_000_000) as i64,
                (nanos % 1_000_000_000) as i64,
            )
        });
        match ppoll(&mut events[..watched], timeout, None) {
            Ok(_) | Err(nix::Error::EINTR) => {}
            Err(error) => return Err(io::Error::from(error).into()),
        }
        if events[..stop.len()]
            .iter()
            .any(|event| event.any().unwrap_or(false))
        {
            return process.report();
        }
    }
}

/// How a round ends.
#[derive(Clone, Copy, Debug)]
struct Sleep {
    /// When to wake up at the latest.
    until: Option<Nanos>,
    /// Also wake up when a frame comes.
    for_frames: bool,
}

/// A frame that has come in: when, at which port.
type Arrived = (Nanos, usize, Vec<u8>);

struct Process<'a> {
    switch: Switch,
    sockets: &'a [PacketSocket; 2],
    batch: Batch,
    received: Vec<Received>,
    /// When the ports were ready, then when the last frame came in, by port: what comes later
    /// counts as come no earlier, for the reading of the two clocks is not exact and must not
    /// change the order of a port's frames.
    latest: [Nanos; 2],
    /// Frames for the switch, by time.
    arrived: VecDeque<Arrived>,
    /// Frames for the kernel, by port.
    departed: [VecDeque<Departure>; 2],
    report: DutReport,
}

fn open(ports: &[String; 2]) -> Result<[PacketSocket; 2], ProcessError> {
    let [first, second] = ports;
    if first == second {
        return Err(ProcessError::SamePort(first.clone()));
    }
    let open = |interface: &String| {
        PacketSocket::open(interface).map_err(|source| ProcessError::Port {
            interface: interface.clone(),
            source,
        })
    };
    Ok([open(first)?, open(second)?])
}

impl<'a> Process<'a> {
    fn new(options: &SwitchOptions, sockets: &'a [PacketSocket; 2]) -> Result<Self, ProcessError> {
        options.config.check()?;
        let config = SwitchConfig {
            macs: sockets.each_ref().map(|socket| socket.address),
            ..options.config.clone()
        };
        let faults = options.faults.iter().map(Fault::to_string).collect();
        Ok(Self {
            switch: Switch::new(config, &options.faults),
            sockets,
            batch: Batch::new(),
            received: Vec::new(),
            latest: [0; 2],
            arrived: VecDeque::new(),
            departed: Default::default(),
            report: DutReport {
                faults,
                ..DutReport::default()
            },
        })
    }

    /// Reads what has come in, and puts it in the order of its time. Returns the time up to which
    /// everything is known: `begun`, when the round began, or that of the last frame read where
    /// more may be waiting.
    fn receive(&mut self, begun: Nanos) -> io::Result<Nanos> {
        let ahead = realtime_ahead();
        let mut known = begun;
        for port in [0, 1] {
            let more = self.sockets[port].receive(&mut self.batch, &mut self.received)?;
            self.report.received[port] += self.received.len() as u64;
            // A clock that was set while a frame waited must not put it into the future.
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

    /// When the round should have begun.
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

    /// Lets everything happen up to `known`, and sends what has left by then. What came in later
    /// waits for the next round: something of the other port that came in earlier may not have been
    /// read yet.
    fn serve(&mut self, known: Nanos, begun: Nanos) -> Sleep {
        let mut idle = self.arrived.is_empty();
        while let Some((at, port, frame)) = self.arrived.pop_front_if(|(at, ..)| *at <= known) {
            // The kernel itself may hand a frame over late.
            note_stall(&mut self.report.stalls, at, self.switch.now());
            self.switch.ingress(port, at, frame);
        }
        self.switch.advance(known);
        while let Some(departure) = self.switch.pop_departure() {
            self.departed[departure.port].push_back(departure);
        }
        for port in [0, 1] {
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
        while !departed.is_empty() {
            let frames: Vec<&[u8]> = departed
                .iter()
                .take(SEND_BATCH)
                .map(|departure| &*departure.frame)
                .collect();
            let (sent, error) = self.sockets[port].send(&frames);
            let now = clock::now();
            if sent > 0 {
                let first = departed[0].at;
                self.report.max_lateness = self.report.max_lateness.max(now.saturating_sub(first));
                self.report.sent[port] += sent as u64;
                note_stall(&mut self.report.stalls, first, now);
                departed.drain(..sent);
            }
            let Some(error) = error else { continue };
            let no_room = error.raw_os_error() == Some(libc::ENOBUFS);
            if no_room
                && departed
                    .front()
                    .is_some_and(|departure| now < departure.at + PATIENCE)
            {
                return;
            }
            departed.pop_front();
            self.report.send_errors += 1;
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

/// Takes down that the process should have done something at `from` and did it at `to`, if that is
/// a stall.
fn note_stall(stalls: &mut Vec<Stall>, from: Nanos, to: Nanos) {
    if to.saturating_sub(from) <= Stall::ABOVE {
        return;
    }
    let full = stalls.len() >= MAX_STALLS;
    match stalls.last_mut() {
        Some(last) if full || from <= last.to => {
            *last = Stall {
                from: last.from.min(from),
                to: last.to.max(to),
            }
        }
        _ => stalls.push(Stall { from, to }),
    }
}

/// By how much CLOCK_REALTIME is ahead of CLOCK_MONOTONIC: the best of a few readings, for one that
/// is interrupted between the clocks is off by half of the interruption.
fn realtime_ahead() -> Nanos {
    let read = |_| {
        let before = clock::now();
        let realtime =
            clock_gettime(ClockId::CLOCK_REALTIME).expect("CLOCK_REALTIME always exists");
        let after = clock::now();
        let realtime = realtime.tv_sec() as u64 * 1_000_000_000 + realtime.tv_nsec() as u64;
        (
            after - before,
            realtime.saturating_sub(before.midpoint(after)),
        )
    };
    (0..3).map(read).min().map_or(0, |(_, ahead)| ahead)
}

/// `validator dut switch`: runs until SIGTERM, SIGINT or, where `stdin` is a pipe, its end; then
/// prints the [`DutReport`] to `stdout` as a line of JSON. A line `{"ready":true}` comes first,
/// when the ports take frames.
///
/// Signals are blocked for the calling thread: it should be the only one of its process.
pub fn main(args: SwitchArgs, stdin: impl AsFd, mut stdout: impl Write) -> anyhow::Result<()> {
    let options = args.into_options()?;
    let stop = Stop::install(stdin.as_fd())?;
    // Where neither is allowed it is late more often, which its report tells.
    realtime::last_cpu().map(realtime::pin);
    realtime::enter_fifo(realtime::DUT);
    let report = run(&options, &stop.events(), || {
        writeln!(stdout, r#"{{"ready":true}}"#).and_then(|()| stdout.flush())
    })?;
    writeln!(stdout, "{}", serde_json::to_string(&report)?)?;
    Ok(())
}
