//! A guest's files: all are in its initial RAM disk, as it has no other disk.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use super::modules;
use super::packages::{Tree, needed_libraries};
use crate::step;

/// Start of the line by which the guest reports a failure.
pub const FAILED: &str = "lab: failed: ";

/// Busybox's shell prefers its own applets to programs in PATH, so iproute2's programs are called
/// by their full path.
const INIT: &str = r#"#!/bin/busybox sh
/bin/busybox --install -s /bin
export PATH=/tools:/bin LD_LIBRARY_PATH=/lib HOME=/root
fail() { echo "lab: failed: $*"; poweroff -f; }
mount -t proc proc /proc && mount -t sysfs sysfs /sys && mount -t devtmpfs devtmpfs /dev ||
    fail "mount"
mount -t tmpfs tmpfs /run || fail "mount tmpfs"
mount -t bpf bpf /sys/fs/bpf || fail "mount bpf"
while read -r module; do insmod "/modules/$module" || fail "insmod $module"; done < /modules/order
ip=/tools/ip
$ip link set lo up
. /script
poweroff -f
"#;

/// Files of an initial RAM disk being assembled.
pub struct Initrd<'a> {
    root: PathBuf,
    packed: PathBuf,
    tools: &'a Tree,
}

impl<'a> Initrd<'a> {
    /// Starts one below `folder`, with busybox, iproute2, these modules of `kernel`, and `script`,
    /// which the guest's shell runs once the modules are loaded.
    pub fn begin(
        folder: &Path,
        tools: &'a Tree,
        kernel: &Tree,
        modules: &[&str],
        script: &str,
    ) -> Result<Self> {
        let root = folder.join("initrd");
        if root.exists() {
            fs::remove_dir_all(&root)
                .with_context(|| format!("cannot remove {}", root.display()))?;
        }
        let mut files = Self {
            root,
            packed: folder.join("initrd.cpio"),
            tools,
        };
        files.write("init", INIT.as_bytes(), 0o755)?;
        files.write("script", script.as_bytes(), 0o600)?;
        for folder in [
            "dev", "proc", "sys", "tmp", "run", "root", "var", "etc", "lib",
        ] {
            fs::create_dir_all(files.root.join(folder))?;
        }
        // The loader and libibverbs look in Debian's folder of libraries.
        symlink("/lib", files.root.join("lib/x86_64-linux-gnu"))?;
        files.copy(&tools.program("busybox")?, "bin/busybox")?;
        files.program(&tools.program("ip")?, "tools/ip")?;
        files.modules(kernel, modules)?;
        Ok(files)
    }

    /// Adds a file with these contents.
    pub fn write(&mut self, to: &str, content: &[u8], mode: u32) -> Result<()> {
        let path = self.root.join(to);
        let write = fs::create_dir_all(path.parent().expect("below the root"))
            .and_then(|()| fs::write(&path, content))
            .and_then(|()| fs::set_permissions(&path, fs::Permissions::from_mode(mode)));
        write.with_context(|| format!("cannot write {}", path.display()))
    }

    /// Adds a copy of a file.
    pub fn copy(&mut self, from: &Path, to: &str) -> Result<()> {
        let content = fs::read(from).with_context(|| format!("cannot read {}", from.display()))?;
        self.write(to, &content, 0o755)
    }

    /// Adds copies of all files below a folder.
    pub fn copy_folder(&mut self, from: &Path, to: &str) -> Result<()> {
        for entry in
            fs::read_dir(from).with_context(|| format!("cannot read {}", from.display()))?
        {
            let path = entry?.path();
            let to = format!(
                "{to}/{}",
                path.file_name().expect("in a folder").to_string_lossy()
            );
            if path.is_dir() {
                self.copy_folder(&path, &to)?;
            } else {
                self.copy(&path, &to)?;
            }
        }
        Ok(())
    }

    /// Adds a symbolic link at the absolute path `at`.
    pub fn link(&mut self, to: &str, at: &Path) -> Result<()> {
        let path = self
            .root
            .join(at.strip_prefix("/").context("an absolute path")?);
        fs::create_dir_all(path.parent().expect("below the root"))?;
        symlink(to, &path).with_context(|| format!("cannot make {}", path.display()))
    }

    /// Adds a program with its libraries.
    pub fn program(&mut self, from: &Path, to: &str) -> Result<()> {
        self.copy(from, to)?;
        for library in needed_libraries(from, self.tools)? {
            let name = library.file_name().expect("a file").to_string_lossy();
            // The path of the loader is part of every program.
            let folder = if name.starts_with("ld-linux") {
                "lib64"
            } else {
                "lib"
            };
            let to = format!("{folder}/{name}");
            if !self.root.join(&to).exists() {
                self.copy(&library, &to)?;
            }
        }
        Ok(())
    }

    /// Adds a program without its symbols: they are most of its size, and nobody reads them in a
    /// guest.
    pub fn stripped(&mut self, from: &Path, to: &str) -> Result<()> {
        self.program(from, to)?;
        step::run(Command::new("strip").arg(self.root.join(to)))
    }

    fn modules(&mut self, kernel: &Tree, names: &[&str]) -> Result<()> {
        let mut list = String::new();
        for path in modules::needed(kernel, names)? {
            let name = path
                .file_name()
                .expect("a file")
                .to_string_lossy()
                .into_owned();
            let name = name.strip_suffix(".xz").unwrap_or(&name);
            self.write(&format!("modules/{name}"), &modules::read(&path)?, 0o644)?;
            list += &format!("{name}\n");
        }
        self.write("modules/order", list.as_bytes(), 0o644)
    }

    /// Makes an archive in the kernel's format, uncompressed: unpacking would take longer than
    /// loading.
    pub fn pack(self) -> Result<PathBuf> {
        let mut names = Vec::new();
        list(&self.root, &self.root, &mut names)?;
        let output = fs::File::create(&self.packed)
            .with_context(|| format!("cannot write {}", self.packed.display()))?;
        let mut cpio = Command::new(self.tools.program("busybox")?);
        cpio.args(["cpio", "-o", "-H", "newc"])
            .current_dir(&self.root);
        cpio.stdin(Stdio::piped())
            .stdout(output)
            .stderr(Stdio::null());
        let mut child = cpio
            .spawn()
            .with_context(|| format!("cannot run {}", step::show(&cpio)))?;
        let mut input = child.stdin.take().expect("asked for above");
        input.write_all(names.join("\n").as_bytes())?;
        drop(input);
        let status = child.wait()?;
        if !status.success() {
            bail!("{} ended with {status}", step::show(&cpio));
        }
        Ok(self.packed)
    }
}

/// Lists folders before their contents.
fn list(root: &Path, folder: &Path, names: &mut Vec<String>) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let path = entry.path();
        names.push(
            path.strip_prefix(root)
                .expect("below it")
                .display()
                .to_string(),
        );
        if entry.file_type()?.is_dir() {
            list(root, &path, names)?;
        }
    }
    Ok(())
}
