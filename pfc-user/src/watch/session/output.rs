//! Output of the counts: redrawn on a terminal, else lines.

use std::io::{self, IsTerminal, Write};

use console::Term;
use pfc_ebpf::units::Nanos;
use serde_json::{Value, json};

use super::PortName;
use crate::driver::bpf::watch::Reading;
use crate::watch::loss::Report;
use crate::watch::{json, text};

/// Events that stay on a terminal's screen.
const EVENTS: usize = 5;

/// Standard output, in one of three ways.
pub enum Output {
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
    /// A terminal where standard output is one.
    pub fn new(json: bool) -> Self {
        match (json, io::stdout().is_terminal()) {
            (true, _) => Self::Json,
            (false, true) => Self::Terminal {
                term: Term::stdout(),
                drawn: 0,
                events: Vec::new(),
            },
            (false, false) => Self::Lines,
        }
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
        match self {
            Self::Terminal { events, .. } => {
                events.push(line());
                if events.len() > EVENTS {
                    events.remove(0);
                }
                Ok(())
            }
            Self::Lines => print(&[line()]),
            Self::Json => object(&json::event(elapsed, interface, event, message)),
        }
    }

    /// Shows the readings of an interval.
    pub fn interval(&mut self, elapsed: Nanos, ports: &[Shown<'_>]) -> io::Result<()> {
        match self {
            Self::Terminal {
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
            Self::Lines => print(
                &ports
                    .iter()
                    .map(|shown| text::line(shown.port, elapsed, shown.before, shown.now))
                    .collect::<Vec<_>>(),
            ),
            Self::Json => ports.iter().try_for_each(|shown| {
                object(&json::counters(
                    shown.port,
                    elapsed,
                    shown.before,
                    shown.now,
                ))
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
        match self {
            Self::Terminal {
                term,
                drawn,
                events,
            } => {
                term.clear_last_lines(*drawn)?;
                *drawn = 0;
                print(&events.iter().cloned().chain(tables()).collect::<Vec<_>>())
            }
            Self::Lines => print(&tables()),
            Self::Json => ports.iter().try_for_each(|shown| {
                let mut value = json::counters(shown.port, elapsed, shown.before, shown.now);
                value["type"] = json!("summary");
                object(&value)
            }),
        }
    }

    /// Shows the judgement of loss.
    pub fn loss(&mut self, elapsed: Nanos, report: &Report) -> io::Result<()> {
        match self {
            Self::Terminal { .. } | Self::Lines => print(&text::loss(report)),
            Self::Json => {
                let mut value = serde_json::to_value(report)?;
                value["type"] = json!("loss");
                value["elapsed_seconds"] = json!(elapsed as f64 / 1e9);
                object(&value)
            }
        }
    }
}

fn print(lines: &[String]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    for line in lines {
        writeln!(out, "{line}")?;
    }
    out.flush()
}

fn object(value: &Value) -> io::Result<()> {
    print(&[value.to_string()])
}

/// Draws over what was drawn; what does not fit on the screen is left out. Returns how many lines
/// it drew.
fn draw(term: &Term, drawn: usize, lines: &[String]) -> io::Result<usize> {
    let (height, width) = term.size();
    term.move_cursor_up(drawn)?;
    let fitting = &lines[..lines.len().min(usize::from(height).saturating_sub(1))];
    for line in fitting {
        let line: String = line.chars().take(usize::from(width)).collect();
        term.clear_line()?;
        term.write_line(&line)?;
    }
    term.clear_to_end_of_screen()?;
    Ok(fitting.len())
}
