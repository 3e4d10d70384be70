//! `cargo xtask screenshots`: the pictures of the documentation, from real runs.
//!
//! Runs the simulated devices, a good and a faulty one, and `validator watch` beside a run; renders
//! reports and terminals in Debian's Chromium; and writes `docs/images`.

mod live;
mod picture;
mod terminal;

use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};

use self::picture::Studio;
use self::terminal::{Screen, Size};
use crate::lab::archive::cannot_write;
use crate::step::step;
use crate::{demo, setup};

/// Where the pictures are.
const IMAGES: &str = "docs/images";
/// Results and pages that they are made from.
const FOLDER: &str = "target/screenshots";
/// The pictures.
const REPORT: &str = "report.png";
const REPORT_DARK: &str = "report-dark.png";
const TIME_LINE: &str = "time-line.png";
const SUMMARY: &str = "summary.png";
const WATCH: &str = "watch.png";

/// Columns and rows of the terminal for summaries: all of one has to fit.
const TERMINAL: Size = Size::new(100, 200);
/// A window for a report.
const WINDOW: (u32, u32) = (1120, 900);
/// A plan of some seconds on the simulated switch.
const RUN: &str = "run --testbed configs/testbeds/sim.toml --plan smoke";
/// The cases that a good switch passes on any machine: no stall of it is taken for a dip.
const GOOD: &str = "--case pfc.pause-single-lossless --case pfc.pause-multi-lossless";
/// A fault of the switch, as the README has it.
const FAULTY: &str = "--set testbed.dut.faults=[\"leaks=100\"]";
/// The place in a report where its first time line is.
const FIRST_REPETITION: &str = "case-0-repetition-0";

#[derive(clap::Args)]
pub struct Screenshots {
    #[command(flatten)]
    setup: setup::Install,
    /// Draw the pictures of the runs of the last call, without new runs
    #[arg(long)]
    again: bool,
}

/// Builds, runs and writes the pictures.
pub fn run(root: &Path, options: &Screenshots) -> Result<ExitCode> {
    let folder = root.join(FOLDER);
    let studio = Studio::prepare(&folder)?;
    if !options.again {
        demo::prepare(root, &options.setup)?;
        step("a good switch", || {
            of_run(root, &folder.join("good"), GOOD, 0)
        })?;
        step("a faulty switch", || {
            of_run(root, &folder.join("faulty"), FAULTY, 1)
        })?;
        let watched = step("a switch that is watched", || live::watch(root, &folder))?;
        watched.write(&folder.join("watch.txt"))?;
    }
    let images = root.join(IMAGES);
    fs::create_dir_all(&images).with_context(|| cannot_write(&images))?;
    let page = |name: &str| folder.join(name).join("report.html");
    let screen = |name: &str| Screen::read(&folder.join(name));
    step("pictures", || {
        let [good, faulty] = ["good", "faulty"].map(page);
        studio.page(&faulty, WINDOW, false, &images.join(REPORT))?;
        studio.page(&good, WINDOW, true, &images.join(REPORT_DARK))?;
        let line = images.join(TIME_LINE);
        studio.part(&faulty, FIRST_REPETITION, WINDOW, &line)?;
        studio.terminal(&screen("good.txt")?, &images.join(SUMMARY))?;
        studio.terminal(&screen("watch.txt")?, &images.join(WATCH))
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Runs the plan with its results in `out`, and what it printed on a terminal beside them.
fn of_run(root: &Path, out: &Path, options: &str, expected: i32) -> Result<()> {
    let mut validator = Command::new(root.join("target/release/validator"));
    validator
        .args(RUN.split(' '))
        .args(options.split(' '))
        .arg("--out")
        .arg(out)
        .current_dir(root);
    let (screen, status) = terminal::run(&mut validator, TERMINAL, |_| false)?;
    if status.code() != Some(expected) {
        bail!(
            "expected the exit code {expected}, found {status}; a busy machine can make a run \
             inconclusive:\n{}",
            screen.text()
        );
    }
    // As a shell needs it.
    let typed = format!("validator {RUN} \\\n      {}", quoted(options));
    screen.titled(&typed).write(&out.with_extension("txt"))
}

/// An option whose value a shell would change, in quotes.
fn quoted(options: &str) -> String {
    match options.split_once(' ') {
        Some((option, value)) if value.contains(['[', '"']) => format!("{option} '{value}'"),
        _ => options.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_leaves_what_was_typed_alone() {
        assert_eq!(quoted(FAULTY), "--set 'testbed.dut.faults=[\"leaks=100\"]'");
        assert_eq!(quoted(GOOD), GOOD);
    }
}
