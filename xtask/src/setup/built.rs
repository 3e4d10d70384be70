//! Programs of others that are built once into the cache folder.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use super::Group;
use super::linker::install;
use crate::step;
use crate::toolchain::cache;

/// A program that cargo builds.
pub struct Built {
    /// Its crate, which the program is named after.
    pub name: &'static str,
    /// Its release.
    pub version: &'static str,
    /// The group that needs it.
    pub group: Group,
    /// The reason for it.
    pub why: &'static str,
    /// Time to build it on two CPUs.
    pub takes: &'static str,
}

/// mdBook, without server and search.
pub const MDBOOK: Built = Built {
    name: "mdbook",
    version: "0.4.52",
    group: Group::Docs,
    why: "it builds the book",
    takes: "half a minute",
};

/// cargo-deny.
pub const DENY: Built = Built {
    name: "cargo-deny",
    version: "0.20.2",
    group: Group::Crates,
    why: "it holds the crates of others against the rules in deny.toml",
    takes: "two minutes",
};

/// All of them.
pub const ALL: [&Built; 2] = [&MDBOOK, &DENY];

impl Built {
    /// Path of the program, which need not exist.
    pub fn program(&self) -> PathBuf {
        self.root().join("bin").join(self.name)
    }

    fn root(&self) -> PathBuf {
        cache().join(format!("{}-{}", self.name, self.version))
    }

    /// True if the program exists and runs.
    pub fn is_there(&self) -> bool {
        step::output(Command::new(self.program()).arg("--version")).is_ok()
    }

    /// Builds it without optimisation: that takes a third of the time, and the program is still
    /// quick enough.
    pub fn build(&self) -> Result<()> {
        let mut cargo = step::cargo();
        cargo
            .args(["install", self.name, "--version", self.version, "--debug"])
            .env("CARGO_PROFILE_DEV_DEBUG", "0");
        install(cargo, &self.root())
    }
}
