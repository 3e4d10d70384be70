//! Shared by the tests that need more than a plain user's machine. A test that cannot run says so
//! with the reason:
//!
//! ```ignore
//! if !common::need_root("root_frames_cross_a_veth") {
//!     return;
//! }
//! ```

use std::fs::OpenOptions;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::{env, io};

use validator::driver::kernel::realtime;

/// The Python for which Debian's packages, including scapy, are installed; another one may come
/// first in `PATH`.
pub const PYTHON: &str = "/usr/bin/python3";

/// Reports that `test` did not run. `cargo xtask test` counts and lists the lines in the file named
/// by `VALIDATOR_SKIPS`.
pub fn skip(test: &str, reason: &str) {
    let line = format!("{test}: {reason}\n");
    match env::var_os("VALIDATOR_SKIPS") {
        // One write in append mode keeps the lines of parallel tests apart.
        Some(file) => OpenOptions::new()
            .create(true)
            .append(true)
            .open(&file)
            .and_then(|mut file| file.write_all(line.as_bytes()))
            .unwrap_or_else(|error| panic!("VALIDATOR_SKIPS names {}: {error}", file.display())),
        None => print!("skipped: {line}"),
    }
}

/// Reports that `test` ran without a decision because of the machine, not of its subject.
/// `evidence` shows the former.
pub fn undecided(test: &str, evidence: &str) {
    skip(test, &format!("undecided: {evidence}"));
}

/// True if the test runs as root; otherwise it is reported as skipped.
pub fn need_root(test: &str) -> bool {
    need(test, nix::unistd::geteuid().is_root(), "needs root")
}

/// True if `tool` is installed: a Python module (`scapy`, `jsonschema`), or a program in `PATH` or
/// in the system's folders. Notes `test` as skipped if it is not.
pub fn need_tool(test: &str, tool: &str) -> bool {
    let found = if ["scapy", "jsonschema"].contains(&tool) {
        imports(tool).unwrap_or(false)
    } else {
        in_path(tool)
    };
    need(
        test,
        found,
        &format!("needs {tool}, which `cargo xtask setup` installs"),
    )
}

/// Returns the first and the last CPU that the test may use. If there is only one, `test` is
/// reported as skipped.
pub fn need_two_cpus(test: &str) -> Option<[usize; 2]> {
    let two = match realtime::allowed_cpus()[..] {
        [first, .., last] => Some([first, last]),
        _ => None,
    };
    need(test, two.is_some(), "needs two CPUs");
    two
}

/// True if the long tests are requested (`cargo xtask test --full`); otherwise `test` is reported
/// as skipped.
pub fn need_full(test: &str) -> bool {
    need(
        test,
        env::var_os("VALIDATOR_FULL").is_some(),
        "long; run by `cargo xtask test --full`",
    )
}

/// Frames in a corpus: `usual`, or `long` if the long tests are requested. `VALIDATOR_FRAMES`
/// overrides both: an emulated machine is slow.
pub fn corpus(usual: usize, long: usize) -> usize {
    if let Ok(count) = env::var("VALIDATOR_FRAMES") {
        let count = count.parse();
        return count.expect("VALIDATOR_FRAMES is a number of frames");
    }
    if env::var_os("VALIDATOR_FULL").is_some() {
        long
    } else {
        usual
    }
}

/// The folder in which programs that the tests start note what they change, when root runs them.
pub fn journal() -> PathBuf {
    env::var_os("VALIDATOR_JOURNAL").map_or_else(|| "/run/validator".into(), PathBuf::from)
}

fn need(test: &str, met: bool, reason: &str) -> bool {
    if !met {
        skip(test, reason);
    }
    met
}

fn imports(module: &str) -> io::Result<bool> {
    let status = Command::new(PYTHON)
        .args(["-c", &format!("import {module}")])
        .stderr(Stdio::null())
        .status()?;
    Ok(status.success())
}

fn in_path(tool: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path)
        .chain(["/usr/sbin", "/sbin"].map(PathBuf::from))
        .any(|folder| folder.join(tool).is_file())
}

// Each test file compiles this module anew, and few use all of it.
const _: fn(&str, &str) = skip;
const _: fn(&str, &str) = undecided;
const _: fn(&str) -> bool = need_root;
const _: fn(&str, &str) -> bool = need_tool;
const _: fn(&str) -> Option<[usize; 2]> = need_two_cpus;
const _: fn(&str) -> bool = need_full;
const _: fn(usize, usize) -> usize = corpus;
const _: fn() -> PathBuf = journal;
const _: &str = PYTHON;
