//! Debian packages that are unpacked into the cache, and not installed: QEMU's package is in the way of others that a machine may
//! have, and the kernel is for the guest alone.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, process};

use anyhow::{Context, Result, bail};

use super::modules;
use crate::setup;
use crate::step::{self, step};
use crate::toolchain;

/// The kernel, whatever its version is now. Debian's kernel for clouds has no rdma_rxe.
const KERNEL: &str = "linux-image-amd64";
/// Also where the machine has them: the guest gets these, and files of different versions do not mix.
const ALWAYS: [&str; 8] = [
    "qemu-system-x86",
    "qemu-system-common",
    "qemu-system-data",
    "seabios",
    "busybox-static",
    "libibverbs1",
    "ibverbs-providers",
    "iproute2",
];

/// Where they are unpacked.
pub struct Tree(PathBuf);

impl Tree {
    /// Unpacks what is not there yet in the versions that apt knows.
    pub fn prepare() -> Result<Self> {
        for tool in ["apt-get", "apt-cache", "dpkg"] {
            if !setup::in_path(tool) {
                bail!(
                    "there is no {tool}: the lab's QEMU and kernel are taken from Debian's packages, on Debian or what derives from it"
                );
            }
        }
        let wanted = wanted().or_else(|_| update().and_then(|()| wanted()))?;
        let tree = Self::of(&wanted);
        if tree.0.is_dir() {
            println!("==> QEMU and kernel: in {}", tree.0.display());
            return Ok(tree);
        }
        step(
            &format!("QEMU and kernel: {} packages", wanted.lines().count()),
            || {
                tree.unpack(&wanted).or_else(|error| {
                    // The lists may be older than the archive, which keeps one version of a package.
                    println!("    {error:#}");
                    update()?;
                    tree.unpack(&wanted)
                })
            },
        )?;
        Ok(tree)
    }

    /// Named by names, versions and hashes of the packages, so that new ones are unpacked elsewhere.
    fn of(wanted: &str) -> Self {
        Self(toolchain::cache().join(format!("rxe-{:016x}", hash(wanted))))
    }

    fn unpack(&self, wanted: &str) -> Result<()> {
        let parent = self.0.parent().expect("a folder in the cache");
        let work = parent.join(format!("rxe-{}.part", process::id()));
        if work.exists() {
            fs::remove_dir_all(&work)
                .with_context(|| format!("cannot remove {}", work.display()))?;
        }
        let archives = work.join("archives");
        fs::create_dir_all(&archives).with_context(|| {
            format!(
                "cannot write to {}; VALIDATOR_CACHE names another folder",
                parent.display()
            )
        })?;
        let mut download = Command::new("apt-get");
        // The archives go where only root may write.
        download
            .args(["-qq", "-o", "APT::Sandbox::User=root", "download"])
            .current_dir(&archives);
        step::run(download.args(wanted.lines().filter_map(pinned)))?;
        for archive in fs::read_dir(&archives)? {
            step::run(
                Command::new("dpkg")
                    .arg("-x")
                    .arg(archive?.path())
                    .arg(&work),
            )?;
        }
        fs::remove_dir_all(&archives)?;
        // Four fifths of it all are modules that nobody loads.
        modules::prune(&Self(work.clone()))?;
        fs::write(work.join("packages"), wanted)?;
        if fs::rename(&work, &self.0).is_err() {
            // Another run was faster, or else there is nothing.
            fs::remove_dir_all(&work)?;
            fs::metadata(&self.0).with_context(|| format!("cannot make {}", self.0.display()))?;
        }
        Ok(())
    }

    /// A file in it.
    pub fn path(&self, relative: &str) -> PathBuf {
        self.0.join(relative)
    }

    /// The one file whose name starts so in a folder of it.
    pub fn starting(&self, folder: &str, prefix: &str) -> Result<PathBuf> {
        let folder = self.path(folder);
        let found =
            fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))?;
        let starts = |entry: &fs::DirEntry| entry.file_name().to_string_lossy().starts_with(prefix);
        let found = found
            .filter_map(Result::ok)
            .find(starts)
            .map(|entry| entry.path());
        found.with_context(|| {
            format!(
                "expected {prefix}... in {}, found none; remove {} to unpack again",
                folder.display(),
                self.0.display()
            )
        })
    }

    /// As `LD_LIBRARY_PATH`: its libraries, before those of the machine.
    pub fn libraries(&self) -> String {
        ["usr/lib/x86_64-linux-gnu", "lib/x86_64-linux-gnu"]
            .map(|folder| self.path(folder).display().to_string())
            .join(":")
    }
}

/// One line a package, with name, version, size and hash; without asking the network.
fn wanted() -> Result<String> {
    let kernel = step::output(Command::new("apt-cache").args(["depends", KERNEL]))?;
    let kernel = kernel_of(&kernel)
        .with_context(|| format!("expected {KERNEL} to depend on a kernel, found:\n{kernel}"))?;
    let mut simulate = Command::new("apt-get");
    simulate
        .args(["-s", "--no-install-recommends", "install"])
        .args(ALWAYS);
    let simulated = step::output(&mut simulate)?;
    let mut names: Vec<&str> = to_install(&simulated)
        .chain(ALWAYS)
        .chain([kernel])
        .collect();
    names.sort_unstable();
    names.dedup();
    let uris = step::output(
        Command::new("apt-get")
            .args(["-qq", "download", "--print-uris"])
            .args(names),
    )?;
    // Where they come from is apt's business.
    let mut lines: Vec<&str> = uris
        .lines()
        .filter_map(|line| Some(line.split_once(' ')?.1))
        .collect();
    lines.sort_unstable();
    Ok(lines.join("\n"))
}

/// The kernel's package in what `apt-cache depends` prints.
fn kernel_of(depends: &str) -> Option<&str> {
    depends.lines().find_map(|line| {
        line.trim()
            .strip_prefix("Depends: ")
            .filter(|name| name.starts_with("linux-image-"))
    })
}

/// What a simulated installation would add.
fn to_install(simulated: &str) -> impl Iterator<Item = &str> {
    simulated
        .lines()
        .filter_map(|line| line.strip_prefix("Inst ")?.split(' ').next())
}

/// `NAME=VERSION` of a line that starts with the archive's name, such as `seabios_1.16.2-1_all.deb`.
fn pinned(line: &str) -> Option<String> {
    let mut parts = line.split(' ').next()?.split('_');
    let (name, version) = (parts.next()?, parts.next()?);
    Some(format!("{name}={}", version.replace("%3a", ":")))
}

fn update() -> Result<()> {
    step("apt-get update", || {
        step::run(Command::new("apt-get").args(["-q", "update"]))
    })
}

/// FNV-1a: the standard library's may change with its version.
fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// The machine's libraries that `program` needs, and `tree`'s where it has them.
pub fn needed_libraries(program: &Path, tree: &Tree) -> Result<Vec<PathBuf>> {
    let listed = step::output(
        Command::new("ldd")
            .arg(program)
            .env("LD_LIBRARY_PATH", tree.libraries()),
    )?;
    listed_libraries(&listed).with_context(|| {
        format!(
            "{} needs a library that is not there:\n{listed}",
            program.display()
        )
    })
}

/// Reads what ldd prints; the kernel's own page is no file.
fn listed_libraries(listed: &str) -> Option<Vec<PathBuf>> {
    let files = listed
        .lines()
        .map(str::trim)
        .filter(|line| !line.starts_with("linux-vdso") && *line != "statically linked");
    files
        .map(|line| {
            line.split(" => ")
                .last()?
                .split(" (")
                .next()
                .filter(|path| path.starts_with('/'))
                .map(PathBuf::from)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_apt_prints_is_read() {
        assert_eq!(
            kernel_of("linux-image-amd64\n  Depends: linux-image-6.1.0-56-amd64\n"),
            Some("linux-image-6.1.0-56-amd64")
        );
        assert_eq!(kernel_of("linux-image-amd64\n"), None);
        let simulated = "Remv qemu-utils [1:10.0.2]\nInst libfdt1 (1.6.1-4+b1 Debian:12.15 [amd64])\nConf libfdt1 (1.6.1-4+b1)\n";
        assert_eq!(to_install(simulated).collect::<Vec<_>>(), ["libfdt1"]);
        let line = "qemu-system-x86_1%3a7.2+dfsg-7_amd64.deb 8394020 SHA256:0af1";
        assert_eq!(
            pinned(line).as_deref(),
            Some("qemu-system-x86=1:7.2+dfsg-7")
        );
    }

    #[test]
    fn what_ldd_prints_is_read() {
        let listed = "\tlinux-vdso.so.1 (0x7f00)\n\tlibc.so.6 => /lib/libc.so.6 (0x7f01)\n\t/lib64/ld-linux-x86-64.so.2 (0x7f02)";
        assert_eq!(
            listed_libraries(listed),
            Some(
                ["/lib/libc.so.6", "/lib64/ld-linux-x86-64.so.2"]
                    .map(PathBuf::from)
                    .to_vec()
            )
        );
        assert_eq!(listed_libraries("\tlibx.so => not found"), None);
        assert_eq!(listed_libraries("\tstatically linked"), Some(Vec::new()));
    }

    #[test]
    fn other_versions_are_unpacked_elsewhere() {
        assert_ne!(
            Tree::of("a_1_all.deb 1 SHA256:0").0,
            Tree::of("a_2_all.deb 1 SHA256:0").0
        );
    }
}
