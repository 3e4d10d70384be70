//! Attaches to the ports, waits for what comes, and writes it.

mod output;
mod ports;
mod window;

use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};
use futures_util::{Stream, StreamExt};
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at, sleep_until};
use validator_core::verdict::Exit;

use self::output::Output;
pub use self::output::Shown;
pub use self::ports::PortName;
use self::ports::Ports;
use self::window::{Drops, LossWindow, Prelude};
use super::args::WatchArgs;
use super::loss::Verdict;
use super::pcapng::Capture;
use super::{prometheus, server};
use crate::driver::kernel::link::{self, LinkEvent, Links};
use crate::driver::kernel::netns::Namespace;
use crate::output::PATIENCE;

/// Interval at which records are taken out of the kernel's buffer, which has room for some
/// thousand.
const DRAIN: Duration = Duration::from_millis(20);

/// The reason why the watch ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Duration,
    Interrupted,
    /// The output has no reader any more, and the watch has no other end.
    Unread,
    /// Every port is gone, or one of a pair before its window opened.
    Gone,
}

/// Watches until the time is up, a signal comes, or every port is gone. Prints what was measured in
/// each case.
pub fn main(args: &WatchArgs) -> Result<Exit> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("no event loop")?;
    runtime.block_on(watch(args))
}

fn every(period: Duration) -> Interval {
    let mut interval = interval_at(Instant::now() + period, period);
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    interval
}

async fn watch(args: &WatchArgs) -> Result<Exit> {
    let signals = Signals::new()?;
    // Before anything is looked at, so that no change falls between.
    let mut events = pin!(link::events().context("cannot be told of changes of links")?);
    let args = &with_names(args)?;
    let mut session = Session::begin(args, signals).await?;
    let end = session.count(args, &mut events).await?;
    session.finish(end).await
}

/// The arguments with each interface's own name in place of an alternative one.
fn with_names(args: &WatchArgs) -> Result<WatchArgs> {
    let links = Links::read(&Namespace::current()?)?;
    let mut args = args.clone();
    let pair = args.loss.iter_mut();
    let pair = pair.flat_map(|pair| [&mut pair.tx, &mut pair.rx]);
    for interface in args.interfaces.iter_mut().chain(pair) {
        *interface = links.name_of(interface)?.to_owned();
    }
    Ok(args)
}

/// Ports with their programs, and everything that their counts are written to.
struct Session {
    signals: Signals,
    ports: Ports,
    output: Output,
    capture: Option<Capture>,
    /// A file or standard output could not be written.
    unwritten: bool,
    scraped: mpsc::Receiver<server::Scrape>,
    window: Loss,
}

impl Session {
    /// Attaches to the ports and begins to look at a pair whose loss is to be judged.
    async fn begin(args: &WatchArgs, signals: Signals) -> Result<Self> {
        let listener = match args.prometheus {
            Some(address) => Some(
                TcpListener::bind(address)
                    .await
                    .with_context(|| format!("--prometheus: cannot listen on {address}"))?,
            ),
            None => None,
        };
        let mut output =
            Output::new(args.is_json()).context("standard output cannot be written")?;
        let drops = args.loss.as_ref().map(Drops::read).transpose()?;
        let ports = Ports::attach(args, &mut output)?;
        let capture = args
            .pcap
            .as_deref()
            .map(|path| {
                Capture::begin(path, &ports.names())
                    .with_context(|| format!("--pcap: cannot write {}", path.display()))
            })
            .transpose()?;
        let (scrapes, scraped) = mpsc::channel(1);
        if let Some(listener) = listener {
            let address = listener.local_addr()?;
            let message = format!("metrics: http://{address}/metrics");
            output.event(0, "", "listening", &message);
            tokio::spawn(server::serve(listener, scrapes));
        }
        let window = match args.loss.as_ref().zip(drops) {
            Some((pair, drops)) => {
                let prelude = Prelude::begin(pair, &ports, drops)?;
                let opens = Instant::now() + Duration::from_nanos(args.max_latency.0);
                output.event(
                    ports.elapsed(),
                    "",
                    "before-window",
                    "looking at what is sent before the window opens (--max-latency)",
                );
                Loss::Opens(opens, prelude)
            }
            None => Loss::None,
        };
        Ok(Self {
            signals,
            ports,
            output,
            capture,
            unwritten: false,
            scraped,
            window,
        })
    }

    /// Counts until the time is up, a signal comes, or a port that is needed is gone.
    async fn count(
        &mut self,
        args: &WatchArgs,
        events: &mut (impl Stream<Item = LinkEvent> + Unpin),
    ) -> Result<End> {
        let mut tick = every(Duration::from_nanos(args.interval.0));
        let mut drain = every(DRAIN);
        let mut end = if matches!(self.window, Loss::None) {
            self.announce(args)?
        } else {
            None
        };
        let endless = args.duration.is_none() && args.prometheus.is_none() && args.pcap.is_none();
        loop {
            self.unwritten |= report_failure(self.output.stdout.failure());
            if self.output.stdout.is_closed() && endless {
                return Ok(End::Unread);
            }
            let due = self.window.due();
            tokio::select! {
                biased;
                () = self.signals.next() => return Ok(End::Interrupted),
                Some(event) = events.next() => {
                    self.ports.note(event, &mut self.output)?;
                    let is_over = self.ports.all_gone() && args.prometheus.is_none();
                    if is_over || self.window.due().is_some() && self.ports.pair_is_incomplete() {
                        return Ok(End::Gone);
                    }
                }
                () = until(due) => {
                    let window = std::mem::replace(&mut self.window, Loss::None);
                    self.window = window.step(&self.ports)?;
                    if matches!(self.window, Loss::Open(_)) {
                        end = self.announce(args)?;
                    }
                }
                _ = drain.tick(), if self.capture.is_some() => self.drain()?,
                _ = tick.tick() => self.ports.show(&mut self.output)?,
                Some(reply) = self.scraped.recv() => {
                    let text = prometheus::render(&self.ports.exposed()?, self.output.stdout.dropped());
                    // The client may have gone.
                    let _ = reply.send(text);
                }
                () = until(end) => {
                    let is_over = self.ports.all_gone();
                    return Ok(if is_over { End::Gone } else { End::Duration });
                }
            }
        }
    }

    /// Moves PAUSE and PFC frames to the capture. One that cannot be written ends alone.
    fn drain(&mut self) -> Result<()> {
        if let Err(error) = self.ports.drain(self.capture.as_mut()) {
            let Some(unwritten) = error.downcast_ref::<io::Error>() else {
                return Err(error);
            };
            let message = report_capture(unwritten);
            self.capture = None;
            self.unwritten = true;
            let elapsed = self.ports.elapsed();
            self.output.event(elapsed, "", "capture-ended", &message);
        }
        Ok(())
    }

    /// Says that counting begins, and returns when it ends.
    fn announce(&mut self, args: &WatchArgs) -> Result<Option<Instant>> {
        let (elapsed, described) = (self.ports.elapsed(), self.ports.described());
        self.output.event(elapsed, "", "watching", &described);
        Ok(args
            .duration
            .map(|duration| Instant::now() + Duration::from_nanos(duration.0)))
    }

    /// Closes the window, writes the last counts and the judgement of loss.
    async fn finish(mut self, end: End) -> Result<Exit> {
        let mut hurried = false;
        let window = std::mem::replace(&mut self.window, Loss::None);
        let never_opened = window.due().is_some();
        let report = match window {
            Loss::Open(window) => {
                self.output.event(
                    self.ports.elapsed(),
                    "",
                    "window-closed",
                    "the window is closed; waiting for what is on its way, for 2 s at most",
                );
                let hurry = async {
                    self.signals.next().await;
                    hurried = true;
                };
                Some(window.end(&self.ports, hurry).await?)
            }
            Loss::None | Loss::Opens(..) | Loss::Waits(..) => None,
        };
        self.drain()?;
        self.ports.show_last(&mut self.output)?;
        if let Some(report) = &report {
            let ends = [(&report.tx, true), (&report.rx, false)];
            let ends = ends.map(|(end, egress)| &self.ports.find(end, egress).name);
            self.output.loss(self.ports.elapsed(), report, ends)?;
        }
        let left_out = self.ports.left_out();
        self.unwritten |= hand_over(self.output, self.capture, left_out, &mut self.signals).await?;
        Ok(match (end, report.map(|report| report.verdict)) {
            _ if self.unwritten => Exit::Usage,
            (End::Interrupted, _) => Exit::Interrupted,
            _ if hurried => Exit::Interrupted,
            (_, Some(Verdict::Loss)) => Exit::Failed,
            (End::Gone, _) | (_, Some(Verdict::Inconclusive | Verdict::Balanced)) => {
                Exit::Undecided
            }
            (End::Unread, None) if never_opened => Exit::Undecided,
            (End::Duration | End::Unread, _) => Exit::Passed,
        })
    }
}

/// Says on standard error that standard output could not be written; true if so.
fn report_failure(failure: Option<io::Error>) -> bool {
    let Some(error) = failure else {
        return false;
    };
    crate::output::note(format_args!(
        "validator: standard output cannot be written: {error}"
    ));
    true
}

/// Says on standard error that the capture could not be written, and returns the words.
fn report_capture(error: &io::Error) -> String {
    let message = format!("--pcap: cannot be written, and ends here: {error}");
    crate::output::note(format_args!("validator: {message}"));
    message
}

/// Waits for the readers of the output and of the capture to take the rest, until they stall or a
/// signal comes. `left_out` frames are missing in the capture. Returns true if one of both could
/// not be written.
async fn hand_over(
    output: Output,
    capture: Option<Capture>,
    left_out: u64,
    signals: &mut Signals,
) -> Result<bool> {
    let goes_on = Arc::new(AtomicBool::new(true));
    let shared = goes_on.clone();
    let mut stdout = output.stdout;
    let mut rest = spawn_blocking(move || {
        let goes_on = || shared.load(Ordering::Relaxed);
        let capture = capture.map(|capture| capture.finish(goes_on));
        let took_all = stdout.finish(PATIENCE, goes_on);
        (took_all, stdout, capture)
    });
    let ended = tokio::select! {
        ended = &mut rest => ended,
        () = signals.next() => {
            goes_on.store(false, Ordering::Relaxed);
            rest.await
        }
    };
    let (took_all, stdout, capture) = ended.context("standard output cannot be written")?;
    let too_slow = |reader: &str, dropped: String, took_all: bool| {
        let rest = if took_all { "" } else { ", and the last ones" };
        crate::output::note(format_args!(
            "validator: the reader of {reader} was too slow: {dropped} were dropped{rest}"
        ));
    };
    let mut unwritten = false;
    match capture {
        Some(Err(error)) => {
            report_capture(&error);
            unwritten = true;
        }
        Some(Ok(is_all)) if !is_all || left_out > 0 => {
            too_slow("the capture", format!("{left_out} frames"), is_all);
        }
        Some(_) | None => {}
    }
    let dropped = stdout.dropped();
    if !took_all || dropped > 0 {
        let dropped = format!("{dropped} lines or tables");
        too_slow("standard output", dropped, took_all);
    }
    Ok(unwritten | report_failure(stdout.failure()))
}

/// Progress of the judgement of loss.
enum Loss {
    /// Not requested.
    None,
    /// The window opens at that time.
    Opens(Instant, Prelude),
    /// The window is open. At that time the driver knows what it had sent when the window opened.
    Waits(Instant, LossWindow),
    Open(LossWindow),
}

impl Loss {
    /// Time of the next step.
    fn due(&self) -> Option<Instant> {
        match self {
            Self::Opens(at, _) | Self::Waits(at, _) => Some(*at),
            Self::None | Self::Open(_) => None,
        }
    }

    fn step(self, ports: &Ports) -> Result<Self> {
        Ok(match self {
            Self::Opens(_, prelude) => {
                let lag = prelude.lag;
                let window = prelude.open(ports)?;
                if lag.is_zero() {
                    Self::Open(window)
                } else {
                    Self::Waits(Instant::now() + lag, window)
                }
            }
            Self::Waits(_, mut window) => {
                window.read_driver_again()?;
                Self::Open(window)
            }
            other => other,
        })
    }
}

/// Signals that ask to stop. A lost terminal is one: what was measured may be in a file.
struct Signals([Signal; 3]);

impl Signals {
    fn new() -> Result<Self> {
        let listen = |kind| signal(kind).context("signals cannot be waited for");
        Ok(Self([
            listen(SignalKind::interrupt())?,
            listen(SignalKind::terminate())?,
            listen(SignalKind::hangup())?,
        ]))
    }

    /// Ends with the next of them.
    async fn next(&mut self) {
        let [interrupt, terminate, hangup] = &mut self.0;
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hangup.recv() => {}
        }
    }
}

async fn until(end: Option<Instant>) {
    match end {
        Some(end) => sleep_until(end).await,
        None => std::future::pending().await,
    }
}
