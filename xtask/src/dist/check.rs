//! `cargo xtask dist --check`: proof that the packages are reproducible and that they work.
//!
//! Ends with a line like libtest's.

use std::fs;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};

use super::{Release, SUMS, build, crates, deb, empty, make, sbom, service};
use crate::lab::userspace::chroot::{self, Chroot};
use crate::lab::userspace::debian::Suite;
use crate::setup::{self, Group, Install};
use crate::step::{self, step};
use crate::workspace;

/// Where the package lies in the chroot.
const PACKAGE: &str = "/root/validator.deb";
const SYMBOLS: &str = "/root/validator-dbgsym.deb";
/// Exit code of an inconclusive run, as on a busy machine, and how often one is tried again.
const INCONCLUSIVE: i32 = 3;
const TRIES: usize = 3;
/// What a fresh Debian has to say of the package: a program and its arguments, and a part of what
/// it prints, or nothing.
const ANSWERS: [(&str, &str); 6] = [
    ("validator --version", workspace::VERSION),
    ("validator list", "rc.c09-142-01"),
    ("validator otg --help", "--client-ca"),
    // The agent was built with verbs; without an adapter it says so.
    (
        "sh -c 'validator agent --listen 127.0.0.1:0 2>&1 || true'",
        "RDMA device",
    ),
    ("dpkg --verify validator", ""),
    (
        "dpkg -L validator",
        "/usr/share/man/man1/validator-run.1.gz",
    ),
];
/// The units, as systemd names them, and the largest exposure that it is to find of each, in
/// tenths: 10 is the worst. The last sends frames, on time.
const UNITS: [(&str, u32); 3] = [
    ("validator-watch@eth0.service", 20),
    ("validator-agent.service", 20),
    ("validator-otg.service", 24),
];

/// Links of the enabled services: one each, and that which starts a count with its interface.
const LINKS: usize = 4;

/// A property of what was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
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
    const ALL: [Self; 5] = [
        Self::Crates,
        Self::Sbom,
        Self::Policy,
        Self::Package,
        Self::Again,
    ];

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
            Self::Package => on_debian(release),
            Self::Again => again(release),
        }
    }
}

/// Checks one part or all.
pub fn run(release: &Release, part: Option<Part>, install: &Install) -> Result<ExitCode> {
    let parts = part.map_or(Part::ALL.to_vec(), |part| vec![part]);
    if parts.contains(&Part::Package) {
        if !step::is_root() {
            bail!("a chroot needs root; run it with sudo or as root");
        }
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
    Ok(if failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
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
    // It lists its own files then, although it lies in a folder that git ignores.
    step::run(workspace::git(&folder).args(["init", "--quiet"]))?;
    let second = Release::at(&folder, release.epoch);
    make(&second)?;
    let sums = |release: &Release| {
        let file = release.out().join(SUMS);
        fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))
    };
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

fn on_debian(release: &Release) -> Result<()> {
    chroot::with(release.root, Suite::Bookworm, |debian| {
        for (name, to) in [(deb::NAME, PACKAGE), (deb::SYMBOLS, SYMBOLS)] {
            let package = super::names(&release.out())?
                .into_iter()
                .find(|file| file.starts_with(&format!("{name}_")))
                .with_context(|| format!("there is no package {name}"))?;
            fs::copy(release.out().join(&package), debian.path(to))?;
        }
        for tool in ["cargo", "rustc", "cc"] {
            if debian.path("/usr/bin").join(tool).exists() {
                bail!("the fresh Debian has {tool}");
            }
        }
        debian.must("apt-get update --quiet")?;
        debian.must(&format!(
            "apt-get install --yes --no-install-recommends {PACKAGE}"
        ))?;
        for (line, expected) in ANSWERS {
            answers(debian, line, expected)?;
        }
        finds_symbols(debian)?;
        runs_cases(debian)?;
        check_units(debian)?;
        service::start(debian)?;
        keeps_links(debian)?;
        // The symbols go with the program.
        debian.must("apt-get remove --yes validator")?;
        links(debian, 0)?;
        debian.must("apt-get purge --yes validator")?;
        leaves_nothing(debian)
    })
}

/// Installs the symbols, which lie where a debugger looks for those of the installed program.
fn finds_symbols(debian: &Chroot) -> Result<()> {
    debian.must(&format!("apt-get install --yes {SYMBOLS}"))?;
    let program = debian.path("/usr/bin/validator");
    let symbols = build::path_of_symbols(&build::id_of(&program)?);
    build::compare(&program, &debian.path(&symbols))
}

/// Enables the services as their pages say. An upgrade, here to the same version, keeps them so.
fn keeps_links(debian: &Chroot) -> Result<()> {
    debian.must("systemctl enable validator-watch@t0 validator-agent validator-otg")?;
    links(debian, LINKS)?;
    debian.must(&format!("apt-get install --yes --reinstall {PACKAGE}"))?;
    links(debian, LINKS)
}

/// Compares the number of the links that enable services of ours.
fn links(debian: &Chroot, expected: usize) -> Result<()> {
    let found = debian.output(&[
        "find",
        "/etc/systemd/system",
        "-type",
        "l",
        "-name",
        "validator-*",
    ])?;
    if found.lines().count() != expected {
        bail!("expected {expected} links that enable services, found {found:?}");
    }
    Ok(())
}

fn answers(debian: &Chroot, line: &str, expected: &str) -> Result<()> {
    let found = debian.output(&["sh", "-euc", line])?;
    let as_expected = match expected {
        "" => found.is_empty(),
        part => found.contains(part),
    };
    if !as_expected {
        bail!("`{line}`: expected {expected:?}, found {found:?}");
    }
    Ok(())
}

/// Runs the cases on the simulated devices. A busy machine makes some inconclusive.
fn runs_cases(debian: &Chroot) -> Result<()> {
    const RUN: &str = "validator run --testbed /usr/share/validator/testbeds/sim.toml \
        --plan smoke --out /root/results";
    let mut code = None;
    for _ in 0..TRIES {
        code = step(RUN, || debian.run(&chroot::words(RUN)))?.code();
        if code != Some(INCONCLUSIVE) {
            break;
        }
    }
    let report = fs::read_to_string(debian.path("/root/results/report.json"))?;
    let report: serde_json::Value = serde_json::from_str(&report)?;
    let checks = report["cases"].as_array().into_iter().flatten();
    let checks = checks
        .filter_map(|case| case["checks"].as_array())
        .flatten();
    let passed = checks.filter(|check| check["verdict"] == "pass").count();
    // Frames were counted and judged, whatever the machine's stalls did to single checks.
    if ![Some(0), Some(INCONCLUSIVE)].contains(&code) || passed == 0 {
        bail!(
            "expected checks to pass and none to fail, found exit code {code:?} and {passed} \
             passed"
        );
    }
    if !debian.path("/root/results/junit.xml").is_file() {
        bail!("`{RUN}` wrote no junit.xml");
    }
    Ok(())
}

/// Lets systemd read the units, without starting anything.
fn check_units(debian: &Chroot) -> Result<()> {
    debian.must("apt-get install --yes --no-install-recommends systemd")?;
    for (unit, exposure) in UNITS {
        debian.must(&format!("systemd-analyze verify --man=no {unit}"))?;
        // A template needs no instance here.
        let file = format!("/usr/lib/systemd/system/{}", unit.replace("@eth0", "@"));
        debian.must(&format!(
            "systemd-analyze security --offline=true --no-pager --threshold={exposure} {file}"
        ))?;
    }
    Ok(())
}

fn leaves_nothing(debian: &Chroot) -> Result<()> {
    let left = debian.output(&[
        "find",
        "/usr",
        "/etc",
        "/var/lib/dpkg/info",
        "-name",
        "*validator*",
        "-o",
        "-path",
        "/usr/lib/debug/.build-id/*",
    ])?;
    if !left.is_empty() {
        bail!("the removed package leaves: {left}");
    }
    Ok(())
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
