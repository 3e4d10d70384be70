//! Debian packages that are unpacked into the cache instead of being installed: QEMU's package
//! conflicts with others that a machine may have, and the kernels are for guests only.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fmt, fs, process};

use anyhow::{Context, Result, bail};

use super::archive::{Archive, cannot_write};
use super::modules;
use crate::step::{self, step};
use crate::toolchain;

/// Programs that run the guests or run in them. They are unpacked even if the machine has them: the
/// guest uses these, and files of different versions do not mix.
const TOOLS: [&str; 9] = [
    "qemu-system-x86",
    "qemu-system-common",
    "qemu-system-data",
    "seabios",
    "busybox-static",
    "libibverbs1",
    "ibverbs-providers",
    "iproute2",
    "ethtool",
];

/// A browser without a window, and a font.
const BROWSER: [&str; 2] = ["chromium-headless-shell", "fonts-dejavu-core"];

/// Kernels that the labs boot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Kernel {
    /// Debian 11's, older than the programs require
    #[value(name = "5.10")]
    V5_10,
    /// Debian 12's, the oldest of the range
    #[value(name = "6.1")]
    V6_1,
    /// Debian 13's, and Debian 12's second one
    #[value(name = "6.12")]
    V6_12,
    /// The newest one that Debian has packages of
    Newest,
}

impl Kernel {
    /// True if the programs have to work on it: users' releases have it.
    pub fn is_of_the_range(self) -> bool {
        matches!(self, Self::V6_1 | Self::V6_12)
    }

    /// Start of the package's name.
    fn prefix(self) -> &'static str {
        match self {
            Self::V5_10 => "linux-image-5.10.",
            Self::V6_1 => "linux-image-6.1.",
            Self::V6_12 => "linux-image-6.12.",
            Self::Newest => "linux-image-",
        }
    }
}

impl fmt::Display for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::V5_10 => "5.10",
            Self::V6_1 => "6.1",
            Self::V6_12 => "6.12",
            Self::Newest => "newest",
        })
    }
}

/// A folder in the cache with unpacked packages.
pub struct Tree(PathBuf);

impl Tree {
    /// QEMU and the programs of the guests.
    pub fn tools(archive: &Archive) -> Result<Self> {
        let wanted = || {
            // igb arrived in QEMU 8.0; Debian 12 has a newer QEMU in its backports.
            let backports = archive.exactly(&["qemu-system-x86/bookworm-backports"]);
            let own = step::output(Command::new("dpkg").args(["--print-architecture"]));
            let suite = (backports.is_ok() && own.is_ok() && is_release("12"))
                .then_some("bookworm-backports");
            archive.closure(&TOOLS, suite)
        };
        Self::prepare(archive, "tools", wanted, |_| Ok(()))
    }

    /// Chromium for the tests of pages.
    pub fn browser(archive: &Archive) -> Result<Self> {
        Self::prepare(
            archive,
            "browser",
            || archive.closure(&BROWSER, None),
            |_| Ok(()),
        )
    }

    /// What makes pictures small.
    pub fn pictures(archive: &Archive) -> Result<Self> {
        let wanted = || archive.closure(&["pngquant"], None);
        Self::prepare(archive, "pictures", wanted, |_| Ok(()))
    }

    /// Prometheus, with its promtool.
    pub fn prometheus(archive: &Archive) -> Result<Self> {
        // Linked statically; it needs none of the packages that it would be installed with.
        let wanted = || archive.exactly(&["prometheus"]);
        Self::prepare(archive, "prometheus", wanted, |_| Ok(()))
    }

    /// A kernel with its modules for the labs.
    pub fn kernel(archive: &Archive, kernel: Kernel) -> Result<Self> {
        let wanted = || {
            let image = archive.newest(kernel.prefix())?;
            let mut packages = vec![image.clone()];
            // Newer ones split the files into packages of their own.
            for part in ["linux-binary-", "linux-modules-"] {
                packages.extend(archive.depends(&image, part)?);
            }
            archive.exactly(&packages)
        };
        // Four fifths of the size are modules that nobody loads. Another selection is another tree.
        let kept = hash(&modules::ALL.join(",")) as u16;
        let name = format!("kernel-{kernel}-{kept:04x}");
        Self::prepare(archive, &name, wanted, modules::prune)
    }

    /// Unpacks the packages in the versions that apt knows, if they are not there yet.
    fn prepare(
        archive: &Archive,
        name: &str,
        wanted: impl Fn() -> Result<String>,
        finish: impl Fn(&Self) -> Result<()>,
    ) -> Result<Self> {
        let packages = wanted()?;
        let tree = Self::of(name, &packages);
        if tree.0.is_dir() {
            return Ok(tree);
        }
        let unpack = |packages: &str| {
            let tree = Self::of(name, packages);
            tree.unpack(archive, packages, &finish).map(|()| tree)
        };
        let count = packages.lines().count();
        step(&format!("packages of {name}: {count}"), || {
            unpack(&packages).or_else(|error| {
                // The lists may be older than the archive, which keeps one version of a package.
                println!("    {error:#}");
                archive.update()?;
                unpack(&wanted()?)
            })
        })
    }

    /// Names the tree by names, versions and hashes of the packages, so that new ones are unpacked
    /// elsewhere.
    fn of(name: &str, packages: &str) -> Self {
        Self(toolchain::cache().join(format!("lab-{name}-{:016x}", hash(packages))))
    }

    fn unpack(
        &self,
        archive: &Archive,
        packages: &str,
        finish: impl Fn(&Self) -> Result<()>,
    ) -> Result<()> {
        // Another run may do the same. The folder of a killed run is removed by the next.
        let work = self.0.with_extension(format!("{}.part", process::id()));
        clear_abandoned(&self.0)?;
        fs::create_dir_all(&work).with_context(|| cannot_write(&work))?;
        archive.unpack(packages, &work)?;
        finish(&Self(work.clone()))?;
        fs::write(work.join("packages"), packages)?;
        if fs::rename(&work, &self.0).is_err() {
            // Another run was faster, or there is a real error.
            fs::remove_dir_all(&work)?;
            fs::metadata(&self.0).with_context(|| format!("cannot make {}", self.0.display()))?;
        }
        Ok(())
    }

    /// Path of a file in the tree.
    pub fn path(&self, relative: &str) -> PathBuf {
        self.0.join(relative)
    }

    /// Path of a program, in the folder that this release of Debian uses.
    pub fn program(&self, name: &str) -> Result<PathBuf> {
        let folders = ["usr/bin", "bin", "usr/sbin", "sbin"];
        let mut places = folders.iter().map(|folder| self.0.join(folder).join(name));
        places
            .find(|path| path.is_file())
            .with_context(|| format!("{} has no program {name}", self.advice()))
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
            let folder = folder.display();
            format!("{} has no {prefix}... in {folder}", self.advice())
        })
    }

    /// The kernel's image, and its folder of modules.
    pub fn image(&self) -> Result<(PathBuf, PathBuf)> {
        for modules in ["lib/modules", "usr/lib/modules"] {
            if let Ok(modules) = self.starting(modules, "") {
                let beside = modules.join("vmlinuz");
                let image = if beside.is_file() {
                    beside
                } else {
                    self.starting("boot", "vmlinuz-")?
                };
                return Ok((image, modules));
            }
        }
        bail!("{} has no kernel", self.advice())
    }

    /// Value of `LD_LIBRARY_PATH`: the tree's libraries, before those of the machine.
    pub fn libraries(&self) -> String {
        let folders = ["usr/lib/x86_64-linux-gnu", "lib/x86_64-linux-gnu"];
        folders
            .map(|folder| self.path(folder).display().to_string())
            .join(":")
    }

    fn advice(&self) -> String {
        let folder = self.0.display();
        format!("{folder} (remove it to have its packages unpacked again)")
    }
}

/// Removes leftovers of killed runs of the same tree: their process is gone.
fn clear_abandoned(tree: &Path) -> Result<()> {
    let parent = tree.parent().context("a folder in the cache")?;
    fs::create_dir_all(parent).with_context(|| cannot_write(parent))?;
    let name = tree.file_name().context("a name")?.to_string_lossy();
    for entry in fs::read_dir(parent)? {
        let path = entry?.path();
        let Some(file) = path.file_name().map(|file| file.to_string_lossy()) else {
            continue;
        };
        let Some(pid) = file
            .strip_prefix(&*name)
            .and_then(|rest| rest.strip_prefix('.')?.strip_suffix(".part"))
        else {
            continue;
        };
        if !Path::new("/proc").join(pid).exists() {
            fs::remove_dir_all(&path)
                .with_context(|| format!("cannot remove {}", path.display()))?;
        }
    }
    Ok(())
}

/// True if this machine runs that release of Debian.
fn is_release(version: &str) -> bool {
    let text = fs::read_to_string("/etc/os-release").unwrap_or_default();
    let is = |line: &str| text.lines().any(|found| found == line);
    is("ID=debian") && is(&format!("VERSION_ID=\"{version}\""))
}

/// FNV-1a: the standard library's hash may change with its version.
fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Libraries that `program` needs: the tree's if it has them, otherwise the machine's.
pub fn needed_libraries(program: &Path, tree: &Tree) -> Result<Vec<PathBuf>> {
    let mut ldd = Command::new("ldd");
    ldd.arg(program).env("LD_LIBRARY_PATH", tree.libraries());
    let listed = step::output(&mut ldd)?;
    listed_libraries(&listed).with_context(|| {
        format!(
            "{} needs a library that is not there:\n{listed}",
            program.display()
        )
    })
}

/// Parses the output of ldd; the vDSO is not a file.
fn listed_libraries(listed: &str) -> Option<Vec<PathBuf>> {
    let files = listed
        .lines()
        .map(str::trim)
        .filter(|line| !line.starts_with("linux-vdso") && *line != "statically linked");
    let path = |line: &str| {
        let path = line.split(" => ").last()?.split(" (").next()?;
        path.starts_with('/').then(|| PathBuf::from(path))
    };
    files.map(path).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ldd_prints_is_read() {
        let listed = "\tlinux-vdso.so.1 (0x7f00)\n\tlibc.so.6 => /lib/libc.so.6 (0x7f01)\n\
            \t/lib64/ld-linux-x86-64.so.2 (0x7f02)";
        let expected = ["/lib/libc.so.6", "/lib64/ld-linux-x86-64.so.2"].map(PathBuf::from);
        assert_eq!(listed_libraries(listed), Some(expected.to_vec()));
        assert_eq!(listed_libraries("\tlibx.so => not found"), None);
        assert_eq!(listed_libraries("\tstatically linked"), Some(Vec::new()));
    }

    #[test]
    fn other_versions_are_unpacked_elsewhere() {
        let of = |packages| Tree::of("tools", packages).0;
        assert_ne!(of("a_1_all.deb 1 SHA256:0"), of("a_2_all.deb 1 SHA256:0"));
    }

    #[test]
    fn a_killed_run_leaves_nothing_for_good() {
        let cache = tempfile::tempdir().unwrap();
        let tree = cache.path().join("lab-tools-00");
        // No process id exceeds the kernel's limit, 2^22.
        let (dead, alive) = (
            "lab-tools-00.4194305.part",
            format!("lab-tools-00.{}.part", process::id()),
        );
        for name in [dead, &alive, "lab-tools-01.4194305.part"] {
            fs::create_dir(cache.path().join(name)).unwrap();
        }
        clear_abandoned(&tree).unwrap();
        assert!(!cache.path().join(dead).exists());
        assert!(cache.path().join(alive).exists());
        assert!(cache.path().join("lab-tools-01.4194305.part").exists());
    }
}
