//! The program as it is installed: optimised, with verbs and the XDP programs in it, and with its
//! debug symbols in a file of their own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::{Release, empty};
use crate::step::{self, step};
use crate::{build_ebpf, remap};

/// Features of the installed program.
pub const FEATURES: &str = "verbs,otg";

/// A program, and what was taken out of it.
pub struct Program {
    pub stripped: PathBuf,
    pub symbols: PathBuf,
    /// The number by which a debugger finds the symbols, in hexadecimal.
    pub id: String,
}

impl Program {
    /// Path below `/` where debuggers look for the symbols.
    pub fn path_of_symbols(&self) -> String {
        let (folder, file) = self.id.split_at(2);
        format!("usr/lib/debug/.build-id/{folder}/{file}.debug")
    }
}

/// Builds it into a folder of its own, so that other builds keep theirs.
pub fn program(release: &Release) -> Result<Program> {
    let root = release.root;
    // The options below name the folders of crates, which have to be there.
    step("crates", || {
        step::run(step::cargo().args(["fetch", "--locked"]).current_dir(root))
    })?;
    build_ebpf::object(root)?;
    step("the program, optimised, with verbs and OTG", || {
        step::run(&mut cargo(release))
    })?;
    let built = release.work.join("build/release/validator");
    split(&built, &release.work.join("program"))
}

/// Writes man pages and completions, below the paths of an installation. Returns their folder.
pub fn manual(release: &Release) -> Result<PathBuf> {
    let folder = release.work.join("manual");
    empty(&folder)?;
    let mut cargo = step::cargo();
    cargo
        .args(["run", "--quiet", "--locked", "--package", "pfc-user"])
        // Verbs have no command of their own, and need more to be built.
        .args(["--features", "otg", "--example", "manual", "--"])
        .arg(&folder)
        .current_dir(release.root);
    step("man pages and completions", || step::run(&mut cargo))?;
    Ok(folder)
}

fn cargo(release: &Release) -> Command {
    let root = release.root;
    let mut cargo = step::cargo();
    cargo
        .args(["build", "--release", "--locked", "--package", "pfc-user"])
        .args(["--bin", "validator", "--features", FEATURES])
        .arg("--target-dir")
        .arg(release.work.join("build"))
        .current_dir(root);
    let mut options = remap::of_rustc(root);
    options.push("-Clink-arg=-Wl,--build-id=sha1".to_owned());
    cargo
        .env("CARGO_ENCODED_RUSTFLAGS", options.join("\x1f"))
        .env("CFLAGS", remap::of_cc(root))
        .env("SOURCE_DATE_EPOCH", release.epoch.to_string());
    cargo
}

/// Takes the debug symbols out of a program.
pub fn split(built: &Path, folder: &Path) -> Result<Program> {
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let notes = step::output(Command::new("readelf").arg("--notes").arg(built))?;
    let program = Program {
        stripped: folder.join("validator"),
        symbols: folder.join("validator.debug"),
        id: build_id(&notes)
            .with_context(|| format!("expected a build id in {}", built.display()))?,
    };
    let mut keep = Command::new("objcopy");
    keep.args(["--only-keep-debug", "--compress-debug-sections"]);
    step::run(keep.arg(built).arg(&program.symbols))?;
    let mut strip = Command::new("objcopy");
    strip.arg("--strip-unneeded");
    step::run(strip.arg(built).arg(&program.stripped))?;
    Ok(program)
}

/// Finds the build id in what `readelf --notes` prints.
fn build_id(notes: &str) -> Option<String> {
    let (_, id) = notes.split_once("Build ID: ")?;
    let id: String = id.chars().take_while(char::is_ascii_hexdigit).collect();
    (id.len() > 2).then_some(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_lie_where_debuggers_look() {
        let notes = "  GNU  0x00000014\tNT_GNU_BUILD_ID\n    Build ID: 8e35abcd\n  x";
        let program = Program {
            stripped: PathBuf::new(),
            symbols: PathBuf::new(),
            id: build_id(notes).unwrap(),
        };
        assert_eq!(
            program.path_of_symbols(),
            "usr/lib/debug/.build-id/8e/35abcd.debug"
        );
        assert_eq!(build_id("no notes"), None);
    }
}
