//! The tools that build XDP programs: a rustc with the sources of `core`, and a bpf-linker for its
//! LLVM.

use std::env;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};

use crate::step;

/// The release of bpf-linker in use.
pub const LINKER_VERSION: &str = "0.13.0";
/// LLVM versions for which this release can be built.
const LINKER_LLVM: std::ops::RangeInclusive<u32> = 21..=23;
/// The oldest compiler that builds the workspace: its `rust-version`.
const OLDEST: (u32, u32) = (1, 95);

/// A compiler that can build `core` for the BPF target.
pub struct Toolchain {
    /// Its rustc.
    pub rustc: PathBuf,
    /// The cargo that comes with it; `None` means the one that runs this program.
    pub cargo: Option<PathBuf>,
    /// LLVM version in rustc's notation, such as `22.1.2`.
    pub llvm: String,
    sysroot: PathBuf,
}

impl Toolchain {
    /// Finds the first compiler with the sources among rustup's nightly, rustup's stable and the
    /// system's.
    pub fn find() -> Option<Self> {
        let of_rustup = ["nightly", "stable"].into_iter().filter_map(|channel| {
            // Asking for a missing toolchain must not install it.
            let which = |tool| {
                let mut rustup = Command::new("rustup");
                step::output(
                    rustup
                        .args(["which", "--toolchain", channel, tool])
                        .env("RUSTUP_AUTO_INSTALL", "0"),
                )
                .ok()
            };
            Some((which("rustc")?.into(), which("cargo").map(PathBuf::from)))
        });
        of_rustup
            .chain([(PathBuf::from("/usr/bin/rustc"), None)])
            .find_map(|(rustc, cargo)| Self::at(rustc, cargo))
    }

    fn at(rustc: PathBuf, cargo: Option<PathBuf>) -> Option<Self> {
        let sysroot =
            PathBuf::from(step::output(Command::new(&rustc).args(["--print", "sysroot"])).ok()?);
        let version = step::output(Command::new(&rustc).arg("-vV")).ok()?;
        let llvm = field(&version, "LLVM version")?.to_owned();
        let usable = sysroot.join("lib/rustlib/src/rust/library/core").is_dir()
            && numbers(field(&version, "release")?)? >= OLDEST
            && LINKER_LLVM.contains(&numbers(&llvm)?.0);
        usable.then_some(Self {
            rustc,
            cargo,
            llvm,
            sysroot,
        })
    }

    /// Makes a cargo command with this compiler; `-Z build-std` then builds the standard library
    /// from its sources.
    pub fn cargo_with_sources(&self) -> Command {
        let mut cargo = self.cargo.as_ref().map_or_else(step::cargo, Command::new);
        without_outer_cargo(&mut cargo)
            .env("RUSTC", &self.rustc)
            .env("RUSTC_BOOTSTRAP", "1");
        cargo
    }

    /// The feature of bpf-linker for this LLVM.
    pub fn linker_feature(&self) -> String {
        format!("llvm-{}", self.llvm.split('.').next().unwrap_or_default())
    }

    /// Folder of the bpf-linker for this compiler.
    pub fn linker_root(&self) -> PathBuf {
        cache().join(format!("bpf-linker-{LINKER_VERSION}-llvm-{}", self.llvm))
    }

    /// True if that bpf-linker exists and runs: an update may have removed the libLLVM that it was
    /// linked with.
    pub fn has_linker(&self) -> bool {
        step::output(Command::new(self.linker_root().join("bin/bpf-linker")).arg("--version"))
            .is_ok()
    }

    /// The libLLVM that rustc is linked with: its name there, and the file.
    pub fn llvm_library(&self) -> Result<(String, PathBuf)> {
        // Through the sysroot, because rustup's programs in PATH are not the compiler.
        let binary = self.sysroot.join("bin/rustc");
        let libraries = step::output(Command::new("ldd").arg(&binary))?;
        let library = libraries.lines().find_map(|line| {
            let (name, rest) = line.trim().split_once(" => ")?;
            name.starts_with("libLLVM").then(|| {
                (
                    name.to_owned(),
                    PathBuf::from(rest.split(" (").next().unwrap_or(rest)),
                )
            })
        });
        library.filter(|(_, path)| path.exists()).with_context(|| {
            format!(
                "expected {} to be linked with a libLLVM, found:\n{libraries}",
                binary.display()
            )
        })
    }
}

/// Finds the line `name: value` of `rustc -vV`.
fn field<'a>(version: &'a str, name: &str) -> Option<&'a str> {
    version
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
}

/// Parses the first two numbers of a version.
fn numbers(version: &str) -> Option<(u32, u32)> {
    let mut parts = version.split('.');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

/// Folder for tools that are built once: `$VALIDATOR_CACHE`, or otherwise the XDG cache folder.
pub fn cache() -> PathBuf {
    let set = |name| {
        env::var_os(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    set("VALIDATOR_CACHE").unwrap_or_else(|| {
        let base = set("XDG_CACHE_HOME").or_else(|| Some(set("HOME")?.join(".cache")));
        base.unwrap_or_else(env::temp_dir).join("validator")
    })
}

/// Removes what the cargo that runs this program has set for its own toolchain and build, so that
/// another cargo can be configured.
pub fn without_outer_cargo(command: &mut Command) -> &mut Command {
    const OUTER: [&str; 5] = ["CARGO", "RUSTUP_TOOLCHAIN", "RUSTC", "RUSTFLAGS", "RUSTDOC"];
    /// Settings of the user for every cargo.
    const KEPT: [&str; 5] = [
        "CARGO_HOME",
        "CARGO_NET_",
        "CARGO_HTTP_",
        "CARGO_REGISTR",
        "CARGO_SOURCE_",
    ];
    for (name, _) in env::vars_os() {
        let starts = |prefixes: &[&str]| {
            prefixes
                .iter()
                .any(|prefix| name.to_string_lossy().starts_with(prefix))
        };
        if starts(&OUTER) && !starts(&KEPT) {
            command.env_remove(&name);
        }
    }
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    const VERSION: &str = "rustc 1.96.0 (ac68faa20 2026-05-25)\nbinary: rustc\n\
        release: 1.96.0-nightly\nLLVM version: 22.1.8\n";

    #[test]
    fn versions_are_read() {
        assert_eq!(field(VERSION, "LLVM version"), Some("22.1.8"));
        assert_eq!(field(VERSION, "release").and_then(numbers), Some((1, 96)));
        assert_eq!(field(VERSION, "host"), None);
        assert_eq!(numbers("none"), None);
    }

    #[test]
    fn the_oldest_compiler_is_that_of_the_workspace() {
        let manifest = include_str!("../../Cargo.toml");
        assert!(manifest.contains(&format!("rust-version = \"{}.{}\"", OLDEST.0, OLDEST.1)));
    }
}
