//! `cargo xtask test`: every test, from a bare machine.
//!
//! Its last line is `N passed, N failed, N skipped`.

mod part;
pub mod suite;
mod targets;

use std::cmp::Reverse;
use std::fs::OpenOptions;
use std::io::Write;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;
use std::{env, fs, thread};

use anyhow::{Context, Result};

use self::part::{Outcome, Part, Took};
use self::targets::{Arguments, Modules, Name};
use crate::build_ebpf;
use crate::lab::{otg, rxe};
use crate::portable;
use crate::setup::built::DENY;
use crate::setup::{self, BEFORE_TESTS, EVERYTHING, Group};
use crate::step;

#[derive(clap::Args)]
pub struct Test {
    /// The long tests too
    #[arg(long)]
    full: bool,
    #[command(flatten)]
    setup: setup::Install,
}

/// Tests that CI may skip: the long one, which `--full` adds. Where the variable CI is true, any
/// other skip is a failure.
const EXPECTED_SKIPS: [&str; 1] = ["root_a_good_switch_never_fails_on_a_busy_machine"];

/// Runs all steps, even after one that failed.
pub fn run(root: &Path, options: &Test) -> Result<ExitCode> {
    let start = Instant::now();
    let skips = root.join("target/skipped-tests");
    if skips.exists() {
        fs::remove_file(&skips).with_context(|| format!("cannot remove {}", skips.display()))?;
    }
    let mut suite = Suite {
        root,
        full: options.full,
        no_install: options.setup.no_install,
        features: suite::OTG,
        has_clippy: true,
        skips,
        client: None,
        outcome: Outcome::default(),
    };
    // mdBook is built later, beside the workspace. Tools that may not be installed must be there
    // now.
    let mut groups = if options.full && options.setup.no_install {
        EVERYTHING.to_vec()
    } else {
        BEFORE_TESTS.to_vec()
    };
    groups.extend(options.full.then_some(Group::Browser));
    let ready = setup::run(&groups, &options.setup).and_then(|()| build_ebpf::object(root));
    if let Err(error) = ready.and_then(|()| suite.run()) {
        suite.outcome.failed("setup and build", &error);
    }
    suite.judge_skips(env::var("CI").is_ok_and(|ci| ci == "true"));
    let Outcome {
        tally,
        failures,
        took,
    } = suite.outcome;
    println!("==> what took longest, with its CPU time; parts ran beside others");
    let cpu = took.iter().map(|took| took.cpu).sum();
    let all = Took {
        name: "all".into(),
        time: start.elapsed(),
        cpu,
    };
    for Took { name, time, cpu } in longest(took).iter().chain([&all]) {
        let [time, cpu] = [*time, *cpu].map(step::elapsed);
        println!("    {time:>12}  {cpu:>12}  {name}");
    }
    if !failures.is_empty() {
        println!("==> failed");
    }
    for failure in &failures {
        println!("    {failure}");
    }
    println!("{tally}");
    Ok(step::exit_code(tally.failed == 0))
}

/// How many parts run at a time beside the tests on real frames. Most wait, so that two CPUs are
/// enough for five.
const AT_A_TIME: usize = 5;

/// Crates beside pfc-user.
const LIBRARIES: [&str; 4] = ["ib-mad", "pfc-ebpf", "pfc-user/core", "pfc-user/otg"];

struct Suite<'a> {
    root: &'a Path,
    full: bool,
    no_install: bool,
    /// Features that are tested.
    features: &'static str,
    /// True where Clippy compiles the tests.
    has_clippy: bool,
    /// File in which tests note what they skipped, and why.
    skips: PathBuf,
    /// The Python that has snappi, once there is one.
    client: Option<PathBuf>,
    outcome: Outcome,
}

impl Suite<'_> {
    fn run(&mut self) -> Result<()> {
        let lab = self.has_lab()?;
        if lab {
            self.features = suite::VERBS;
        }
        if let Err(error) = step::output(Command::new(suite::LINTED.1).arg("--version")) {
            // The tests run without it.
            self.has_clippy = false;
            self.outcome
                .failed("clippy, which compiles the tests", &error);
        }
        let modules = Modules::read(&self.root.join("pfc-user/tests"))?;
        let mut linted = self.lints()?;
        if self.full {
            // To build mdBook and a standard library takes minutes.
            linted.push(self.this("the book", &["docs", "--no-pages"])?);
            let portable = portable::check(self.root)?;
            linted.push(Part::new("validator-core for wasm32", portable));
            linted.push(self.fuzz_targets());
            linted.push(self.documented("documentation, as users build it", "--workspace"));
        }
        let xtask = ["test", "--package", "xtask", "--no-fail-fast"];
        linted.push(self.check("tests of xtask", &xtask));
        thread::scope(|scope| {
            let linted = part::start(scope, linted, 1);
            let ended = self.built_tests(&modules, lab);
            self.outcome.join(linted);
            ended
        })?;
        // It keeps every CPU busy by itself.
        for part in self.of_lane(&modules, Name::Alone) {
            self.outcome.add(part.run());
        }
        if self.full {
            let part = self.lab("pages in a browser", &["test-browser"])?;
            self.outcome.add(part.run());
            self.deny()?;
        }
        if lab && self.full {
            let part = self.lab(
                "setup and demo on Debian 12 and 13, in chroots",
                &["userspace"],
            )?;
            self.outcome.add(part.run());
        }
        if self.full && self.client.is_some() && step::is_root() {
            // They measure: with the program that users have, and nothing beside them.
            let name = "all scripts of snappi, and what they measure";
            let part = self.this(name, &["lab", "otg"])?;
            self.outcome.add(part.run());
        }
        if self.full && step::is_root() {
            let part = self.lab("a fleet in Prometheus", &["test-fleet"])?;
            self.outcome.add(part.run());
            let part = self.this(
                "packages: built twice, and on Debian 12 in a chroot",
                &["dist", "--check"],
            )?;
            self.outcome.add(part.run());
        }
        Ok(())
    }

    /// Builds the tests, and runs them.
    fn built_tests(&mut self, modules: &Modules, lab: bool) -> Result<()> {
        let client = thread::scope(|scope| {
            let client = scope.spawn(otg::client);
            for (name, targets) in [("tests", &[][..]), ("benches", &["--benches"])] {
                let all = suite::with(self.features);
                let built = [&["test", "--no-run"], &all[..], targets].concat();
                let built = self.linted(&format!("{name}, built and linted"), &built);
                self.outcome.add(built.denying_warnings().run());
            }
            client.join().unwrap_or_else(|panic| resume_unwind(panic))
        });
        self.take_client(client)?;
        let beside = self.beside(modules, lab)?;
        // Tests on real frames in real time run one at a time. They use a third of a CPU. What runs
        // beside them leaves the CPU whenever they want it.
        let mut frames = self.of_lane(modules, Name::Frames);
        if lab {
            frames.insert(0, self.lab("rdma_rxe in QEMU", &["test-rxe"])?);
        }
        thread::scope(|scope| {
            let beside = part::start(scope, beside, AT_A_TIME);
            for part in frames {
                self.outcome.add(part.run());
            }
            self.outcome.join(beside);
        });
        Ok(())
    }

    /// Rules for the crates of others. The database of advisories is of the network, which may not
    /// be there.
    fn deny(&mut self) -> Result<()> {
        let no_install = self.no_install;
        let install = setup::Install { no_install };
        if let Err(error) = setup::run(&[Group::Crates], &install) {
            return self.note("crates_of_others", &format!("{error:#}"));
        }
        let deny = |rules: &[&str]| {
            let mut command = Command::new(DENY.program());
            command.arg("deny").args(rules).current_dir(self.root);
            command
        };
        let rules = deny(&["check", "licenses", "bans", "sources"]);
        let part = Part::new("licences, sources and double versions of crates", rules);
        self.outcome.add(part.run());
        if step::output(&mut deny(&["fetch", "db"])).is_err() {
            let needs = "needs the network: `cargo deny fetch db` did not get their database";
            return self.note("advisories_on_crates_of_others", needs);
        }
        let part = Part::new("advisories on crates", deny(&["check", "advisories"]));
        self.outcome.add(part.run());
        Ok(())
    }

    /// Checks that run beside the build for the tests. Each has another target folder or profile,
    /// so that none holds its lock.
    fn lints(&self) -> Result<Vec<Part>> {
        let xtask = "clippy --package xtask --all-targets -- -D warnings";
        let xtask: Vec<&str> = xtask.split(' ').collect();
        Ok(vec![
            self.check("formatting", &["fmt", "--all", "--check"]),
            self.check("clippy on xtask", &xtask),
            Part::new("clippy on the XDP programs", build_ebpf::lints(self.root)),
            // Its crates have just been checked.
            self.documented("documentation of xtask", "--package=xtask"),
            self.this("links", &["docs", "--no-pages", "--no-book"])?,
        ])
    }

    /// Virtual machines, tests that compute, and tests that wait: they leave each other enough CPU.
    /// The longest come first, so that none runs alone at the end.
    fn beside(&self, modules: &Modules, lab: bool) -> Result<Vec<Part>> {
        let mut parts = Vec::new();
        if lab {
            let mut nic = vec!["test-nic"];
            nic.extend(self.full.then_some("--all"));
            let kernel = |name| self.lab(&format!("Linux {name} in QEMU"), &["test-kernel", name]);
            parts.extend([
                kernel("6.1")?,
                self.lab("drivers of network cards in QEMU", &nic)?,
                kernel("6.12")?,
            ]);
            if self.full {
                parts.push(kernel("newest")?);
            }
            parts.extend([
                kernel("5.10")?,
                self.lab("rules for Prometheus, by promtool", &["test-prometheus"])?,
            ]);
        }
        for lane in [Name::Computing, Name::Waiting, Name::Programs] {
            parts.extend(self.of_lane(modules, lane));
        }
        parts.extend(self.host_tests()?);
        if let Some(python) = &self.client
            && step::is_root()
        {
            let mut part = self.lab("snappi on veths and at the switch", &["test-otg"])?;
            part.command.env(otg::smoke::PYTHON, python);
            parts.push(part);
        }
        Ok(parts)
    }

    fn cargo(&self, arguments: &[&str]) -> Command {
        let mut cargo = step::cargo();
        cargo
            .args(arguments)
            .current_dir(self.root)
            .env("VALIDATOR_SKIPS", &self.skips);
        if self.full {
            cargo.env("VALIDATOR_FULL", "1");
        }
        if let Some(python) = &self.client {
            cargo.env(otg::smoke::PYTHON, python);
        }
        cargo
    }

    fn check(&self, name: &str, arguments: &[&str]) -> Part {
        Part::new(name, self.cargo(arguments))
    }

    /// A build with lints, or tests of what it built.
    fn linted(&self, name: &str, arguments: &[&str]) -> Part {
        let mut part = self.check(name, arguments);
        if !self.has_clippy {
            return part;
        }
        // The lines that count warnings are to be shown, and without colours.
        part.command
            .env(suite::LINTED.0, suite::LINTED.1)
            .env("CARGO_TERM_COLOR", "never")
            .env("CARGO_TERM_QUIET", "false");
        part
    }

    /// The fuzz targets, which are not of the workspace. Only to run them takes a nightly compiler.
    /// The path stands for libFuzzer, which would be built from C++: nothing is linked here.
    fn fuzz_targets(&self) -> Part {
        let mut part = self.check("fuzz targets", &["check", "--all-features", "--locked"]);
        part.command
            .args(["--manifest-path", "fuzz/Cargo.toml"])
            .args(["--target-dir", "target/fuzz"])
            .env("CUSTOM_LIBFUZZER_PATH", "/nowhere/libfuzzer.a");
        part
    }

    /// Documentation without the examples in it. Of the workspace, it checks all crates of others
    /// once more.
    fn documented(&self, name: &str, packages: &str) -> Part {
        let mut part = self.check(name, &["doc", packages, "--no-deps"]);
        part.command.env("RUSTDOCFLAGS", "-D warnings");
        part
    }

    /// The documentation of libraries, and the examples in it.
    fn documentation(&self) -> Part {
        let mut part = self.tests("documentation and its examples", &["--doc"], &[]);
        part.command
            .env("RUSTDOC", self.root.join("xtask/src/test/rustdoc.sh"))
            .env("VALIDATOR_DOC", self.root.join("target/doc"));
        part
    }

    /// Tests of what was built for them.
    fn tests(&self, name: &str, which: &[&str], harness: &[&str]) -> Part {
        let all = suite::with(self.features);
        let words = [
            &["test"],
            &all[..],
            which,
            &["--no-fail-fast", "--"],
            harness,
        ]
        .concat();
        self.linted(name, &words)
    }

    fn host_tests(&self) -> Result<Vec<Part>> {
        let folders = LIBRARIES.map(|folder| self.root.join(folder).join("tests"));
        let libraries = targets::of_libraries(&folders)?;
        let libraries: Vec<_> = libraries.iter().map(String::as_str).collect();
        Ok(vec![
            self.tests("tests in the sources", &["--lib", "--bins"], &[]),
            self.tests("tests of the libraries", &libraries, &[]),
            self.documentation(),
        ])
    }

    fn of_lane(&self, modules: &Modules, lane: Name) -> Vec<Part> {
        let name = match lane {
            Name::Frames | Name::Alone => "on real frames",
            Name::Computing | Name::Waiting | Name::Programs => "tests",
        };
        let mut parts: Vec<_> = modules
            .of_lane(lane)
            .iter()
            .map(|arguments| self.of_release(name, arguments))
            .collect();
        // A run restores every setting that it finds in its journal. In the machine's journal it
        // would also find those that a test of another part has just left there on purpose.
        let journals = self.root.join("target/journals");
        for (number, part) in parts.iter_mut().enumerate() {
            let journal = journals.join(format!("{lane:?}-{number}"));
            part.command.env("VALIDATOR_JOURNAL", journal);
        }
        parts
    }

    /// Built with optimisation, as most of these tests use real frames.
    fn of_release(&self, name: &str, arguments: &Arguments) -> Part {
        let selection = arguments.program.each_ref().map(String::as_str);
        let harness: Vec<_> = arguments.harness.iter().map(String::as_str).collect();
        self.tests(&format!("{name}: {}", arguments.name), &selection, &harness)
    }

    /// True if this machine can run the labs in QEMU. Notes the reason as a skip if it cannot.
    fn has_lab(&mut self) -> Result<bool> {
        let Err(reason) = rxe::check_machine() else {
            return Ok(true);
        };
        self.note("root_labs_in_qemu", &format!("{reason:#}"))?;
        Ok(false)
    }

    /// Takes the Python that has snappi. Notes as a skip why the client does not run.
    fn take_client(&mut self, client: Result<PathBuf>) -> Result<()> {
        const NAME: &str = "root_snappi_on_a_cable";
        match client {
            Ok(python) => self.client = Some(python),
            Err(error) => return self.note(NAME, &format!("{error:#}")),
        }
        if step::is_root() {
            return Ok(());
        }
        self.note(NAME, "needs root")
    }

    /// Notes a skip of what is no test of cargo's.
    fn note(&mut self, name: &str, reason: &str) -> Result<()> {
        // A test that skips itself counts as passed at first, and so does this.
        self.outcome.tally.passed += 1;
        let noted = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&self.skips)
            .and_then(|mut file| file.write_all(format!("{name}: {reason}\n").as_bytes()));
        noted.with_context(|| format!("cannot write {}", self.skips.display()))
    }

    /// A lab of this program, which prints a closing line like libtest's.
    fn lab(&self, name: &str, command: &[&str]) -> Result<Part> {
        let mut part = self.this(name, &[&["lab"], command].concat())?;
        part.command
            .env("VALIDATOR_PROFILE", suite::PROFILE)
            .env("VALIDATOR_FEATURES", self.features);
        if self.has_clippy {
            part.command.env(suite::LINTED.0, suite::LINTED.1);
        }
        Ok(part)
    }

    /// A command of this program.
    fn this(&self, name: &str, command: &[&str]) -> Result<Part> {
        let this = env::current_exe().context("the path of this program is not known")?;
        let mut command_line = Command::new(this);
        command_line.args(command).current_dir(self.root);
        Ok(Part::new(name, step::ended_with_this(&command_line)))
    }

    /// Moves tests that skipped themselves, which cargo counts as passed, to the skipped ones.
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
            self.outcome.tally.passed = self.outcome.tally.passed.saturating_sub(1);
            if ci && !EXPECTED_SKIPS.contains(&test_of(line)) && !is_undecided(line) {
                self.outcome.tally.failed += 1;
                self.outcome
                    .failures
                    .push(format!("not to be skipped in CI: {line}"));
            } else {
                self.outcome.tally.skipped += 1;
            }
        }
    }
}

/// Parts that took five seconds or more, the longest first.
fn longest(mut took: Vec<Took>) -> Vec<Took> {
    took.retain(|took| took.time.as_secs() >= 5);
    took.sort_by_key(|took| Reverse(took.time));
    took
}

/// The name of the test in a line `test: reason`.
fn test_of(line: &str) -> &str {
    line.split(':').next().unwrap_or(line)
}

/// True if the test ran but its own witness saw the machine stand still too long for a decision.
/// Another test decides the same question in virtual time.
fn is_undecided(line: &str) -> bool {
    line.split_once(": ")
        .is_some_and(|(_, reason)| reason.starts_with("undecided: "))
}

#[cfg(test)]
mod tests {
    use super::part::Tally;
    use super::*;

    #[test]
    fn skips_are_no_passes_and_fail_in_ci() {
        let file = env::temp_dir().join(format!("validator-skips-{}", std::process::id()));
        let lines = "b: needs root\nc: undecided: a CPU stood still\na: needs tshark: none\na: \
         needs tshark: none\n";
        fs::write(&file, lines).unwrap();
        let judge = |ci| {
            let tally = Tally {
                passed: 13,
                ..Tally::default()
            };
            let outcome = Outcome {
                tally,
                ..Outcome::default()
            };
            let mut suite = Suite {
                root: Path::new("/"),
                full: false,
                no_install: true,
                features: suite::OTG,
                has_clippy: true,
                skips: file.clone(),
                client: None,
                outcome,
            };
            suite.judge_skips(ci);
            (suite.outcome.tally.to_string(), suite.outcome.failures)
        };
        assert_eq!(
            judge(false),
            ("10 passed, 0 failed, 3 skipped".to_owned(), Vec::new())
        );
        let (line, failures) = judge(true);
        assert_eq!(line, "10 passed, 2 failed, 1 skipped");
        assert_eq!(
            failures,
            [
                "not to be skipped in CI: a: needs tshark: none",
                "not to be skipped in CI: b: needs root"
            ]
        );
        fs::remove_file(file).unwrap();
    }
}
