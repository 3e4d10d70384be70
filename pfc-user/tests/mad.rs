//! The MAD cases from the command line: on the simulated agent, on stock ibsim, and with failures.
//!
//! lane: waiting, 4 at a time

mod check;
mod fabric;
mod interrupt;
mod neighbours;
mod stock_ibsim;
mod verdicts;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

const PROGRAM: &str = env!("CARGO_BIN_EXE_validator");
const SIM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../configs/testbeds/sim.toml");

/// A folder for a run: testbed files in, results out. It has a journal of its own: a run would
/// unlock the DUT of another test that it finds in a common one.
struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    fn out(&self) -> PathBuf {
        self.0.path().join("out")
    }

    fn journal(&self) -> PathBuf {
        self.0.path().join("journal")
    }

    /// `validator run` with these arguments, separated by spaces.
    fn command(&self, testbed: &Path, arguments: &str) -> Command {
        let mut command = Command::new(PROGRAM);
        command
            .env("VALIDATOR_JOURNAL", self.journal())
            .arg("run")
            .arg("--testbed")
            .arg(testbed)
            .arg("--out")
            .arg(self.out());
        command.args(arguments.split(' ')).stdin(Stdio::null());
        command
    }

    fn run(&self, testbed: &Path, arguments: &str) -> Ended {
        Ended::of(self.command(testbed, arguments).output().unwrap())
    }

    fn report(&self) -> Value {
        serde_json::from_str(&std::fs::read_to_string(self.out().join("report.json")).unwrap())
            .unwrap()
    }
}

/// Exit code and what was printed.
#[derive(Debug)]
struct Ended {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

impl Ended {
    fn of(output: Output) -> Self {
        let text = |octets| String::from_utf8(octets).unwrap();
        Self {
            code: output.status.code(),
            stdout: text(output.stdout),
            stderr: text(output.stderr),
        }
    }
}

fn case<'r>(report: &'r Value, id: &str) -> &'r Value {
    report["cases"]
        .as_array()
        .unwrap()
        .iter()
        .find(|case| case["case"] == id)
        .unwrap_or_else(|| panic!("no {id} in {report}"))
}

/// `check [repetition]` of a case with that verdict.
fn checks(case: &Value, verdict: &str) -> BTreeSet<String> {
    let of = |check: &Value| {
        let name = check["check"].as_str().unwrap().to_owned();
        let with = check["repetitions"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|repetition| repetition["verdict"] == verdict);
        with.map(|repetition| format!("{name} [{}]", repetition["repetition"].as_str().unwrap()))
            .collect::<Vec<_>>()
    };
    case["checks"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(of)
        .collect()
}

fn set<const N: usize>(names: [&str; N]) -> BTreeSet<String> {
    names.into_iter().map(str::to_owned).collect()
}
