//! Debian packages that are unpacked into the cache instead of being installed: QEMU's package
//! conflicts with others that a machine may have, and the kernels are for guests only.

use std::path::{Path, PathBuf};
use std::{fs, process};

use anyhow::{Context, Result};

use super::archive::{Archive, cannot_write};
use crate::step::step;
use crate::toolchain;

/// A browser without a window, and a font.
const BROWSER: [&str; 2] = ["chromium-headless-shell", "fonts-dejavu-core"];

/// A folder in the cache with unpacked packages.
pub struct Tree(PathBuf);

impl Tree {
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

/// FNV-1a: the standard library's hash may change with its version.
fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

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
