//! bpf-linker, built once for the LLVM of the compiler in use.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::step;
use crate::toolchain::{LINKER_VERSION, Toolchain};

/// The build of a linker: its folder, feature and library.
struct Linker {
    root: PathBuf,
    feature: String,
    /// The name of libLLVM as rustc is linked with it, and its file.
    library: (String, PathBuf),
}

/// Builds it with the cargo that runs this program.
pub fn build(toolchain: &Toolchain) -> Result<()> {
    let linker = Linker {
        root: toolchain.linker_root(),
        feature: toolchain.linker_feature(),
        library: toolchain.llvm_library()?,
    };
    linker.build(step::cargo())
}

/// Completes `cargo install CRATE --version VERSION ...` and runs it; the program goes to
/// `root/bin`.
pub fn install(mut cargo: Command, root: &Path) -> Result<()> {
    // The folder remains when cargo is interrupted, so that the next call continues the build.
    let work = root.join("build");
    cargo
        .args(["--locked", "--force", "--no-default-features", "--root"])
        .arg(root)
        .env("CARGO_TARGET_DIR", &work);
    step::explain_cargo(step::run(&mut cargo), root)?;
    fs::remove_dir_all(&work).or_else(|error| match error.kind() {
        io::ErrorKind::NotFound => Ok(()),
        _ => Err(error).with_context(|| format!("cannot remove {}", work.display())),
    })
}

impl Linker {
    fn build(&self, mut cargo: Command) -> Result<()> {
        // A folder laid out like LLVM's. The linker is built against it and loads its library from
        // there.
        let prefix = self.root.join("llvm");
        self.make_prefix(&prefix).with_context(|| {
            format!(
                "cannot write to {}; VALIDATOR_CACHE names another folder",
                prefix.display()
            )
        })?;
        cargo.args(["install", "bpf-linker", "--version", LINKER_VERSION]);
        cargo
            .args(["--features", &self.feature])
            .env("LLVM_PREFIX", &prefix)
            .env("CARGO_PROFILE_RELEASE_DEBUG", "0");
        install(cargo, &self.root)
    }

    /// Leaves correct links alone, as another call may be building with them.
    fn make_prefix(&self, prefix: &Path) -> io::Result<()> {
        let (name, file) = &self.library;
        let folder = prefix.join("lib");
        fs::create_dir_all(&folder)?;
        for link in [folder.join("libLLVM.so"), folder.join(name)] {
            if fs::read_link(&link).is_ok_and(|target| target == *file) {
                continue;
            }
            if link.symlink_metadata().is_ok() {
                fs::remove_file(&link)?;
            }
            std::os::unix::fs::symlink(file, &link)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Cargo stops half-way the first time and leaves a part of its work and half a program.
    const CARGO: &str = r#"
        cd "$(dirname "$LLVM_PREFIX")"
        echo "$@" >> calls
        mkdir -p bin "$CARGO_TARGET_DIR"
        printf half > bin/bpf-linker
        [ -e "$CARGO_TARGET_DIR/part" ] || { touch "$CARGO_TARGET_DIR/part"; kill -9 $$; }
        ls llvm/lib > found
    "#;

    fn cargo() -> Command {
        let mut cargo = Command::new("sh");
        cargo.args(["-euc", CARGO, "cargo"]);
        cargo
    }

    #[test]
    fn a_second_call_goes_on_where_the_first_was_killed() {
        let folder = tempfile::tempdir().unwrap();
        let mut linker = Linker {
            root: folder.path().join("root"),
            feature: "llvm-22".to_owned(),
            library: ("libLLVM.so.22.1".to_owned(), folder.path().join("gone")),
        };
        let error = format!("{:#}", linker.build(cargo()).unwrap_err());
        assert!(
            error.contains("signal: 9") && error.contains("second call"),
            "{error}"
        );
        assert!(linker.root.join("build/part").exists());

        // Meanwhile an update of the compiler has moved its library.
        linker.library.1 = folder.path().join("here");
        fs::write(&linker.library.1, "").unwrap();
        linker.build(cargo()).unwrap();
        let read = |name: &str| fs::read_to_string(linker.root.join(name)).unwrap();
        assert_eq!(read("found"), "libLLVM.so\nlibLLVM.so.22.1\n");
        assert_eq!(
            fs::canonicalize(linker.root.join("llvm/lib/libLLVM.so")).unwrap(),
            fs::canonicalize(&linker.library.1).unwrap()
        );
        assert!(!linker.root.join("build").exists());
        let calls = read("calls");
        let calls: Vec<_> = calls.lines().collect();
        assert_eq!(calls.len(), 2);
        assert_eq!(calls[0], calls[1]);
        // A file that is in `bin` by then does not stop the build.
        assert!(calls[0].contains("--force"));
    }

    #[test]
    fn without_network_the_first_call_says_what_to_do_and_the_second_goes_on() {
        let folder = tempfile::tempdir().unwrap();
        let library = folder.path().join("library");
        fs::write(&library, "").unwrap();
        let linker = Linker {
            root: folder.path().join("root"),
            feature: "llvm-22".to_owned(),
            library: ("libLLVM.so.22.1".to_owned(), library),
        };
        // The real one, which knows no crate yet and may not ask for any.
        let mut offline = step::cargo();
        offline
            .env("CARGO_NET_OFFLINE", "true")
            .env("CARGO_HOME", folder.path().join("home"));
        let error = format!("{:#}", linker.build(offline).unwrap_err());
        for part in [
            "CARGO_NET_OFFLINE",
            "a second call goes on",
            "exit status: 101",
        ] {
            assert!(error.contains(part), "{error}");
        }
        fs::create_dir_all(linker.root.join("build")).unwrap();
        fs::write(linker.root.join("build/part"), "").unwrap();
        linker.build(cargo()).unwrap();
        assert!(linker.root.join("bin/bpf-linker").exists());
        assert!(!linker.root.join("build").exists());
    }
}
