//! Proof that `validator-core` builds without an operating system: wasm32 has none.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use crate::toolchain::Toolchain;

/// Makes a cargo command that checks the crate and its examples for wasm32. No toolchain here has
/// the standard library for that target, so it is built from the sources that the XDP programs need
/// as well.
pub fn check(root: &Path) -> Result<Command> {
    let toolchain = Toolchain::find().context(
        "no Rust compiler here has the sources of core: `cargo xtask setup` installs it",
    )?;
    let mut cargo = toolchain.cargo_with_sources();
    cargo.args([
        "check",
        "--package",
        "validator-core",
        "--lib",
        "--examples",
    ]);
    cargo.args(["-Z", "build-std=std,panic_abort"]);
    cargo.args(["--target", "wasm32-unknown-unknown"]);
    cargo
        .args(["--target-dir", "target/wasm"])
        .current_dir(root);
    Ok(cargo)
}
