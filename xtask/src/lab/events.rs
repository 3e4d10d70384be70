//! The events that the lab waits for, in one queue.

use std::io::{BufRead, BufReader, Read};
use std::process::ExitStatus;
use std::sync::mpsc::Sender;
use std::thread;

use anyhow::{Context, Result};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;

/// An event.
#[derive(Debug)]
pub enum Event {
    /// A line of the guest's console.
    Line(String),
    /// The end of the console: the guest has ended.
    ConsoleClosed,
    /// This process received a signal.
    Signal(i32),
    /// The validator has ended.
    Ended(ExitStatus),
}

/// Turns SIGINT and SIGTERM into events while there is a receiver, so that the lab can clean up
/// first. Programs started from now on receive the signals as usual.
pub fn send_signals(events: Sender<Event>) -> Result<()> {
    let mut signals =
        Signals::new([SIGINT, SIGTERM]).context("SIGINT and SIGTERM cannot be handled")?;
    thread::spawn(move || {
        for signal in signals.forever() {
            if events.send(Event::Signal(signal)).is_err() {
                // Ends this process.
                let _ = emulate_default_handler(signal);
            }
        }
    });
    Ok(())
}

/// Sends the lines of a console until it ends.
pub fn send_lines(console: impl Read + Send + 'static, events: Sender<Event>) {
    thread::spawn(move || {
        for line in BufReader::new(console).split(b'\n').map_while(Result::ok) {
            let line = String::from_utf8_lossy(&line).trim_end().to_owned();
            if events.send(Event::Line(line)).is_err() {
                return;
            }
        }
        // There may be no receiver left, which is fine.
        let _ = events.send(Event::ConsoleClosed);
    });
}
