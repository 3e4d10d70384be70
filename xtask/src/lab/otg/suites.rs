//! Suites of others, which their users clone.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::lab::python::{Environment, SNAPPI};
use crate::step::{self, step};

/// The Python tests of the API's authors.
pub struct Conformance {
    clone: PathBuf,
    folder: PathBuf,
    python: PathBuf,
}

/// What it imports.
const SUITE: Environment = Environment {
    name: "conformance",
    packages: &[SNAPPI, "pypcapfile==0.12.0", "pytest==7.1.1"],
};

/// Folders of its tests that need no control plane.
const TESTS: [&str; 2] = ["feature/b2b/packet", "feature/b2b/interfaces"];

impl Conformance {
    /// Makes their environment. Nothing is written into the clone.
    pub fn prepare(clone: &Path, folder: &Path) -> Result<Self> {
        let clone = fs::canonicalize(clone).with_context(|| clone.display().to_string())?;
        let python = step("conformance's packages", || SUITE.python())?;
        Ok(Self {
            clone,
            folder: folder.join("conformance"),
            python,
        })
    }

    /// Runs the tests against a server.
    pub fn run(&self, transport: &str, location: &str, ports: [&str; 2]) -> Result<()> {
        fs::create_dir_all(&self.folder)?;
        // The suite reads it from the working directory.
        let settings = format!(
            "otg_host: \"{location}\"\notg_ports: [\"{}\", \"{}\"]\notg_speed: speed_1_gbps\n\
             otg_capture_check: true\notg_grpc_transport: {}\n",
            ports[0],
            ports[1],
            transport == "grpc"
        );
        fs::write(self.folder.join("test-config.yaml"), settings)?;
        let mut command = Command::new(&self.python);
        command
            .args(["-m", "pytest", "-p", "no:cacheprovider", "-m", "dp or cpdp"])
            .arg("-c")
            .arg(self.clone.join("pytest.ini"))
            .arg("--rootdir")
            .arg(&self.clone)
            .args(TESTS.map(|tests| self.clone.join(tests)))
            .env("PYTHONPATH", &self.clone)
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .current_dir(&self.folder);
        step::run(&mut command)
    }
}
