//! `cargo xtask dist`: what others install, reproducibly.
//!
//! The same commit gives the same files with the same compiler, in whatever folder and whenever
//! they are built.

mod build;
mod check;
mod crates;
mod deb;
mod sbom;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::{env, fs};

use anyhow::{Context, Result};

use crate::setup::{self, Group};
use crate::step::{self, step};
use crate::{files, workspace};

/// Tools that the packages are built with, from the compiler of the XDP programs to dpkg.
const GROUPS: [Group; 3] = [Group::Build, Group::Lab, Group::Dist];
/// File with the sums of all others.
const SUMS: &str = "SHA256SUMS";

#[derive(clap::Args)]
pub struct Dist {
    #[command(flatten)]
    setup: setup::Install,
    /// Then try what was made (as root), or one part of it (`package` as root)
    #[arg(long, value_enum, value_name = "PART", num_args = 0..=1, require_equals = true)]
    check: Option<Option<check::Part>>,
}

/// A tree to make packages of.
pub struct Release<'a> {
    root: &'a Path,
    /// Folder of all that is made on the way.
    work: PathBuf,
    /// Date of every file in the packages, in seconds since 1970.
    epoch: u64,
}

impl<'a> Release<'a> {
    /// Takes the date from `SOURCE_DATE_EPOCH`, or otherwise from the commit.
    fn of(root: &'a Path) -> Result<Self> {
        let set = env::var("SOURCE_DATE_EPOCH").ok();
        let mut log = workspace::git(root);
        log.args(["log", "-1", "--format=%ct"]);
        let text = set.map_or_else(|| step::output(&mut log), Ok).context(
            "the date of the packages is not known: set SOURCE_DATE_EPOCH, in seconds since 1970",
        )?;
        let epoch = text.parse().with_context(|| {
            format!("SOURCE_DATE_EPOCH: expected seconds since 1970, found {text:?}")
        })?;
        Ok(Self::at(root, epoch))
    }

    fn at(root: &'a Path, epoch: u64) -> Self {
        Self {
            root,
            work: root.join("target/dist"),
            epoch,
        }
    }

    /// Folder of what is handed out.
    fn out(&self) -> PathBuf {
        self.work.join("out")
    }
}

pub fn run(root: &Path, options: &Dist) -> Result<ExitCode> {
    setup::run(&GROUPS, &options.setup)?;
    let release = Release::of(root)?;
    if let Some(part) = options.check {
        return check::run(&release, part, &options.setup);
    }
    let made = make(&release)?;
    println!("==> {}", release.out().display());
    for file in &made {
        let size = fs::metadata(release.out().join(file))?.len();
        println!("    {file}: {:.1} MB", size as f64 / 1e6);
    }
    Ok(ExitCode::SUCCESS)
}

/// Makes all files anew and returns their names, in order.
fn make(release: &Release) -> Result<Vec<String>> {
    empty(&release.out())?;
    let program = step::explain_cargo(build::program(release), release.root)?;
    let manual = build::manual(release)?;
    step("list of what is in the program (SPDX)", || {
        sbom::write(release)
    })?;
    step("Debian packages", || deb::write(release, &program, &manual))?;
    step("crates", || crates::write(release))?;
    sums(&release.out())
}

/// Makes an empty folder.
fn empty(folder: &Path) -> Result<()> {
    let make = || {
        if folder.exists() {
            fs::remove_dir_all(folder)?;
        }
        fs::create_dir_all(folder)
    };
    make().with_context(|| format!("cannot make an empty folder {}", folder.display()))
}

/// Writes the sums of all files in a folder, and returns the names of all.
fn sums(folder: &Path) -> Result<Vec<String>> {
    let mut names = names(folder)?;
    let mut sums = step::output(Command::new("sha256sum").args(&names).current_dir(folder))?;
    sums.push('\n');
    fs::write(folder.join(SUMS), sums)?;
    names.push(SUMS.to_owned());
    Ok(names)
}

/// The files in a folder, in order.
fn names(folder: &Path) -> Result<Vec<String>> {
    let name = |path: &PathBuf| {
        path.file_name()
            .map(|name| name.to_string_lossy().into_owned())
    };
    Ok(files::entries(folder)?.iter().filter_map(name).collect())
}
