//! The guest's files: all in its initial RAM disk, as it has no other.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use super::modules;
use super::network::{ADDRESSES, HOST_MAC};
use super::packages::{Tree, needed_libraries};
use crate::step;

/// The agent's port in the guest.
pub const AGENT_PORT: u16 = 18515;
/// What the guest says when something went wrong.
pub const FAILED: &str = "lab: failed: ";

/// Busybox's shell prefers applets of its own to programs in PATH; those of iproute2 are therefore named in full.
const INIT: &str = r#"#!/bin/busybox sh
/bin/busybox --install -s /bin
export PATH=/bin LD_LIBRARY_PATH=/lib
fail() { echo "lab: failed: $*"; poweroff -f; }
mount -t proc proc /proc && mount -t sysfs sysfs /sys && mount -t devtmpfs devtmpfs /dev || fail "mount"
. /settings
while read -r module; do insmod "/modules/$module" || fail "insmod $module"; done < /modules/order
ip=/tools/ip
$ip link set lo up
$ip link set eth0 mtu "$MTU" up || fail "no eth0"
for pair in $PAIRS; do
    own=${pair%,*} prefix=${own#*/} peer=${pair#*,}
    case $own in *:*) nodad=nodad ;; *) nodad= ;; esac
    $ip address add "$own" dev eth0 $nodad || fail "address $own"
    $ip neighbour replace "$peer" lladdr "$PEER_MAC" dev eth0 nud permanent || fail "neighbour $peer"
done
/tools/rdma link add rxe0 type rxe netdev eth0 || fail "rdma link add"
export VALIDATOR_TOKEN="$TOKEN"
/tools/validator agent --listen "0.0.0.0:$PORT" --device rxe0
fail "the agent ended with $?"
"#;

/// Makes the file, with `validator` and a link of that MTU.
pub fn make(
    tree: &Tree,
    validator: &Path,
    mtu: u16,
    token: &str,
    folder: &Path,
) -> Result<PathBuf> {
    let root = folder.join("initrd");
    if root.exists() {
        fs::remove_dir_all(&root).with_context(|| format!("cannot remove {}", root.display()))?;
    }
    let mut files = Files { root: &root, tree };
    files.write("init", INIT.as_bytes(), 0o755)?;
    files.write("settings", settings(mtu, token).as_bytes(), 0o600)?;
    for folder in ["dev", "proc", "sys", "tmp"] {
        fs::create_dir_all(root.join(folder))?;
    }
    files.copy(
        &tree
            .path("bin/busybox")
            .exists_or(tree.path("usr/bin/busybox")),
        "bin/busybox",
    )?;
    files.program(validator, "tools/validator")?;
    files.program(
        &tree.path("bin/ip").exists_or(tree.path("usr/bin/ip")),
        "tools/ip",
    )?;
    files.program(
        &tree.path("usr/bin/rdma").exists_or(tree.path("bin/rdma")),
        "tools/rdma",
    )?;
    // libibverbs looks for the provider in a folder that is built into it.
    let providers = "usr/lib/x86_64-linux-gnu/libibverbs";
    let provider = tree.starting(providers, "librxe-")?;
    files.program(
        &provider,
        &format!(
            "{providers}/{}",
            provider.file_name().expect("a file").to_string_lossy()
        ),
    )?;
    files.copy(
        &tree.path("etc/libibverbs.d/rxe.driver"),
        "etc/libibverbs.d/rxe.driver",
    )?;
    files.modules()?;
    let packed = folder.join("initrd.cpio");
    pack(tree, &root, &packed)?;
    Ok(packed)
}

trait ExistsOr {
    fn exists_or(self, other: PathBuf) -> PathBuf;
}

impl ExistsOr for PathBuf {
    /// Debian has moved programs from /bin to /usr/bin.
    fn exists_or(self, other: PathBuf) -> PathBuf {
        if self.exists() { self } else { other }
    }
}

fn settings(mtu: u16, token: &str) -> String {
    let pairs: Vec<String> = ADDRESSES
        .iter()
        .map(|pair| format!("{}/{},{}", pair.guest, pair.prefix, pair.host))
        .collect();
    format!(
        "MTU={mtu} PORT={AGENT_PORT} TOKEN={token} PEER_MAC={HOST_MAC} PAIRS=\"{}\"\n",
        pairs.join(" ")
    )
}

struct Files<'a> {
    root: &'a Path,
    tree: &'a Tree,
}

impl Files<'_> {
    fn write(&mut self, to: &str, content: &[u8], mode: u32) -> Result<()> {
        let path = self.root.join(to);
        let write = fs::create_dir_all(path.parent().expect("below the root"))
            .and_then(|()| fs::write(&path, content))
            .and_then(|()| fs::set_permissions(&path, fs::Permissions::from_mode(mode)));
        write.with_context(|| format!("cannot write {}", path.display()))
    }

    fn copy(&mut self, from: &Path, to: &str) -> Result<()> {
        let content = fs::read(from).with_context(|| format!("cannot read {}", from.display()))?;
        self.write(to, &content, 0o755)
    }

    /// With the libraries that it needs.
    fn program(&mut self, from: &Path, to: &str) -> Result<()> {
        self.copy(from, to)?;
        for library in needed_libraries(from, self.tree)? {
            let name = library
                .file_name()
                .expect("a file")
                .to_string_lossy()
                .into_owned();
            // The loader's place is in every program.
            let folder = if name.starts_with("ld-linux") {
                "lib64"
            } else {
                "lib"
            };
            self.copy(&library, &format!("{folder}/{name}"))?;
        }
        Ok(())
    }

    fn modules(&mut self) -> Result<()> {
        let mut list = String::new();
        for path in modules::needed(self.tree)? {
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
}

/// An archive as the kernel takes it, uncompressed: to unpack takes longer than to load.
fn pack(tree: &Tree, root: &Path, to: &Path) -> Result<()> {
    symlink("/lib", root.join("lib/x86_64-linux-gnu"))?;
    let mut names = Vec::new();
    list(root, root, &mut names)?;
    let output = fs::File::create(to).with_context(|| format!("cannot write {}", to.display()))?;
    let mut cpio = Command::new(
        tree.path("bin/busybox")
            .exists_or(tree.path("usr/bin/busybox")),
    );
    cpio.args(["cpio", "-o", "-H", "newc"])
        .current_dir(root)
        .stdin(Stdio::piped())
        .stdout(output)
        .stderr(Stdio::null());
    let mut child = cpio
        .spawn()
        .with_context(|| format!("cannot run {}", step::show(&cpio)))?;
    child
        .stdin
        .take()
        .expect("asked for above")
        .write_all(names.join("\n").as_bytes())?;
    let status = child.wait()?;
    if !status.success() {
        bail!("{} ended with {status}", step::show(&cpio));
    }
    Ok(())
}

/// Folders before what is in them.
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
