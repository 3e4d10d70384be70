//! `cargo xtask demo`: from a bare machine to verdicts on the simulated device.

use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};

use crate::setup::{self, Group};
use crate::{build_ebpf, step};

#[derive(clap::Args)]
pub struct Demo {
    #[command(flatten)]
    pub setup: setup::Install,
    /// Passed on to `validator run`, such as --out DIR
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub arguments: Vec<String>,
}

/// Returns the validator's own exit code.
pub fn run(root: &Path, options: &Demo) -> Result<ExitCode> {
    if !step::is_root() {
        bail!(
            "the demo needs root: it makes network namespaces and loads XDP programs; run it with \
             sudo or as root"
        );
    }
    setup::run(&[Group::Build], &options.setup)?;
    step::explain_cargo(build_ebpf::run(root), root)?;
    let mut validator = Command::new(root.join("target/release/validator"));
    validator
        .args(["run", "--testbed", "configs/testbeds/sim.toml"])
        .args(&options.arguments)
        .current_dir(root);
    println!("==> {}", step::show(&validator));
    let status = validator
        .status()
        .with_context(|| format!("cannot run {}", step::show(&validator)))?;
    Ok(status
        .code()
        .and_then(|code| u8::try_from(code).ok())
        .map_or(ExitCode::FAILURE, ExitCode::from))
}
