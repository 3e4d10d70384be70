//! Output of the counts: redrawn on a terminal, else lines.

use std::env;
use std::ffi::OsString;
use std::io::{self, IsTerminal, Write};

use console::Term;
use pfc_ebpf::units::Nanos;
use serde_json::{Value, json};

use super::PortName;
use crate::driver::bpf::watch::Reading;
use crate::output;
use crate::report::plain;
use crate::watch::loss::Report;
use crate::watch::{json, text};

/// Events that stay on a terminal's screen.
const EVENTS: usize = 5;

/// Standard output. A reader that goes away, or a full disk, ends this output alone.
pub struct Output {
    form: Form,
    stdout: output::Output<io::Stdout>,
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
    pub fn new(json: bool) -> Self {
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
        Self {
            form,
            stdout: output::stdout().that_goes_on(),
        }
    }

    /// True if the reader has gone away, or an error has ended this output.
    pub fn is_closed(&self) -> bool {
        self.stdout.is_closed()
    }

    /// Takes the error that ended this output.
    pub fn failure(&mut self) -> Option<io::Error> {
        self.stdout.failure()
    }

    /// Shows what happened; `interface` may be empty.
    pub fn event(
        &mut self,
        elapsed: Nanos,
        interface: &str,
        event: &str,
        message: &str,
    ) -> io::Result<()> {
        let line = || {
            if interface.is_empty() {
                message.to_owned()
            } else {
                format!("{interface}: {message}")
            }
        };
        let out = &mut self.stdout;
        match &mut self.form {
            Form::Terminal { events, .. } => {
                events.push(line());
                if events.len() > EVENTS {
                    events.remove(0);
                }
                Ok(())
            }
            Form::Lines => print(out, &[line()]),
            Form::Json => object(out, &json::event(elapsed, interface, event, message)),
        }
    }

    /// Shows the readings of an interval.
    pub fn interval(&mut self, elapsed: Nanos, ports: &[Shown<'_>]) -> io::Result<()> {
        let out = &mut self.stdout;
        match &mut self.form {
            Form::Terminal {
                term,
                drawn,
                events,
            } => {
                let tables = ports
                    .iter()
                    .flat_map(|shown| text::table(shown.port, elapsed, shown.before, shown.now));
                let lines: Vec<String> = events.iter().cloned().chain(tables).collect();
                *drawn = draw(term, *drawn, &lines)?;
                Ok(())
            }
            Form::Lines => print(
                out,
                &ports
                    .iter()
                    .map(|shown| text::line(shown.port, elapsed, shown.before, shown.now))
                    .collect::<Vec<_>>(),
            ),
            Form::Json => ports.iter().try_for_each(|shown| {
                object(
                    out,
                    &json::counters(shown.port, elapsed, shown.before, shown.now),
                )
            }),
        }
    }

    /// Shows all that was counted, at the end. `ports` have their first reading as the one before.
    pub fn last(&mut self, elapsed: Nanos, ports: &[Shown<'_>]) -> io::Result<()> {
        let tables = || {
            ports
                .iter()
                .flat_map(|shown| text::table(shown.port, elapsed, shown.before, shown.now))
                .collect::<Vec<_>>()
        };
        let out = &mut self.stdout;
        match &mut self.form {
            Form::Terminal {
                term,
                drawn,
                events,
            } => {
                term.clear_last_lines(*drawn)?;
                *drawn = 0;
                print(
                    out,
                    &events.iter().cloned().chain(tables()).collect::<Vec<_>>(),
                )
            }
            Form::Lines => print(out, &tables()),
            Form::Json => ports.iter().try_for_each(|shown| {
                let mut value = json::counters(shown.port, elapsed, shown.before, shown.now);
                value["type"] = json!("summary");
                object(out, &value)
            }),
        }
    }

    /// Shows the judgement of loss.
    pub fn loss(&mut self, elapsed: Nanos, report: &Report) -> io::Result<()> {
        let out = &mut self.stdout;
        match &mut self.form {
            Form::Terminal { .. } | Form::Lines => print(out, &text::loss(report)),
            Form::Json => {
                let mut value = serde_json::to_value(report)?;
                value["type"] = json!("loss");
                value["elapsed_seconds"] = json!(elapsed as f64 / 1e9);
                object(out, &value)
            }
        }
    }
}

/// True of the name of a terminal that moves its cursor.
fn is_capable(term: OsString) -> bool {
    term != "dumb" && !term.is_empty()
}

/// Prints lines. The kernel allows control characters in the name of an interface.
fn print(out: &mut impl Write, lines: &[String]) -> io::Result<()> {
    for line in lines {
        writeln!(out, "{}", plain::text(line))?;
    }
    out.flush()
}

fn object(out: &mut impl Write, value: &Value) -> io::Result<()> {
    writeln!(out, "{value}")?;
    out.flush()
}

/// Draws over what was drawn; what does not fit on the screen is left out. Returns how many lines
/// it drew.
fn draw(term: &Term, drawn: usize, lines: &[String]) -> io::Result<usize> {
    let (height, width) = term.size();
    term.move_cursor_up(drawn)?;
    let fitting = &lines[..lines.len().min(usize::from(height).saturating_sub(1))];
    for line in fitting {
        let line: String = plain::text(line).chars().take(usize::from(width)).collect();
        term.clear_line()?;
        term.write_line(&line)?;
    }
    term.clear_to_end_of_screen()?;
    Ok(fitting.len())
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
