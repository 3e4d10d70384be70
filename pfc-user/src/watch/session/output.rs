//! Output of the counts: redrawn on a terminal, else lines.

use std::env;
use std::ffi::OsString;
use std::fmt::Write;
use std::fs::File;
use std::io::{self, IsTerminal};
use std::os::fd::AsFd;

use console::Term;
use pfc_ebpf::units::Nanos;
use serde_json::{Value, json};

use super::PortName;
use crate::driver::bpf::watch::Reading;
use crate::output::Queue;
use crate::report::plain;
use crate::watch::loss::Report;
use crate::watch::{json, text};

/// Events that stay on a terminal's screen.
const EVENTS: usize = 5;

/// Standard output. A reader that goes away, or a full disk, ends this output alone; one that
/// stalls holds up nothing.
pub struct Output {
    form: Form,
    /// What its reader has not taken yet.
    pub stdout: Queue,
    /// Dropped pieces that were reported.
    reported: u64,
}

/// One of three ways to show counts.
enum Form {
    /// A table that is drawn over.
    Terminal {
        /// Standard output.
        term: Term,
        /// Lines drawn that the next drawing begins at.
        drawn: usize,
        /// The last events.
        events: Vec<String>,
    },
    /// A line for each port and interval.
    Lines,
    /// An object for each port and interval.
    Json,
}

/// Two readings of a port, to be shown.
pub struct Shown<'a> {
    /// The port.
    pub port: &'a PortName,
    /// The reading before.
    pub before: &'a Reading,
    /// The present one.
    pub now: &'a Reading,
}

impl Output {
    /// A terminal where standard output is one that can draw over what it has shown.
    pub fn new(json: bool) -> io::Result<Self> {
        let redraws = io::stdout().is_terminal() && env::var_os("TERM").is_some_and(is_capable);
        let form = match (json, redraws) {
            (true, _) => Form::Json,
            (false, true) => Form::Terminal {
                term: Term::stdout(),
                drawn: 0,
                events: Vec::new(),
            },
            (false, false) => Form::Lines,
        };
        // By a descriptor of its own: a write that stalls keeps no lock of standard output.
        let stdout = io::stdout().as_fd().try_clone_to_owned()?;
        Ok(Self {
            form,
            stdout: Queue::new(File::from(stdout)),
            reported: 0,
        })
    }

    /// Shows what happened; `interface` may be empty.
    pub fn event(&mut self, elapsed: Nanos, interface: &str, event: &str, message: &str) {
        let line = || {
            if interface.is_empty() {
                message.to_owned()
            } else {
                format!("{interface}: {message}")
            }
        };
        match &mut self.form {
            Form::Terminal { events, .. } => {
                events.push(line());
                if events.len() > EVENTS {
                    events.remove(0);
                }
            }
            Form::Lines => self.print(&[line()]),
            Form::Json => self.object(&json::event(elapsed, interface, event, message)),
        }
    }

    /// Shows the readings of an interval.
    pub fn interval(&mut self, elapsed: Nanos, ports: &[Shown<'_>]) {
        self.report_dropped(elapsed);
        match &mut self.form {
            Form::Terminal {
                term,
                drawn,
                events,
            } => {
                let size = term.size();
                let rows = usize::from(size.0).saturating_sub(1);
                let lines = text::screen(elapsed, ports, events, rows);
                if self.stdout.put(drawing(*drawn, &lines, size.1.into())) {
                    *drawn = lines.len();
                }
            }
            Form::Lines => {
                let line = |shown: &Shown| text::line(shown.port, elapsed, shown.before, shown.now);
                self.print(&ports.iter().map(line).collect::<Vec<_>>());
            }
            Form::Json => {
                for shown in ports {
                    let value = json::counters(shown.port, elapsed, shown.before, shown.now);
                    self.object(&value);
                }
            }
        }
    }

    /// Shows all that was counted, at the end. `ports` have their first reading as the one before.
    pub fn last(&mut self, elapsed: Nanos, ports: &[Shown<'_>]) {
        self.report_dropped(elapsed);
        let tables = || {
            ports
                .iter()
                .flat_map(|shown| text::table(shown.port, elapsed, shown.before, shown.now))
        };
        match &mut self.form {
            Form::Terminal { drawn, events, .. } => {
                self.stdout.put(drawing(*drawn, &[], 0));
                *drawn = 0;
                let lines: Vec<_> = std::mem::take(events).into_iter().chain(tables()).collect();
                self.print(&lines);
            }
            Form::Lines => self.print(&tables().collect::<Vec<_>>()),
            Form::Json => {
                for shown in ports {
                    let mut value = json::counters(shown.port, elapsed, shown.before, shown.now);
                    value["type"] = json!("summary");
                    self.object(&value);
                }
            }
        }
    }

    /// Shows the judgement of loss between the two ends of a pair, the sending one first.
    pub fn loss(
        &mut self,
        elapsed: Nanos,
        report: &Report,
        ends: [&PortName; 2],
    ) -> serde_json::Result<()> {
        match &mut self.form {
            Form::Terminal { .. } | Form::Lines => self.print(&text::loss(report)),
            Form::Json => {
                let value = json::loss(report, elapsed, ends)?;
                self.object(&value);
            }
        }
        Ok(())
    }

    /// Says once that the reader did not take all, when it may take more again.
    fn report_dropped(&mut self, elapsed: Nanos) {
        let dropped = self.stdout.dropped();
        if dropped > self.reported {
            self.reported = dropped;
            let message = format!("the reader of this output was too slow: {dropped} dropped");
            self.event(elapsed, "", "output-dropped", &message);
        }
    }

    /// Prints lines. The kernel allows control characters in the name of an interface.
    fn print(&mut self, lines: &[String]) {
        let lines: String = lines.iter().map(|line| plain::text(line) + "\n").collect();
        self.stdout.put(lines.into_bytes());
    }

    fn object(&mut self, value: &Value) {
        self.stdout.put(format!("{value}\n").into_bytes());
    }
}

/// Returns true for the name of a terminal that moves its cursor.
fn is_capable(term: OsString) -> bool {
    term != "dumb" && !term.is_empty()
}

/// Control sequences (ECMA-48, 8.3) that draw over the last `drawn` lines, each cut to `width`.
fn drawing(drawn: usize, lines: &[String], width: usize) -> Vec<u8> {
    let mut text = String::new();
    if drawn > 0 {
        // Infallible: a string.
        let _ = write!(text, "\x1b[{drawn}A");
    }
    for line in lines {
        let line: String = plain::text(line).chars().take(width).collect();
        let _ = writeln!(text, "\r\x1b[2K{line}");
    }
    text.push_str("\r\x1b[0J");
    text.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_that_cannot_move_its_cursor_gets_lines() {
        assert!(is_capable("xterm".into()));
        assert!(!is_capable("dumb".into()));
        assert!(!is_capable("".into()));
    }
}
