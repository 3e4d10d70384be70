//! A guest that works through a script and ends: the steps it did, and how they ended.

use std::path::Path;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::events;
use super::guest::{Guest, Machine};
use crate::step;

/// Shell functions of the scripts. `step NAME COMMAND ...` runs a command that must return 0, `ends
/// CODE NAME COMMAND ...` one that must return that code. `tests PROGRAM FILTER ...` runs the tests
/// that match each filter, which is a step of its own.
pub const FUNCTIONS: &str = r#"
ends() { expected=$1 name=$2; shift 2; echo "lab: begins $name"; "$@" 2>&1; found=$?
    echo "lab: ended $found $expected $(cut -d' ' -f1 /proc/uptime) $name"; }
step() { ends 0 "$@"; }
tests() { program=$1; shift
    for filter in "$@"; do step "$program $filter" /tools/$program $filter --test-threads=1; done; }
"#;
/// Last line of a script.
pub const DONE: &str = "lab: done";
/// Start of a line that reports a skipped test, which no script expects.
const SKIPPED: &str = "lab: skipped ";
/// Start of a line with a row of the table.
const ROW: &str = "lab: row ";
/// Start of libtest's closing line.
const RESULT: &str = "test result: ";

/// Outcome of a script.
#[derive(Debug, Default)]
pub struct Transcript {
    /// Steps that ended as required.
    pub passed: usize,
    /// One line per failed step.
    pub failed: Vec<String>,
    /// Rows of the table that the script printed.
    pub rows: Vec<String>,
    /// Time that the guests took.
    pub elapsed: Duration,
    /// Tests that passed in the step that is going on; `None` before a test program ended in it.
    tests: Option<u64>,
}

impl Transcript {
    /// Appends another guest's transcript.
    pub fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed.extend(other.failed);
        self.rows.extend(other.rows);
        self.elapsed += other.elapsed;
    }

    /// Takes a line of the console.
    fn hear(&mut self, line: &str) {
        if line.starts_with("lab: begins ") {
            self.tests = None;
        } else if let Some(passed) = line.strip_prefix(RESULT).and_then(passed) {
            *self.tests.get_or_insert(0) += passed;
        } else if let Some(step) = line.strip_prefix("lab: ended ") {
            // libtest's exit code is 0 where a filter matches no test.
            let empty = self.tests.take() == Some(0);
            match step.splitn(4, ' ').collect::<Vec<_>>()[..] {
                [found, expected, _, name] if found == expected && empty => {
                    self.failed
                        .push(format!("{name}: expected tests that match, found none"));
                }
                [found, expected, ..] if found == expected => self.passed += 1,
                [found, expected, _, name] => {
                    let line = format!("{name}: expected exit code {expected}, found {found}");
                    self.failed.push(line);
                }
                _ => self.failed.push(format!("not understood: {line}")),
            }
        } else if let Some(test) = line.strip_prefix(SKIPPED) {
            self.failed.push(format!("skipped in the guest: {test}"));
        } else if let Some(row) = line.strip_prefix(ROW) {
            self.rows.push(row.to_owned());
        }
    }
}

/// Tests that passed, by the rest of libtest's closing line.
fn passed(result: &str) -> Option<u64> {
    let (_, counts) = result.split_once(". ")?;
    counts.split_once(" passed")?.0.parse().ok()
}

/// Boots the machine and shows the output of its script, for at most `limit`. A guest that ends
/// before its last line counts as a failed step.
pub fn run(machine: &Machine<'_>, limit: Duration) -> Result<Transcript> {
    let (sender, events) = mpsc::channel();
    events::send_signals(sender.clone())?;
    let start = Instant::now();
    let mut transcript = Transcript::default();
    let mut guest = Guest::start(machine, sender)?;
    let ended = guest.wait_for(DONE, limit, &events, |line| {
        println!("    {:>4} s | {line}", start.elapsed().as_secs());
        transcript.hear(line);
    });
    if let Err(error) = ended {
        transcript.failed.push(format!("{error:#}"));
    }
    transcript.elapsed = start.elapsed();
    println!(
        "    guest ended after {}",
        step::elapsed(transcript.elapsed)
    );
    Ok(transcript)
}

/// Prints the failures and a closing line like libtest's. Fails if there are any.
pub fn close(passed: usize, failed: &[String]) -> Result<()> {
    for line in failed {
        println!("failed: {line}");
    }
    let word = if failed.is_empty() { "ok" } else { "FAILED" };
    println!(
        "test result: {word}. {passed} passed; {} failed; 0 ignored",
        failed.len()
    );
    if !failed.is_empty() {
        bail!("{} of the lab's steps failed", failed.len());
    }
    Ok(())
}

/// Returns the test executables of pfc-user by name, and builds them first if necessary.
pub fn test_programs(root: &Path, names: &[&str]) -> Result<Vec<std::path::PathBuf>> {
    let mut cargo = step::cargo();
    // With the features of `cargo xtask test`, which then finds them built.
    cargo.args(["test", "--package", "pfc-user", "--features", "otg"]);
    cargo.args(["--release", "--no-run"]);
    cargo.args(["--message-format", "json"]).current_dir(root);
    names.iter().for_each(|name| {
        cargo.args(["--test", name]);
    });
    let messages = step::output(&mut cargo)?;
    let executable = |name: &&str| {
        let mut of_name = messages.lines().filter_map(|line| {
            let message: serde_json::Value = serde_json::from_str(line).ok()?;
            let found = message["target"]["name"] == **name;
            found.then(|| message["executable"].as_str().map(Into::into))?
        });
        of_name
            .next_back()
            .with_context(|| format!("cargo made no test program {name}"))
    };
    names.iter().map(executable).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_counts_by_its_exit_code_and_a_skipped_test_is_a_failure() {
        let mut transcript = Transcript::default();
        for line in [
            "lab: begins a",
            "lab: ended 0 0 3.10 a",
            "lab: ended 1 0 3.20 b and c",
            "lab: ended 2 2 3.30 d",
            "lab: skipped root_x: needs root",
            "lab: row igb | native",
            "lab: ended",
            "test result: ok. 5 passed",
        ] {
            transcript.hear(line);
        }
        assert_eq!(transcript.passed, 2);
        let expected = [
            "b and c: expected exit code 0, found 1",
            "skipped in the guest: root_x: needs root",
        ];
        assert_eq!(transcript.failed[..2], expected);
        assert_eq!(transcript.rows, ["igb | native"]);
    }

    #[test]
    fn a_step_whose_filter_matches_no_test_is_a_failure() {
        const NONE: &str =
            "test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 7 filtered out";
        const TWO: &str =
            "test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 5 filtered out";
        let mut transcript = Transcript::default();
        for (name, results) in [
            ("a", &[TWO][..]),
            ("b", &[NONE]),
            ("c", &[NONE, TWO]),
            ("d", &[]),
        ] {
            transcript.hear(&format!("lab: begins {name}"));
            results.iter().for_each(|line| transcript.hear(line));
            transcript.hear(&format!("lab: ended 0 0 3.10 {name}"));
        }
        assert_eq!(transcript.passed, 3);
        assert_eq!(
            transcript.failed,
            ["b: expected tests that match, found none"]
        );
    }
}
