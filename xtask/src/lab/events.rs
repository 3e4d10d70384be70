//! What the lab waits for, in one queue.

use std::io::{BufRead, BufReader, Read};
use std::process::ExitStatus;
use std::sync::mpsc::Sender;
use std::thread;

use anyhow::{Context, Result};
use nix::sys::signal::{SigSet, Signal};

/// Something that happened.
#[derive(Debug)]
pub enum Event {
    /// A line of the guest's console.
    Line(String),
    /// There is no more of it: the guest has ended.
    ConsoleClosed,
    /// Somebody wants us to end.
    Signal(Signal),
    /// The validator has ended.
    Ended(ExitStatus),
}

/// SIGINT and SIGTERM, from now on, of this thread and those that it starts, as events: what was made has to be taken away first.
/// Programs that are started get them as ever.
pub struct Signals(SigSet);

impl Signals {
    /// Holds them back until they are asked for.
    pub fn hold() -> Result<Self> {
        let signals = SigSet::from_iter([Signal::SIGINT, Signal::SIGTERM]);
        signals.thread_block().context("SIGINT and SIGTERM cannot be blocked")?;
        Ok(Self(signals))
    }

    /// Starts to send them.
    pub fn send_to(&self, events: Sender<Event>) {
        let signals = self.0;
        thread::spawn(move || {
            while let Ok(signal) = signals.wait() {
                if events.send(Event::Signal(signal)).is_err() {
                    break;
                }
            }
        });
    }
}

/// Sends the lines of a console, until it ends.
pub fn send_lines(console: impl Read + Send + 'static, events: Sender<Event>) {
    thread::spawn(move || {
        for line in BufReader::new(console).split(b'\n').map_while(Result::ok) {
            let line = String::from_utf8_lossy(&line).trim_end().to_owned();
            if events.send(Event::Line(line)).is_err() {
                return;
            }
        }
        // Nobody may listen any more, which is well.
        let _ = events.send(Event::ConsoleClosed);
    });
}
