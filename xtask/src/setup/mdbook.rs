//! mdBook, built once into the cache folder.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use super::linker::install;
use crate::step;
use crate::toolchain::cache;

/// The release of mdBook.
pub const VERSION: &str = "0.4.52";

/// Path of the program, which need not exist.
pub fn program() -> PathBuf {
    root().join("bin/mdbook")
}

fn root() -> PathBuf {
    cache().join(format!("mdbook-{VERSION}"))
}

/// True if the program exists and runs.
pub fn is_there() -> bool {
    step::output(Command::new(program()).arg("--version")).is_ok()
}

/// Builds it without server, search and optimisation. This takes half a minute on two CPUs, a third
/// of the optimised build, and the book still takes less than a second.
pub fn build() -> Result<()> {
    let mut cargo = step::cargo();
    cargo
        .args(["install", "mdbook", "--version", VERSION, "--debug"])
        .env("CARGO_PROFILE_DEV_DEBUG", "0");
    install(cargo, &root())
}
