//! The guest's files: all in its initial RAM disk, as it has no other.

use std::collections::HashMap;
use std::fs;
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use super::network::{ADDRESSES, HOST_MAC};
use super::packages::{Tree, needed_libraries};
use crate::step;

/// The agent's port in the guest.
pub const AGENT_PORT: u16 = 18515;
/// What the guest says when something went wrong.
pub const FAILED: &str = "lab: failed: ";

/// Modules with what they need, those on a virtual PCI bus first. rdma_rxe takes the ICRC from `crc32`, by name.
const MODULES: [&str; 5] = ["virtio_pci", "virtio_net", "crc32_generic", "ib_uverbs", "rdma_rxe"];

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
pub fn make(tree: &Tree, validator: &Path, mtu: u16, token: &str, folder: &Path) -> Result<PathBuf> {
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
    files.copy(&tree.path("bin/busybox").exists_or(tree.path("usr/bin/busybox")), "bin/busybox")?;
    files.program(validator, "tools/validator")?;
    files.program(&tree.path("bin/ip").exists_or(tree.path("usr/bin/ip")), "tools/ip")?;
    files.program(&tree.path("usr/bin/rdma").exists_or(tree.path("bin/rdma")), "tools/rdma")?;
    // libibverbs looks for the provider in a folder that is built into it.
    let providers = "usr/lib/x86_64-linux-gnu/libibverbs";
    let provider = tree.starting(providers, "librxe-")?;
    files.program(&provider, &format!("{providers}/{}", provider.file_name().expect("a file").to_string_lossy()))?;
    files.copy(&tree.path("etc/libibverbs.d/rxe.driver"), "etc/libibverbs.d/rxe.driver")?;
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
    let pairs: Vec<String> = ADDRESSES.iter().map(|pair| format!("{}/{},{}", pair.guest, pair.prefix, pair.host)).collect();
    format!("MTU={mtu} PORT={AGENT_PORT} TOKEN={token} PEER_MAC={HOST_MAC} PAIRS=\"{}\"\n", pairs.join(" "))
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
            let name = library.file_name().expect("a file").to_string_lossy().into_owned();
            // The loader's place is in every program.
            let folder = if name.starts_with("ld-linux") { "lib64" } else { "lib" };
            self.copy(&library, &format!("{folder}/{name}"))?;
        }
        Ok(())
    }

    fn modules(&mut self) -> Result<()> {
        let kernel = self.tree.starting("lib/modules", "").or_else(|_| self.tree.starting("usr/lib/modules", ""))?.join("kernel");
        let mut found = HashMap::new();
        find_modules(&kernel, &mut found)?;
        let mut order = Vec::new();
        for name in MODULES {
            load_order(name, &found, &mut order)?;
        }
        let mut list = String::new();
        for path in order {
            let name = path.file_name().expect("a file").to_string_lossy().into_owned();
            let name = name.strip_suffix(".xz").unwrap_or(&name);
            self.write(&format!("modules/{name}"), &read_module(&path)?, 0o644)?;
            list += &format!("{name}\n");
        }
        self.write("modules/order", list.as_bytes(), 0o644)
    }
}

/// Modules by the names that they go by when they are loaded.
fn find_modules(folder: &Path, found: &mut HashMap<String, PathBuf>) -> Result<()> {
    for entry in fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            find_modules(&path, found)?;
        } else if let Some((name, _)) = path.file_name().and_then(|name| name.to_str()).and_then(|name| name.split_once(".ko")) {
            found.insert(name.replace('-', "_"), path.clone());
        }
    }
    Ok(())
}

/// Adds a module after those that it needs. What is in none of the files is built into the kernel.
fn load_order(name: &str, found: &HashMap<String, PathBuf>, order: &mut Vec<PathBuf>) -> Result<()> {
    let Some(path) = found.get(name) else {
        if name == "rdma_rxe" {
            bail!("the kernel has no module rdma_rxe: expected that of Debian's linux-image-amd64");
        }
        return Ok(());
    };
    if order.contains(path) {
        return Ok(());
    }
    for needed in depends(&read_module(path)?) {
        load_order(&needed, found, order)?;
    }
    order.push(path.clone());
    Ok(())
}

/// Newer kernels have them compressed.
fn read_module(path: &Path) -> Result<Vec<u8>> {
    if path.extension().is_some_and(|extension| extension == "xz") {
        let output = Command::new("xz").arg("-dc").arg(path).output().context("cannot run xz")?;
        if !output.status.success() {
            bail!("xz -dc {} ended with {}", path.display(), output.status);
        }
        return Ok(output.stdout);
    }
    fs::read(path).with_context(|| format!("cannot read {}", path.display()))
}

/// The names in the module's `depends=`.
fn depends(module: &[u8]) -> Vec<String> {
    const KEY: &[u8] = b"\0depends=";
    let Some(at) = module.windows(KEY.len()).position(|window| window == KEY) else { return Vec::new() };
    let value = module[at + KEY.len()..].split(|byte| *byte == 0).next().unwrap_or_default();
    let names = String::from_utf8_lossy(value);
    names.split(',').filter(|name| !name.is_empty()).map(|name| name.replace('-', "_")).collect()
}

/// An archive as the kernel takes it, uncompressed: to unpack takes longer than to load.
fn pack(tree: &Tree, root: &Path, to: &Path) -> Result<()> {
    symlink("/lib", root.join("lib/x86_64-linux-gnu"))?;
    let mut names = Vec::new();
    list(root, root, &mut names)?;
    let output = fs::File::create(to).with_context(|| format!("cannot write {}", to.display()))?;
    let mut cpio = Command::new(tree.path("bin/busybox").exists_or(tree.path("usr/bin/busybox")));
    cpio.args(["cpio", "-o", "-H", "newc"]).current_dir(root).stdin(Stdio::piped()).stdout(output).stderr(Stdio::null());
    let mut child = cpio.spawn().with_context(|| format!("cannot run {}", step::show(&cpio)))?;
    child.stdin.take().expect("asked for above").write_all(names.join("\n").as_bytes())?;
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
        names.push(path.strip_prefix(root).expect("below it").display().to_string());
        if entry.file_type()?.is_dir() {
            list(root, &path, names)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_module_needs_is_read() {
        assert_eq!(depends(b"x\0depends=ib_core,ip6-udp-tunnel\0name=rdma_rxe\0"), ["ib_core", "ip6_udp_tunnel"]);
        assert_eq!(depends(b"x\0depends=\0name=y\0"), Vec::<String>::new());
    }

    #[test]
    fn modules_come_after_what_they_need() {
        let folder = std::env::temp_dir().join(format!("validator-modules-{}", std::process::id()));
        fs::create_dir_all(folder.join("net")).unwrap();
        fs::write(folder.join("rdma_rxe.ko"), b"\0depends=ib-core,built_in\0").unwrap();
        fs::write(folder.join("net/ib-core.ko"), b"\0depends=\0").unwrap();
        let (mut found, mut order) = (HashMap::new(), Vec::new());
        find_modules(&folder, &mut found).unwrap();
        load_order("rdma_rxe", &found, &mut order).unwrap();
        load_order("ib_core", &found, &mut order).unwrap();
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(order, [folder.join("net/ib-core.ko"), folder.join("rdma_rxe.ko")]);
        assert!(load_order("rdma_rxe", &HashMap::new(), &mut Vec::new()).is_err());
    }
}
