//! `cargo xtask test`: every test, from a bare machine. Ends with one line: `N passed, N failed, N skipped`.

use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::{env, fmt, fs};

use anyhow::{Context, Result, bail};

use crate::build_ebpf;
use crate::lab::rxe;
use crate::setup::{self, EVERYTHING};
use crate::step::{self, step};

#[derive(clap::Args)]
pub struct Test {
    /// The long tests too
    #[arg(long)]
    full: bool,
    #[command(flatten)]
    setup: setup::Install,
}

/// Tests that may be skipped where CI is true, which makes any other skip a failure: the long ones, which `--full` adds.
const EXPECTED_SKIPS: [&str; 1] = ["root_a_good_switch_never_fails_on_a_busy_machine"];

/// Outcome of all tests. A step that is no test and fails counts as a failed one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Tally {
    passed: usize,
    failed: usize,
    skipped: usize,
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed, {} skipped", self.passed, self.failed, self.skipped)
    }
}

/// Goes through all steps, also after one that failed.
pub fn run(root: &Path, options: &Test) -> Result<ExitCode> {
    let skips = root.join("target/skipped-tests");
    if skips.exists() {
        fs::remove_file(&skips).with_context(|| format!("cannot remove {}", skips.display()))?;
    }
    let mut suite = Suite { root, full: options.full, skips, tally: Tally::default(), failures: Vec::new() };
    let ready = setup::run(&EVERYTHING, &options.setup).and_then(|()| build_ebpf::object(root));
    match ready {
        Ok(()) => suite.run(),
        Err(error) => suite.failed("setup and build", &error),
    }
    suite.judge_skips(env::var("CI").is_ok_and(|ci| ci == "true"));
    if !suite.failures.is_empty() {
        println!("==> failed");
    }
    for failure in &suite.failures {
        println!("    {failure}");
    }
    println!("{}", suite.tally);
    Ok(if suite.tally.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

struct Suite<'a> {
    root: &'a Path,
    full: bool,
    /// Tests note here what they skipped, and why.
    skips: PathBuf,
    tally: Tally,
    failures: Vec<String>,
}

impl Suite<'_> {
    fn run(&mut self) {
        self.check("formatting", step::cargo().args(["fmt", "--all", "--check"]));
        self.check("clippy", step::cargo().args(["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]));
        self.check("documentation", step::cargo().args(["doc", "--workspace", "--no-deps"]).env("RUSTDOCFLAGS", "-D warnings"));
        self.test("host tests", &["--workspace", "--exclude", "pfc-user"], &[]);
        self.test("host tests of pfc-user", &["--package", "pfc-user", "--lib", "--bins"], &[]);
        self.test("examples in the documentation of pfc-user", &["--package", "pfc-user", "--doc"], &[]);
        // On real frames and real time: optimised, and one at a time.
        self.test("tests on real frames", &["--package", "pfc-user", "--release", "--test", "*"], &["--test-threads=1"]);
        self.rxe();
    }

    fn check(&mut self, name: &str, command: &mut Command) {
        if let Err(error) = step(name, || step::run(command.current_dir(self.root))) {
            self.failed(name, &error);
        }
    }

    fn test(&mut self, name: &str, selection: &[&str], harness: &[&str]) {
        let mut cargo = step::cargo();
        cargo.arg("test").args(selection).args(["--no-fail-fast", "--"]).args(harness).current_dir(self.root);
        cargo.env("VALIDATOR_SKIPS", &self.skips);
        if self.full {
            cargo.env("VALIDATOR_FULL", "1");
        }
        let mut tally = Tally::default();
        let result = step(name, || count(&mut cargo, &mut tally));
        self.tally.passed += tally.passed;
        self.tally.failed += tally.failed;
        self.tally.skipped += tally.skipped;
        match result {
            Ok(()) => {}
            Err(error) if tally.failed == 0 => self.failed(name, &error),
            Err(_) => self.failures.push(format!("{name}: {} failed, named above", tally.failed)),
        }
    }

    /// The RC cases on an independent device, in a virtual machine.
    fn rxe(&mut self) {
        if let Err(reason) = rxe::check_machine() {
            // Like a test that skips itself: it has passed, and is taken back.
            self.tally.passed += 1;
            let note = format!("root_rdma_rxe_in_qemu: {reason:#}\n");
            let noted = OpenOptions::new().create(true).append(true).open(&self.skips).and_then(|mut file| file.write_all(note.as_bytes()));
            if let Err(error) = noted {
                self.failed("rdma_rxe in QEMU", &error.into());
            }
            return;
        }
        if self.full {
            // The agent's real verbs, which nothing else is built with.
            let verbs = ["--package", "pfc-user", "--features", "verbs", "--target-dir", "target/lab/build"];
            self.check("clippy with verbs", step::cargo().arg("clippy").args(verbs).args(["--all-targets", "--", "-D", "warnings"]));
            self.test("tests of the agent with verbs", &[&verbs[..], &["--lib"]].concat(), &["agent::"]);
        }
        match step("rdma_rxe in QEMU", || rxe::test(self.root)) {
            Ok(wrong) => {
                self.tally.passed += rxe::TESTS - wrong.len();
                self.tally.failed += wrong.len();
                self.failures.extend(wrong);
            }
            Err(error) => self.failed("rdma_rxe in QEMU", &error),
        }
    }

    fn failed(&mut self, name: &str, error: &anyhow::Error) {
        self.tally.failed += 1;
        self.failures.push(format!("{name}: {error:#}"));
    }

    /// A test that skipped itself has passed as far as cargo knows.
    fn judge_skips(&mut self, ci: bool) {
        let noted = fs::read_to_string(&self.skips).unwrap_or_default();
        let mut lines: Vec<&str> = noted.lines().collect();
        lines.sort_unstable();
        lines.dedup_by_key(|line| test_of(line));
        if !lines.is_empty() {
            println!("==> skipped");
        }
        for line in lines {
            println!("    {line}");
            self.tally.passed = self.tally.passed.saturating_sub(1);
            if ci && !EXPECTED_SKIPS.contains(&test_of(line)) && !is_undecided(line) {
                self.tally.failed += 1;
                self.failures.push(format!("not to be skipped in CI: {line}"));
            } else {
                self.tally.skipped += 1;
            }
        }
    }
}

/// The test in a line `test: reason`.
fn test_of(line: &str) -> &str {
    line.split(':').next().unwrap_or(line)
}

/// Whether the test ran, and a witness of its own saw the machine stand still too much to decide. Virtual time decides the same.
fn is_undecided(line: &str) -> bool {
    line.split_once(": ").is_some_and(|(_, reason)| reason.starts_with("undecided: "))
}

/// Runs `cargo test`, shows what it prints, and adds up what it says of each test program.
fn count(cargo: &mut Command, tally: &mut Tally) -> Result<()> {
    let mut child = cargo.stdout(Stdio::piped()).spawn().with_context(|| format!("cannot run {}", step::show(cargo)))?;
    for line in BufReader::new(child.stdout.take().expect("asked for above")).lines() {
        let line = line.context("cannot read what the tests print")?;
        println!("{line}");
        if let Some(part) = result_of(&line) {
            tally.passed += part.passed;
            tally.failed += part.failed;
            tally.skipped += part.skipped;
        }
    }
    let status = child.wait()?;
    if !status.success() {
        bail!("{} ended with {status}", step::show(cargo));
    }
    Ok(())
}

/// Reads libtest's closing line, such as `test result: ok. 5 passed; 0 failed; 1 ignored; 0 measured; 2 filtered out; ...`.
fn result_of(line: &str) -> Option<Tally> {
    let (_, counts) = line.strip_prefix("test result: ")?.split_once(". ")?;
    let number = |word: &str| counts.split("; ").find_map(|part| part.strip_suffix(word)?.trim().parse().ok());
    Some(Tally { passed: number("passed")?, failed: number("failed")?, skipped: number("ignored")? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closing_lines_are_read() {
        let line = "test result: FAILED. 5 passed; 2 failed; 1 ignored; 0 measured; 3 filtered out; finished in 0.31s";
        assert_eq!(result_of(line), Some(Tally { passed: 5, failed: 2, skipped: 1 }));
        assert_eq!(result_of("test root_a_veth ... ok"), None);
    }

    #[test]
    fn skips_are_no_passes_and_fail_in_ci() {
        let file = env::temp_dir().join(format!("validator-skips-{}", std::process::id()));
        let lines = "b: needs root\nc: undecided: a CPU stood still\na: needs tshark: none\na: needs tshark: none\n";
        fs::write(&file, lines).unwrap();
        let judge = |ci| {
            let tally = Tally { passed: 13, ..Tally::default() };
            let mut suite = Suite { root: Path::new("/"), full: false, skips: file.clone(), tally, failures: Vec::new() };
            suite.judge_skips(ci);
            (suite.tally.to_string(), suite.failures)
        };
        assert_eq!(judge(false), ("10 passed, 0 failed, 3 skipped".to_owned(), Vec::new()));
        let (line, failures) = judge(true);
        assert_eq!(line, "10 passed, 2 failed, 1 skipped");
        assert_eq!(failures, ["not to be skipped in CI: a: needs tshark: none", "not to be skipped in CI: b: needs root"]);
        fs::remove_file(file).unwrap();
    }
}
