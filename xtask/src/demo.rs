//! `cargo xtask demo`: from a bare machine to verdicts on the simulated devices.

pub mod table;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::SystemTime;

use anyhow::{Context, Result, bail};

use crate::setup::{self, Group};
use crate::{build_ebpf, step};

/// Folder of the results, from the root of the repository.
const OUT: &str = "target/demo";
/// The page that explains every check, in the same folder.
const PAGE: &str = "report.html";
/// The report for programs, in the same folder.
pub const REPORT: &str = "report.json";

#[derive(clap::Args)]
pub struct Demo {
    #[command(flatten)]
    pub setup: setup::Install,
    /// Passed on to `validator run`, such as --plan smoke
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub arguments: Vec<String>,
}

/// Returns the validator's own exit code.
pub fn run(root: &Path, options: &Demo) -> Result<ExitCode> {
    prepare(root, &options.setup)?;
    let out = folder(&options.arguments);
    let mut validator = validator(root);
    if out.is_none() {
        validator.args(["--out", OUT]);
    }
    validator.args(&options.arguments);
    let out = out.unwrap_or(OUT.into());
    let report = root.join(&out).join(REPORT);
    let began = SystemTime::now();
    println!("==> {}", step::show(&validator));
    let done = step::ended_with_this(&validator)
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("cannot run {}", step::show(&validator)))?;
    let code = done.status.code();
    // One of an earlier demo would be taken for this one's.
    let written = fs::metadata(&report).and_then(|report| report.modified());
    if written.is_ok_and(|written| written >= began) {
        print!("\n{}", table::of(&table::read(&report)?, &out));
    } else {
        print!("{}", String::from_utf8_lossy(&done.stdout));
    }
    Ok(code
        .and_then(|code| u8::try_from(code).ok())
        .map_or(ExitCode::FAILURE, ExitCode::from))
}

/// Installs what is missing, and builds.
pub fn prepare(root: &Path, setup: &setup::Install) -> Result<()> {
    if !step::is_root() {
        bail!(
            "the demo needs root: it makes network namespaces and loads XDP programs; run it with \
             sudo or as root"
        );
    }
    setup::run(&[Group::Build], setup)?;
    step::explain_cargo(build_ebpf::run(root), root)
}

/// The validator on the simulated devices.
pub fn validator(root: &Path) -> Command {
    let mut validator = Command::new(root.join("target/release/validator"));
    validator
        .args(["run", "--testbed", "configs/testbeds/sim.toml"])
        .current_dir(root);
    validator
}

/// The folder that the arguments name for the results.
fn folder(arguments: &[String]) -> Option<PathBuf> {
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        if argument == "--out" {
            return arguments.next().map(PathBuf::from);
        }
        if let Some(folder) = argument.strip_prefix("--out=") {
            return Some(folder.into());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_is_the_one_that_the_arguments_name() {
        let folder = |line: &str| folder(&line.split(' ').map(str::to_owned).collect::<Vec<_>>());
        assert_eq!(folder("--plan smoke --out here"), Some("here".into()));
        assert_eq!(folder("--out=there --plan smoke"), Some("there".into()));
        assert_eq!(folder("--plan smoke"), None);
    }
}
