//! `cargo xtask build-ebpf`: builds the XDP programs, and the validator that includes them.

use std::path::Path;
use std::process::Command;
use std::{env, fs};

use anyhow::{Context, Result, bail};

use crate::remap;
use crate::step::{self, step};
use crate::toolchain::{Toolchain, without_outer_cargo};

/// The programs, one object each. The last is for benchmarks.
pub const PROGRAMS: [&str; 5] = ["account", "flow", "responder", "watch", "bench"];
/// Programs with a variant that writes lines about frames, and its name.
pub const TRACED: [(&str, &str); 2] = [("account", "account-traced"), ("watch", "watch-traced")];

/// Builds the objects and `target/release/validator`.
pub fn run(root: &Path) -> Result<()> {
    object(root)?;
    step("target/release/validator", || {
        step::run(
            step::cargo()
                .args([
                    "build",
                    "--release",
                    "--package",
                    "pfc-user",
                    "--bin",
                    "validator",
                ])
                .current_dir(root),
        )
    })
}

/// Builds the objects and puts them where pfc-user's build script looks for them. The variants that
/// trace frames are built first, so that the plain ones stay in the build folder.
pub fn object(root: &Path) -> Result<()> {
    step("XDP programs", || {
        build_objects(root, "bpf,trace", &TRACED)?;
        build_objects(root, "bpf", &PROGRAMS.map(|name| (name, name)))
    })
}

/// `programs`: names in the build folder, and as objects.
fn build_objects(root: &Path, features: &str, programs: &[(&str, &str)]) -> Result<()> {
    let advice = "`cargo xtask setup` installs it; everything else can be built without";
    let Some(toolchain) = Toolchain::find() else {
        bail!("no Rust compiler here has the sources of core: {advice}")
    };
    if !toolchain.has_linker() {
        bail!(
            "there is no bpf-linker in {}: {advice}",
            toolchain.linker_root().display()
        );
    }
    let (target, endian) = if cfg!(target_endian = "little") {
        ("bpfel-unknown-none", "BPFEL")
    } else {
        ("bpfeb-unknown-none", "BPFEB")
    };
    let mut cargo = toolchain.cargo_with_sources();
    cargo.current_dir(root);
    cargo.args([
        "build",
        "--release",
        "--package",
        "pfc-ebpf",
        "--bins",
        "--features",
        features,
    ]);
    cargo.args([
        "-Z",
        "build-std=core",
        "--target",
        target,
        "--target-dir",
        "target/ebpf",
    ]);
    let path = env::var_os("PATH").unwrap_or_default();
    let path = env::join_paths(
        [toolchain.linker_root().join("bin")]
            .into_iter()
            .chain(env::split_paths(&path)),
    )?;
    // Flags for the BPF target only; build scripts run on the host.
    let flags = format!(
        "--cfg=bpf_target_arch=\"{}\" -Cdebuginfo=2 -Clink-arg=--btf {}",
        env::consts::ARCH,
        remap::in_words(root)
    );
    cargo.env("PATH", path);
    cargo.env(
        format!("CARGO_TARGET_{endian}_UNKNOWN_NONE_RUSTFLAGS"),
        flags,
    );
    step::run(&mut cargo)?;
    let built = root.join("target/ebpf").join(target).join("release");
    let objects = root.join("target/ebpf-object");
    programs.iter().try_for_each(|(program, object)| {
        copy_if_changed(&built.join(program), &objects.join(object))
    })
}

/// Lints the programs, type-checked for the host. Their own target would need the sources of `core`
/// in the version of the linter, which are seldom installed.
pub fn lints(root: &Path) -> Command {
    let mut cargo = step::cargo();
    without_outer_cargo(&mut cargo).current_dir(root);
    cargo.args([
        "clippy",
        "--package",
        "pfc-ebpf",
        "--lib",
        "--bins",
        "--features",
        "bpf,trace",
        "--target-dir",
        "target/ebpf-clippy",
        "--",
        "-D",
        "warnings",
        // Registers of BPF have no names for their parts.
        "-A",
        "asm_sub_register",
    ]);
    // Inline assembly for BPF is unstable, and a program without std cannot unwind.
    cargo
        .env("RUSTC_BOOTSTRAP", "1")
        .env("CARGO_PROFILE_DEV_PANIC", "abort")
        .env(
            "RUSTFLAGS",
            format!("--cfg=bpf_target_arch=\"{}\"", env::consts::ARCH),
        );
    cargo
}

/// Copies a file atomically. An equal file is left alone, so that cargo does not rebuild because of
/// it.
fn copy_if_changed(from: &Path, to: &Path) -> Result<()> {
    let new = fs::read(from).with_context(|| format!("cannot read {}", from.display()))?;
    if fs::read(to).is_ok_and(|old| old == new) {
        return Ok(());
    }
    let part = to.with_extension("part");
    let write = fs::create_dir_all(to.parent().expect("a file"))
        .and_then(|()| fs::write(&part, new))
        .and_then(|()| fs::rename(&part, to));
    let written = write.with_context(|| format!("cannot write {}", to.display()));
    step::blame_disk(written, &[Path::new(env!("CARGO_MANIFEST_DIR"))])
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn half_an_object_is_replaced_and_a_whole_one_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (
            folder.path().join("built"),
            folder.path().join("object/account"),
        );
        fs::write(&from, "whole").unwrap();
        copy_if_changed(&from, &to).unwrap();
        let first = fs::metadata(&to).unwrap().ino();
        copy_if_changed(&from, &to).unwrap();
        assert_eq!(fs::metadata(&to).unwrap().ino(), first);

        // Leftovers of killed calls, of this and of older versions.
        fs::write(&to, "who").unwrap();
        fs::write(to.with_extension("part"), "w").unwrap();
        copy_if_changed(&from, &to).unwrap();
        assert_eq!(fs::read(&to).unwrap(), b"whole");
        assert!(!to.with_extension("part").exists());
    }
}
