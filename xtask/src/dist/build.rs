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

/// Path below `/` where debuggers look for the symbols of a program, by its number.
pub fn path_of_symbols(id: &str) -> String {
    let (folder, file) = id.split_at(2);
    format!("usr/lib/debug/.build-id/{folder}/{file}.debug")
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
fn split(built: &Path, folder: &Path) -> Result<Program> {
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let program = Program {
        stripped: folder.join("validator"),
        symbols: folder.join("validator.debug"),
        id: id_of(built)?,
    };
    let mut keep = Command::new("objcopy");
    keep.args(["--only-keep-debug", "--compress-debug-sections"]);
    step::run(keep.arg(built).arg(&program.symbols))?;
    let mut strip = Command::new("objcopy");
    strip.arg("--strip-unneeded");
    step::run(strip.arg(built).arg(&program.stripped))?;
    Ok(program)
}

/// The number by which a debugger finds the symbols of a program.
fn id_of(file: &Path) -> Result<String> {
    let notes = step::output(Command::new("readelf").arg("--notes").arg(file))?;
    build_id(&notes).with_context(|| format!("expected a build id in {}", file.display()))
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
    use crate::setup;

    #[test]
    fn symbols_lie_where_debuggers_look() {
        let notes = "  GNU  0x00000014\tNT_GNU_BUILD_ID\n    Build ID: 8e35abcd\n  x";
        assert_eq!(
            path_of_symbols(&build_id(notes).unwrap()),
            "usr/lib/debug/.build-id/8e/35abcd.debug"
        );
        assert_eq!(build_id("no notes"), None);
    }

    #[test]
    fn symbols_are_those_of_the_program_and_of_no_other() {
        if !["cc", "objcopy", "readelf"]
            .iter()
            .all(|tool| setup::in_path(tool))
        {
            return println!("skipped: needs a C compiler and binutils");
        }
        let folder = tempfile::tempdir().unwrap();
        let made = |code: &str| {
            let folder = folder.path().join(code);
            fs::create_dir(&folder).unwrap();
            let source = folder.join("a.c");
            fs::write(&source, format!("int main(void) {{ return {code}; }}\n")).unwrap();
            let mut compile = Command::new("cc");
            compile.args(["-g", "-Wl,--build-id=sha1", "-o"]);
            let built = folder.join("built");
            step::run(compile.arg(&built).arg(&source)).unwrap();
            split(&built, &folder).unwrap()
        };
        let (first, second) = (made("1"), made("2"));
        assert_ne!(first.id, second.id);
        for program in [first, second] {
            for (file, expected) in [(&program.stripped, false), (&program.symbols, true)] {
                assert_eq!(id_of(file).unwrap(), program.id);
                let mut sections = Command::new("readelf");
                sections.args(["--sections", "--wide"]).arg(file);
                let sections = step::output(&mut sections).unwrap();
                assert_eq!(sections.contains(".debug_line "), expected, "{sections}");
            }
        }
    }
}
