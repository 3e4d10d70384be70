//! `cargo xtask dist --check`: proof that the packages are reproducible and that they work.
//!
//! Ends with a line like libtest's.

use std::fs;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};
use clap::ValueEnum;

use super::{Release, SUMS, crates, empty, make, sbom};
use crate::files;
use crate::lab;
use crate::setup::{self, Group, Install};
use crate::step;
use crate::workspace;

/// A property of what was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Part {
    /// The crates compile as a registry hands them out
    Crates,
    /// The SBOM is valid SPDX, says its validator
    Sbom,
    /// Debian's lintian finds no error in the packages
    Policy,
    /// The package installs and runs on a fresh Debian 12, in a chroot
    Package,
    /// A second build from nothing, in another folder, is equal
    Again,
}

impl Part {
    fn name(self) -> &'static str {
        match self {
            Self::Crates => "the crates compile as published",
            Self::Sbom => "the SBOM is valid SPDX",
            Self::Policy => "lintian finds no error in the packages",
            Self::Package => "the package installs and runs on Debian 12",
            Self::Again => "a second build in another folder is equal",
        }
    }

    fn check(self, release: &Release) -> Result<()> {
        match self {
            Self::Crates => crates::verify(release),
            Self::Sbom => sbom::validate(release.root, &release.out().join(sbom::file_name())),
            Self::Policy => policy(release),
            Self::Package => lab::try_packages(release.root, &release.out()),
            Self::Again => again(release),
        }
    }
}

/// Checks one part or all.
pub fn run(release: &Release, part: Option<Part>, install: &Install) -> Result<ExitCode> {
    let parts = part.map_or(Part::value_variants().to_vec(), |part| vec![part]);
    if parts.contains(&Part::Package) && !step::is_root() {
        bail!("a chroot needs root; run it with sudo or as root");
    }
    if parts.contains(&Part::Package) || parts.contains(&Part::Policy) {
        setup::run(&[Group::Userspace], install)?;
    }
    make(release)?;
    let mut failed = 0;
    for part in &parts {
        match part.check(release) {
            Ok(()) => println!("test {} ... ok", part.name()),
            Err(error) => {
                failed += 1;
                println!("test {} ... FAILED\n    {error:#}", part.name());
            }
        }
    }
    let word = if failed == 0 { "ok" } else { "FAILED" };
    println!(
        "test result: {word}. {} passed; {failed} failed; 0 ignored",
        parts.len() - failed
    );
    Ok(step::exit_code(failed == 0))
}

/// Has lintian read both packages.
fn policy(release: &Release) -> Result<()> {
    let packages = super::names(&release.out())?.into_iter();
    let packages = packages.filter(|name| name.ends_with(".deb"));
    let mut lintian = Command::new("lintian");
    lintian.args(["--allow-root", "--no-cfg", "--fail-on", "error"]);
    step::run(lintian.args(packages).current_dir(release.out()))
}

/// Builds all from a copy of the tree, from nothing, and compares the sums.
fn again(release: &Release) -> Result<()> {
    let folder = release.work.join("again");
    empty(&folder)?;
    workspace::copy(release.root, &folder)?;
    // The copy lists its own files then, although it lies in a folder that git ignores.
    step::run(workspace::git(&folder).args(["init", "--quiet"]))?;
    let second = Release::at(&folder, release.epoch);
    make(&second)?;
    let sums = |release: &Release| files::read(&release.out().join(SUMS));
    let (first, after) = (sums(release)?, sums(&second)?);
    let differing = differing(&first, &after);
    if !differing.is_empty() {
        bail!(
            "{} differ; {} is left for a look",
            differing.join(", "),
            second.out().display()
        );
    }
    fs::remove_dir_all(&folder).with_context(|| format!("cannot remove {}", folder.display()))
}

/// Names of files whose sums are not in both lists.
fn differing<'a>(first: &'a str, second: &'a str) -> Vec<&'a str> {
    let only = |one: &'a str, other: &'a str| {
        one.lines()
            .filter(move |line| !other.lines().any(|found| found == *line))
            .filter_map(|line| line.split_whitespace().last())
    };
    let mut names: Vec<_> = only(first, second).chain(only(second, first)).collect();
    names.sort_unstable();
    names.dedup();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_is_named_whichever_build_has_it() {
        assert!(differing("00  a\n01  b\n", "01  b\n00  a\n").is_empty());
        assert_eq!(differing("00  a\n01  b\n", "00  a\n02  b\n"), ["b"]);
        assert_eq!(differing("00  a\n", "00  a\n01  c\n"), ["c"]);
    }
}
