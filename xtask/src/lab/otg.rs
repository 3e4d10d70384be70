//! Prerequisites of the tests and the lab of the Open Traffic Generator API.

use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::step;

/// Part that the tests run.
pub mod smoke {
    /// Variable with the Python that has snappi.
    pub const PYTHON: &str = "VALIDATOR_SNAPPI";
}

/// The Python that has snappi. Makes its environment first, if necessary, and prints nothing: this
/// may run beside other steps.
pub fn client() -> Result<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    super::python(root.parent().expect("the workspace"), "snappi")
}

/// Builds `target/release/validator` with the server.
pub fn build(root: &Path) -> Result<()> {
    crate::build_ebpf::object(root)?;
    let mut cargo = step::cargo();
    cargo
        .args(["build", "--release", "--package", "pfc-user"])
        .args(["--bin", "validator", "--features", "otg"])
        .current_dir(root);
    step::run(&mut cargo)
}
