//! The guest's kernel modules, and the order in which they are loaded.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::packages::Tree;

/// Modules that any guest of the labs loads.
pub const ALL: [&str; 17] = [
    "virtio_pci",
    "virtio_net",
    "e1000",
    "e1000e",
    "vmxnet3",
    "igb",
    "veth",
    "vxlan",
    "bridge",
    "tun",
    "sch_ingress",
    "cls_bpf",
    "cls_matchall",
    "act_mirred",
    "crc32_generic",
    "ib_uverbs",
    "rdma_rxe",
];

/// Returns the files of these modules and their dependencies in loading order. A module without a
/// file is built into the kernel.
pub fn needed(tree: &Tree, names: &[&str]) -> Result<Vec<PathBuf>> {
    let found = all(tree)?;
    let mut order = Vec::new();
    for name in names {
        load_order(name, &found, &mut order)?;
    }
    Ok(order)
}

/// Removes the modules that no guest loads.
pub fn prune(tree: &Tree) -> Result<()> {
    let needed = needed(tree, &ALL)?;
    for path in all(tree)?
        .into_values()
        .filter(|path| !needed.contains(path))
    {
        fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))?;
    }
    Ok(())
}

fn all(tree: &Tree) -> Result<HashMap<String, PathBuf>> {
    let mut found = HashMap::new();
    find_modules(&tree.image()?.1, &mut found)?;
    Ok(found)
}

/// Finds modules by the names used to load them.
fn find_modules(folder: &Path, found: &mut HashMap<String, PathBuf>) -> Result<()> {
    for entry in
        fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?
    {
        let path = entry?.path();
        if path.is_dir() {
            find_modules(&path, found)?;
        } else if let Some((name, _)) = path
            .file_name()
            .and_then(|name| name.to_str())
            .and_then(|name| name.split_once(".ko"))
        {
            found.insert(name.replace('-', "_"), path.clone());
        }
    }
    Ok(())
}

/// Appends a module after its dependencies. A module without a file is built into the kernel.
fn load_order(
    name: &str,
    found: &HashMap<String, PathBuf>,
    order: &mut Vec<PathBuf>,
) -> Result<()> {
    let Some(path) = found.get(name) else {
        return Ok(());
    };
    if order.contains(path) {
        return Ok(());
    }
    for needed in depends(&read(path)?) {
        load_order(&needed, found, order)?;
    }
    order.push(path.clone());
    Ok(())
}

/// Reads a module; newer kernels have them compressed.
pub fn read(path: &Path) -> Result<Vec<u8>> {
    if path.extension().is_some_and(|extension| extension == "xz") {
        let output = Command::new("xz")
            .arg("-dc")
            .arg(path)
            .output()
            .context("cannot run xz")?;
        if !output.status.success() {
            bail!("xz -dc {} ended with {}", path.display(), output.status);
        }
        return Ok(output.stdout);
    }
    fs::read(path).with_context(|| format!("cannot read {}", path.display()))
}

/// Parses the names in the module's `depends=`.
fn depends(module: &[u8]) -> Vec<String> {
    const KEY: &[u8] = b"\0depends=";
    let Some(at) = module.windows(KEY.len()).position(|window| window == KEY) else {
        return Vec::new();
    };
    let value = module[at + KEY.len()..]
        .split(|byte| *byte == 0)
        .next()
        .unwrap_or_default();
    let names = String::from_utf8_lossy(value);
    names
        .split(',')
        .filter(|name| !name.is_empty())
        .map(|name| name.replace('-', "_"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_module_needs_is_read() {
        assert_eq!(
            depends(b"x\0depends=ib_core,ip6-udp-tunnel\0name=rdma_rxe\0"),
            ["ib_core", "ip6_udp_tunnel"]
        );
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
        assert_eq!(
            order,
            [folder.join("net/ib-core.ko"), folder.join("rdma_rxe.ko")]
        );
    }
}
