//! A minimal Debian as an archive, made of packages from the mirror that this machine's apt uses.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};

use crate::step::{self, step};
use crate::toolchain;

/// A release under test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Suite {
    /// Debian 12
    Bookworm,
    /// Debian 13
    Trixie,
}

impl Suite {
    pub const ALL: [Self; 2] = [Self::Bookworm, Self::Trixie];

    pub fn name(self) -> &'static str {
        match self {
            Self::Bookworm => "bookworm",
            Self::Trixie => "trixie",
        }
    }

    /// Path in the cache for files of this release.
    pub fn path(self, suffix: &str) -> PathBuf {
        toolchain::cache().join(format!("userspace-{}{suffix}", self.name()))
    }
}

/// apt's configuration on the fresh Debian.
pub struct Apt {
    /// Lines of `sources.list`.
    pub sources: Vec<String>,
    /// Lines of `apt.conf`.
    pub options: Vec<String>,
}

impl Apt {
    /// Copies this machine's, for another release.
    pub fn of_this_machine(suite: Suite) -> Result<Self> {
        let targets = step::output(Command::new("apt-get").args([
            "indextargets",
            "--format",
            "$(LABEL) $(SITE)",
            "Created-By: Packages",
            "Origin: Debian",
        ]))?;
        let sources = sources(&targets, suite).with_context(|| {
            format!(
                "expected apt on this machine to know the labels Debian and Debian-Security, \
                 found {:?}; this needs Debian, and `apt-get update` before",
                targets.lines().map(label).collect::<Vec<_>>()
            )
        })?;
        let configuration = step::output(Command::new("apt-config").arg("dump"))?;
        Ok(Self {
            sources,
            options: options(&configuration).map(str::to_owned).collect(),
        })
    }
}

/// Returns the archive, and makes it if it is missing. apt later upgrades its old packages.
pub fn base(suite: Suite, apt: &Apt) -> Result<PathBuf> {
    let archive = suite.path(".tar");
    if archive.is_file() {
        println!(
            "==> minimal Debian: {}; remove it to make it anew",
            archive.display()
        );
        return Ok(archive);
    }
    let part = suite.path(".part.tar");
    let mut make = super::bound();
    make.args(["--mount-proc", "--", "mmdebstrap"]);
    make.args(["--variant=minbase", "--include=ca-certificates"]);
    make.args(
        apt.options
            .iter()
            .map(|option| format!("--aptopt={option}")),
    );
    make.arg(suite.name()).arg(&part).args(&apt.sources);
    step(
        &format!("minimal Debian: mmdebstrap {}", suite.name()),
        || step::run(&mut make),
    )?;
    fs::rename(&part, &archive).with_context(|| format!("cannot make {}", archive.display()))?;
    Ok(archive)
}

fn label(target: &str) -> &str {
    target.split(' ').next().unwrap_or_default()
}

/// Makes the sources from lines `LABEL SITE`: the mirrors of Debian itself and of its security
/// updates.
fn sources(targets: &str, suite: Suite) -> Option<Vec<String>> {
    let site = |wanted| {
        let mut of_label = targets.lines().filter(|target| label(target) == wanted);
        Some(of_label.next()?.split_once(' ')?.1)
    };
    let (debian, security) = (site("Debian")?, site("Debian-Security")?);
    let name = suite.name();
    Some(vec![
        format!("deb {debian} {name} main"),
        format!("deb {debian} {name}-updates main"),
        format!("deb {security} {name}-security main"),
    ])
}

/// Selects the settings in the output of `apt-config dump` that say how to reach mirrors and
/// whether to trust their dates. Empty ones are left out.
fn options(configuration: &str) -> impl Iterator<Item = &str> {
    const PASSED_ON: [&str; 4] = [
        "Acquire::http:",
        "Acquire::https:",
        "Acquire::Check-",
        "Acquire::Retries",
    ];
    configuration.lines().filter(|line| {
        PASSED_ON.iter().any(|start| line.starts_with(start)) && !line.ends_with(" \"\";")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mirrors_are_those_of_this_machine() {
        let targets = "Debian http://a/debian\nDebian http://a/debian\nDebian-Security http://a/s";
        assert_eq!(
            sources(targets, Suite::Trixie).unwrap(),
            [
                "deb http://a/debian trixie main",
                "deb http://a/debian trixie-updates main",
                "deb http://a/s trixie-security main"
            ]
        );
        assert_eq!(sources("Debian http://a/debian", Suite::Trixie), None);
        assert_eq!(sources("", Suite::Bookworm), None);
    }

    #[test]
    fn options_are_those_on_the_way_to_mirrors() {
        let dump = "APT::Architecture \"amd64\";\nAcquire::Check-Date \"false\";\n\
                    Acquire::http \"\";\nAcquire::http::Proxy \"http://p:1\";\n\
                    Acquire::https::Proxy \"\";\nAcquire::GzipIndexes \"true\";";
        assert_eq!(
            options(dump).collect::<Vec<_>>(),
            [
                "Acquire::Check-Date \"false\";",
                "Acquire::http::Proxy \"http://p:1\";"
            ]
        );
    }
}
