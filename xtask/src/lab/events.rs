//! What the lab waits for, in one queue.

use std::io::{BufRead, BufReader, Read};
use std::process::ExitStatus;
use std::sync::mpsc::Sender;
use std::thread;

use anyhow::{Context, Result};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;

/// Something that happened.
#[derive(Debug)]
pub enum Event {
    /// A line of the guest's console.
    Line(String),
    /// There is no more of it: the guest has ended.
    ConsoleClosed,
    /// Somebody wants us to end.
    Signal(i32),
    /// The validator has ended.
    Ended(ExitStatus),
}

/// Makes events of SIGINT and SIGTERM, as long as anybody takes them: what was made has to be taken away first. Programs that are
/// started from now on get them as ever.
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
