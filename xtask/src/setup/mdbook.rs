//! mdBook, built once into the cache folder.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use super::linker::install;
use crate::step;
use crate::toolchain::cache;

/// The release that is used.
pub const VERSION: &str = "0.4.52";

/// The program, whether or not it is there.
pub fn program() -> PathBuf {
    root().join("bin/mdbook")
}

fn root() -> PathBuf {
    cache().join(format!("mdbook-{VERSION}"))
}

/// True if it is there and runs.
pub fn is_there() -> bool {
    step::output(Command::new(program()).arg("--version")).is_ok()
}

/// Builds it without its server, its search and optimisation: half a minute on two CPUs, a third of
/// the optimised build, and the book takes it no second.
pub fn build() -> Result<()> {
    let mut cargo = step::cargo();
    cargo
        .args(["install", "mdbook", "--version", VERSION, "--debug"])
        .env("CARGO_PROFILE_DEV_DEBUG", "0");
    install(cargo, &root())
}
