//! Environments of Python with packages of PyPI, in the cache.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::lab::archive::cannot_write;
use crate::toolchain;

/// The client, as PyPI has it.
pub const SNAPPI: &str = "snappi==1.62.0";
/// The oldest that talks to a server of the model's present version.
pub const SNAPPI_OLDEST: &str = "snappi==1.0.0";
/// Reads frames apart from us.
pub const SCAPY: &str = "scapy==2.6.1";

/// An environment.
pub struct Environment {
    /// Part of the folder's name.
    pub name: &'static str,
    /// Packages with their versions.
    pub packages: &'static [&'static str],
}

/// That of the repository's own scripts.
pub const CLIENT: Environment = Environment {
    name: "snappi",
    packages: &[SNAPPI, SCAPY],
};

/// That of the oldest client, whose grpcio has no wheel for Python 3.12 and newer.
pub const OLDEST: Environment = Environment {
    name: "snappi-oldest",
    packages: &[SNAPPI_OLDEST],
};

impl Environment {
    /// Returns its Python, and makes it first where it is not there. Prints nothing: this may run
    /// beside other steps.
    pub fn python(&self) -> Result<PathBuf> {
        self.python_in(&toolchain::cache())
    }

    fn python_in(&self, cache: &Path) -> Result<PathBuf> {
        let folder = cache.join(format!("lab-python-{}", self.name));
        let python = folder.join("bin/python");
        let made = folder.join("packages.txt");
        let wanted = self.packages.join("\n");
        // Another worktree may be making it.
        let lock = cache.join(format!("lab-python-{}.lock", self.name));
        let _alone = fs::create_dir_all(cache)
            .and_then(|()| File::create(&lock))
            .and_then(|file| file.lock().map(|()| file))
            .with_context(|| cannot_write(&lock))?;
        if fs::read_to_string(&made).is_ok_and(|found| found == wanted) {
            return Ok(python);
        }
        // One that was left half-made is made anew.
        let mut make = Command::new("python3");
        quietly(make.args(["-m", "venv", "--clear"]).arg(&folder))
            .context("Debian has it in the package python3-venv")?;
        let mut install = Command::new(&python);
        install.args(["-m", "pip", "install", "--quiet"]);
        install.args(["--disable-pip-version-check", "--no-input"]);
        // From source it takes longer than all else that a lab does.
        install.args(["--only-binary", "grpcio"]);
        quietly(install.args(self.packages)).context("pip has to reach PyPI")?;
        fs::write(&made, wanted).with_context(|| cannot_write(&made))?;
        Ok(python)
    }
}

/// Runs a command; the error has the last line that it wrote.
fn quietly(command: &mut Command) -> Result<()> {
    let shown = crate::step::show(command);
    let output = command
        .output()
        .with_context(|| format!("cannot run {shown}"))?;
    if output.status.success() {
        return Ok(());
    }
    // Python's venv writes to standard output why it cannot.
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    let last = said.lines().rfind(|line| !line.trim().is_empty());
    bail!("{shown}: {}", last.unwrap_or("no reason given").trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_environment_that_is_there_is_taken_and_one_of_other_packages_is_not() {
        let cache = tempfile::tempdir().unwrap();
        let folder = cache.path().join("lab-python-x");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("packages.txt"), "a==1\nb==2").unwrap();
        let same = Environment {
            name: "x",
            packages: &["a==1", "b==2"],
        };
        let python = same.python_in(cache.path()).unwrap();
        assert_eq!(python, folder.join("bin/python"));
        // The list names no package that pip could look for, or there is no venv to begin with.
        let other = Environment {
            name: "x",
            packages: &["not a requirement"],
        };
        let error = format!("{:#}", other.python_in(cache.path()).unwrap_err());
        let reason = ["pip has to reach PyPI", "python3-venv"];
        assert!(reason.iter().any(|word| error.contains(word)), "{error}");
        assert!(!folder.join("packages.txt").exists());
    }

    #[test]
    fn the_last_line_of_a_failed_command_is_its_reason() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo first; echo the reason >&2; echo >&2; exit 3"]);
        let error = quietly(&mut command).unwrap_err().to_string();
        assert!(error.ends_with(": the reason"), "{error}");
    }
}
