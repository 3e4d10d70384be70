//! Progress of a run: a bar on a terminal, otherwise a line for each repetition.

use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use console::Term;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use validator_core::verdict::Event;

use super::layout::{colour, paint};
use crate::output::Stderr;

/// Interval at which the elapsed time is redrawn; long, since the tester needs the CPU.
const TICK: Duration = Duration::from_millis(500);
/// Drawings a second at most.
const DRAWINGS: u8 = 20;

/// Displays events.
pub struct Progress<W> {
    out: W,
    bar: Option<ProgressBar>,
    colour: bool,
    repetitions: usize,
    done: usize,
    repetition: String,
}

impl Progress<Stderr> {
    /// Displays events on standard error. A reader that stalls, a stopped terminal too, does not
    /// hold up the run.
    pub fn on_stderr() -> Self {
        let mut progress = Self::plain(Stderr);
        progress.colour = colour(&io::stderr());
        if io::stderr().is_terminal() {
            let terminal = Term::read_write_pair(io::stdin(), Stderr);
            let target = ProgressDrawTarget::term(terminal, DRAWINGS);
            let bar = ProgressBar::with_draw_target(None, target);
            bar.set_style(
                ProgressStyle::with_template("{prefix} {pos}/{len} {wide_msg} {elapsed}")
                    .expect("a constant template"),
            );
            progress.bar = Some(bar);
        }
        progress
    }
}

impl<W: Write> Progress<W> {
    /// Writes lines to `out`.
    pub fn plain(out: W) -> Self {
        Self {
            out,
            bar: None,
            colour: false,
            repetitions: 0,
            done: 0,
            repetition: String::new(),
        }
    }

    /// Displays `event`. Write errors are ignored: a closed stderr must not abort the run.
    pub fn show(&mut self, event: &Event) {
        match event {
            Event::CaseBegins { case, repetitions } => {
                (self.repetitions, self.done) = (*repetitions, 0);
                match &self.bar {
                    Some(bar) => {
                        bar.set_length(*repetitions as u64);
                        bar.set_prefix(case.id);
                        bar.set_message("");
                        bar.reset();
                        bar.enable_steady_tick(TICK);
                    }
                    None => {
                        let plural = if *repetitions == 1 { "" } else { "s" };
                        self.line(&format!("{}: {repetitions} repetition{plural}", case.id));
                    }
                }
            }
            Event::RepetitionBegins { name, seconds } => {
                self.repetition = format!("{name} (at least {seconds:.1} s)");
                match &self.bar {
                    Some(bar) => bar.set_message(self.repetition.clone()),
                    None => {
                        let (next, all) = (self.done + 1, self.repetitions);
                        self.line(&format!("  {next}/{all} {}", self.repetition));
                    }
                }
            }
            Event::PhaseBegins { phase } => {
                if let Some(bar) = &self.bar {
                    bar.set_message(format!("{}: {phase}", self.repetition));
                }
            }
            Event::RepetitionEnds => {
                self.done += 1;
                if let Some(bar) = &self.bar {
                    bar.set_position(self.done as u64);
                }
            }
            Event::CaseEnds { result } => {
                let verdict = paint(result.verdict.word(), result.verdict, self.colour);
                self.line(&format!("{}: {verdict}", result.case));
                if let Some(bar) = &self.bar {
                    bar.disable_steady_tick();
                    bar.finish_and_clear();
                }
            }
            Event::Note(text) => self.line(text),
        }
    }

    fn line(&mut self, text: &str) {
        // In one piece: a reader that stalls loses whole lines.
        let line = format!("{text}\n");
        let mut write = || drop(self.out.write_all(line.as_bytes()));
        match &self.bar {
            Some(bar) => bar.suspend(write),
            None => write(),
        }
    }
}

impl<W> Drop for Progress<W> {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
