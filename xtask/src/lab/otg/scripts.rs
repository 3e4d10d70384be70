//! The repository's own scripts, and how the lab runs each.

use std::path::Path;
use std::process::Command;

use anyhow::{Result, bail};

use super::PORTS;
use super::server::Server;
use super::switch::Switch;
use crate::lab::python::{CLIENT, Environment, OLDEST, SNAPPI, SNAPPI_OLDEST};
use crate::step::{self, step};

/// Where they are; each takes a transport, the server, two locations, and perhaps names of parts.
const FOLDER: &str = "pfc-user/otg/tests/python";

const EVERY: [&str; 4] = ["http", "https", "grpc", "grpc-pieces"];
const BOTH: [&str; 2] = ["http", "grpc"];
const REST: [&str; 2] = ["https", "grpc-pieces"];

/// Parts of `truths.py` that are right or wrong however busy the machine is.
const UNTIMED: [&str; 7] = [
    "counts",
    "octets",
    "pcapng",
    "stacks",
    "bad_checksums",
    "pause_frames",
    "held_queues",
];

/// What is between the tester's ports.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Between {
    /// A cable.
    Cable,
    /// The simulated switch with these faults.
    Switch(&'static [&'static str]),
}

/// A script with its parts.
pub struct Script {
    name: &'static str,
    /// None is all that need no more than a cable.
    parts: &'static [&'static str],
    transports: &'static [&'static str],
    environment: &'static Environment,
    pub between: Between,
}

const fn on_a_cable(
    name: &'static str,
    parts: &'static [&'static str],
    transports: &'static [&'static str],
) -> Script {
    Script {
        name,
        parts,
        transports,
        environment: &CLIENT,
        between: Between::Cable,
    }
}

const fn at_a_switch(parts: &'static [&'static str], faults: &'static [&'static str]) -> Script {
    Script {
        between: Between::Switch(faults),
        ..on_a_cable("truths", parts, &BOTH)
    }
}

/// Those of `cargo xtask lab otg`. What takes time runs over one of the ways to each service.
pub const LAB: [Script; 8] = [
    on_a_cable("client", &[], &EVERY),
    Script {
        environment: &OLDEST,
        ..on_a_cable("client", &[], &BOTH)
    },
    on_a_cable("otgen", &[], &EVERY),
    on_a_cable("storm", &[], &BOTH),
    on_a_cable("truths", &[], &BOTH),
    on_a_cable("truths", &UNTIMED, &REST),
    at_a_switch(&["after_stop"], &[]),
    at_a_switch(&["loss"], &["drops=all:100"]),
];

/// Those of `cargo xtask test`, beside which other tests may run.
pub const SMOKE: [Script; 5] = [
    on_a_cable("client", &[], &BOTH),
    on_a_cable("otgen", &[], &BOTH),
    on_a_cable("truths", &UNTIMED, &BOTH),
    at_a_switch(&["after_stop"], &[]),
    at_a_switch(&["loss"], &["drops=all:100"]),
];

impl Script {
    /// What the lab calls it.
    pub fn title(&self) -> String {
        let client = if self.is_optional() {
            SNAPPI_OLDEST
        } else {
            SNAPPI
        };
        [&[self.name][..], self.parts, &["with", client]]
            .concat()
            .join(" ")
    }

    /// True if not every Python can have its packages.
    pub fn is_optional(&self) -> bool {
        self.environment.packages.contains(&SNAPPI_OLDEST)
    }

    /// Runs it over each of its transports, with a new server and perhaps a new switch each time.
    /// Returns the titles of those that passed, and why others did not.
    pub fn run(&self, root: &Path, python: &Path, validator: &Path, folder: &Path) -> Outcome {
        let mut outcome = Outcome::default();
        for transport in self.transports {
            outcome.note(&format!("{} over {transport}", self.title()), || {
                self.over(root, python, validator, folder, transport)
            });
        }
        outcome
    }

    fn over(
        &self,
        root: &Path,
        python: &Path,
        validator: &Path,
        folder: &Path,
        transport: &str,
    ) -> Result<()> {
        let switch = match self.between {
            Between::Cable => None,
            Between::Switch(faults) => Some(Switch::start(validator, folder, &[], faults)?),
        };
        let server = Server::start(validator, folder)?;
        let mut command = Command::new(python);
        command
            .arg(root.join(FOLDER).join(self.name).with_extension("py"))
            .arg(transport)
            .arg(server.location(transport))
            .args(PORTS)
            .args(self.parts)
            .env("VALIDATOR_COUNTERS", server.location("http") + "/counters")
            .env("PYTHONDONTWRITEBYTECODE", "1");
        step::run(&mut command)?;
        server.stop()?;
        switch.map_or(Ok(()), Switch::stop)
    }

    /// The Python that it runs in; makes its environment first, if necessary.
    pub fn python(&self) -> Result<std::path::PathBuf> {
        self.environment.python()
    }
}

/// How scripts ended.
#[derive(Default)]
pub struct Outcome {
    /// By title.
    pub passed: Vec<String>,
    /// By title, with the reason.
    pub failed: Vec<String>,
    /// Those that could not run here, by title, with the reason.
    pub skipped: Vec<String>,
}

impl Outcome {
    /// Runs what has a title of its own, and notes how it ended.
    pub fn note(&mut self, title: &str, run: impl FnOnce() -> Result<()>) {
        match step(title, run) {
            Ok(()) => self.passed.push(title.to_owned()),
            Err(error) => self.failed.push(format!("{title}: {error:#}")),
        }
    }

    /// Adds that of another script.
    pub fn add(&mut self, other: Self) {
        self.passed.extend(other.passed);
        self.failed.extend(other.failed);
        self.skipped.extend(other.skipped);
    }

    /// Names each script, and prints a closing line like libtest's. Fails if one of them did.
    pub fn close(&self) -> Result<()> {
        println!("{}", self.closing());
        if !self.failed.is_empty() {
            bail!("{} of the scripts failed", self.failed.len());
        }
        Ok(())
    }

    /// What could not run here comes last: nobody takes the lab's success for that of all scripts.
    fn closing(&self) -> String {
        let word = if self.failed.is_empty() {
            "ok"
        } else {
            "FAILED"
        };
        let passed = self.passed.iter().map(|title| format!("passed: {title}"));
        let failed = self.failed.iter().map(|line| format!("failed: {line}"));
        let skipped = self.skipped.iter().map(|line| format!("skipped: {line}"));
        let result = format!(
            "test result: {word}. {} passed; {} failed; {} ignored",
            self.passed.len(),
            self.failed.len(),
            self.skipped.len()
        );
        let lines = passed.chain(failed).chain(skipped).chain([result]);
        lines.collect::<Vec<_>>().join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_closing_lines_name_what_was_left_out() {
        let mut outcome = Outcome {
            passed: vec!["a".to_owned(), "b".to_owned()],
            skipped: vec!["c with old: no wheel".to_owned()],
            ..Outcome::default()
        };
        let expected = "passed: a\npassed: b\nskipped: c with old: no wheel\n\
                        test result: ok. 2 passed; 0 failed; 1 ignored";
        assert_eq!(outcome.closing(), expected);
        assert!(outcome.close().is_ok());
        outcome.failed.push("d: because".to_owned());
        let expected = "test result: FAILED. 2 passed; 1 failed; 1 ignored";
        assert!(outcome.closing().ends_with(expected));
        assert!(outcome.close().is_err());
    }
}
