//! Suites of others, which their users clone.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

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
const FOLDERS: [&str; 2] = ["feature/b2b/packet", "feature/b2b/interfaces"];
/// What has to pass of them. The suite also passes where it does not find them, or they skip
/// themselves.
const TESTS: [&str; 10] = [
    "test_ip_neighbors",
    "test_ipv6_udp_port_values",
    "test_tcp_port_incr_decr",
    "test_tcp_port_value",
    "test_tcp_port_values",
    "test_udp_port_incr_decr",
    "test_udp_port_value",
    "test_udp_port_values",
    "test_vxlan_inner_ipv4",
    "test_vxlan_inner_ipv6",
];

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

    /// Runs the tests against a server. Fails if one fails, or if one of [`TESTS`] did not run.
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
        let report = self.folder.join("report.xml");
        // That of the run before says nothing of this one.
        if report.exists() {
            fs::remove_file(&report).with_context(|| report.display().to_string())?;
        }
        let mut command = Command::new(&self.python);
        command
            .args(["-m", "pytest", "-p", "no:cacheprovider", "-m", "dp or cpdp"])
            .arg("-c")
            .arg(self.clone.join("pytest.ini"))
            .arg("--rootdir")
            .arg(&self.clone)
            .arg("--junitxml")
            .arg(&report)
            .args(FOLDERS.map(|folder| self.clone.join(folder)))
            .env("PYTHONPATH", &self.clone)
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .current_dir(&self.folder);
        step::run(&mut command)?;
        let told = fs::read_to_string(&report).with_context(|| report.display().to_string())?;
        let missing: Vec<_> = TESTS.iter().filter(|test| !passed(&told, test)).collect();
        if !missing.is_empty() {
            bail!("expected these to pass, which did not run: {missing:?}");
        }
        Ok(())
    }
}

/// True if a test passed by pytest's report: its element holds nothing, such as a failure or the
/// reason of a skip.
fn passed(report: &str, test: &str) -> bool {
    report
        .split("<testcase ")
        .skip(1)
        .filter_map(|element| element.split_once('>'))
        .any(|(attributes, _)| {
            attributes.contains(&format!(" name=\"{test}\"")) && attributes.ends_with('/')
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_passed_if_the_report_has_nothing_else_to_say_of_it() {
        let report = r#"<testsuites><testsuite name="pytest" errors="0" tests="3">
            <testcase classname="feature.a" name="test_a" time="1.5" />
            <testcase classname="feature.b" name="test_b" time="0"><skipped message="no" />
            </testcase><testcase classname="c" name="test_c" time="1"><failure message="1 > 2"/>
            </testcase></testsuite></testsuites>"#;
        let found =
            ["test_a", "test_b", "test_c", "test", "pytest"].map(|test| passed(report, test));
        assert_eq!(found, [true, false, false, false, false]);
    }
}
