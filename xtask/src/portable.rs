//! `validator-core` builds without an operating system: the proof is wasm32, which has none.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use crate::toolchain::Toolchain;

/// A cargo command that checks the crate and its examples for wasm32. The standard library is built
/// from the sources that the XDP programs need as well: no toolchain has it for that target here.
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
