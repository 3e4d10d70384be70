//! `cargo xtask bench`: every benchmark. Their figures, and what they mean, are in BENCHMARKS.md.

use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;

use crate::build_ebpf;
use crate::setup::{self, Group};
use crate::step::{self, step};

#[derive(clap::Args)]
pub struct Bench {
    #[command(flatten)]
    setup: setup::Install,
}

/// Package and name of each.
const BENCHES: [(&str, &str); 2] = [("ib-mad", "codec"), ("pfc-user", "exchange")];

/// Runs all, one after the other, on a build with the XDP programs in it.
pub fn run(root: &Path, options: &Bench) -> Result<ExitCode> {
    setup::run(&[Group::Build], &options.setup)?;
    build_ebpf::run(root)?;
    for (package, bench) in BENCHES {
        let mut cargo = step::cargo();
        cargo.args(["bench", "--package", package, "--bench", bench]).current_dir(root);
        cargo.env("VALIDATOR", root.join("target/release/validator"));
        step(&format!("benchmark {bench} of {package}"), || step::run(&mut cargo))?;
    }
    Ok(ExitCode::SUCCESS)
}
