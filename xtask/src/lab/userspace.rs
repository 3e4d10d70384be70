//! `cargo xtask lab userspace`: setup and demo as a newcomer meets them, in a chroot with a fresh
//! Debian made of packages. The kernel is this machine's.

pub mod chroot;
pub mod debian;

use std::fmt;
use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Result, bail};

use self::chroot::Chroot;
use self::debian::Suite;
use crate::setup::{self, Group};
use crate::step::{self, step};

#[derive(clap::Args)]
pub struct Userspace {
    #[command(flatten)]
    setup: setup::Install,
    /// The release of Debian (default: all, one after the other)
    #[arg(long, value_enum)]
    suite: Option<Suite>,
    /// Run another command than setup and demo on the (first) fresh Debian, such as bash
    #[arg(last = true)]
    command: Vec<String>,
}

/// A newcomer's first commands, as in docs/getting-started.md.
const FIRST: [&str; 2] = [
    "apt-get update",
    "apt-get install --no-install-recommends ca-certificates cargo-web git",
];
/// Setup is killed at each of these lines: while dpkg unpacks the largest package, and when cargo
/// compiles the linker itself.
const KILLED_AT: [&str; 2] = ["Unpacking rust-web-src ", "Compiling bpf-linker "];
/// The validator's exit code for an inconclusive run, as on a busy machine.
const INCONCLUSIVE: i32 = 3;
/// Number of attempts at an inconclusive demo.
const TRIES: usize = 3;

/// Ends with a line like libtest's, or with the exit code of the other command.
pub fn run(root: &Path, options: &Userspace) -> Result<ExitCode> {
    if !step::is_root() {
        bail!("a chroot needs root; run it with sudo or as root");
    }
    setup::run(&[Group::Userspace], &options.setup)?;
    let suites = options
        .suite
        .map_or(Suite::ALL.to_vec(), |suite| vec![suite]);
    if let Some(suite) = suites.first().filter(|_| !options.command.is_empty()) {
        let status = chroot::with(root, *suite, |chroot| chroot.run(&options.command))?;
        let code = status.code().and_then(|code| u8::try_from(code).ok());
        return Ok(code.map_or(ExitCode::FAILURE, ExitCode::from));
    }
    let mut tally = Tally::default();
    for suite in suites {
        let before = tally.failed;
        let tried = chroot::with(root, suite, |chroot| {
            newcomer(chroot, suite.name(), &mut tally)?;
            if tally.failed > before {
                bail!("{}: failed, as said above", suite.name());
            }
            Ok(())
        });
        if let Err(error) = tried {
            println!("{error:#}");
            tally.failed = tally.failed.max(before + 1);
        }
    }
    println!("{tally}");
    Ok(if tally.failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn newcomer(chroot: &Chroot, name: &str, tally: &mut Tally) -> Result<()> {
    for line in FIRST {
        chroot.must(&format!("{line} --yes"))?;
    }
    tally.count(&format!("{name}: setup"), setup_goes_on(chroot));
    tally.count(&format!("{name}: demo"), demo(chroot));
    Ok(())
}

/// After each kill the next call continues; in the end nothing is missing.
fn setup_goes_on(chroot: &Chroot) -> Result<Outcome> {
    for line in KILLED_AT {
        step(&format!("cargo xtask setup, killed at `{line}`"), || {
            chroot.kill_at(&chroot::words("cargo xtask setup"), line)
        })?;
    }
    chroot.must("cargo xtask setup")?;
    chroot.must("cargo xtask setup --no-install")?;
    Ok(Outcome::Passed)
}

/// Stalls of a busy machine come and go, and at the second attempt everything is built already.
fn demo(chroot: &Chroot) -> Result<Outcome> {
    let demo = "cargo xtask demo --plan smoke";
    for _ in 0..TRIES {
        let status = step(demo, || chroot.run(&chroot::words(demo)))?;
        match status.code() {
            Some(0) => return Ok(Outcome::Passed),
            Some(INCONCLUSIVE) => {}
            _ => bail!("expected every case to pass, found {status}"),
        }
    }
    Ok(Outcome::Ignored)
}

/// Starts the program appended to it in mount and process namespaces of its own. Everything in them
/// ends with this process.
pub fn bound() -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "--", "unshare"]);
    command.args(["--mount", "--pid", "--fork", "--kill-child"]);
    command
}

enum Outcome {
    Passed,
    /// Inconclusive.
    Ignored,
}

#[derive(Default)]
struct Tally {
    passed: usize,
    failed: usize,
    ignored: usize,
}

impl Tally {
    fn count(&mut self, name: &str, outcome: Result<Outcome>) {
        match outcome {
            Ok(Outcome::Passed) => {
                self.passed += 1;
                println!("test {name} ... ok");
            }
            Ok(Outcome::Ignored) => {
                self.ignored += 1;
                println!("test {name} ... ignored, inconclusive on this machine now");
            }
            Err(error) => {
                self.failed += 1;
                println!("test {name} ... FAILED\n    {error:#}");
            }
        }
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            passed,
            failed,
            ignored,
        } = self;
        let word = if *failed == 0 { "ok" } else { "FAILED" };
        write!(
            f,
            "test result: {word}. {passed} passed; {failed} failed; {ignored} ignored"
        )
    }
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;

    use super::*;

    #[test]
    fn the_page_for_newcomers_begins_with_what_is_tried() {
        let page = include_str!("../../../docs/getting-started.md");
        for line in FIRST {
            assert!(page.contains(line), "{line}");
        }
        assert!(page.lines().all(|line| line.chars().count() <= 100));
    }

    #[test]
    fn what_cannot_be_judged_is_no_failure() {
        let mut tally = Tally::default();
        tally.count("a", Ok(Outcome::Passed));
        tally.count("b", Ok(Outcome::Ignored));
        let ok = "test result: ok. 1 passed; 0 failed; 1 ignored";
        assert_eq!(tally.to_string(), ok);
        tally.count("c", Err(anyhow!("none")));
        let failed = "test result: FAILED. 1 passed; 1 failed; 1 ignored";
        assert_eq!(tally.to_string(), failed);
    }
}
