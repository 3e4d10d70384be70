//! Embeds the XDP objects that `cargo xtask build-ebpf` made. Without them the program still
//! builds, so that nobody needs eBPF tools to compile it. Loading the empty object then fails with
//! a message that says how to build the real one.

use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    let package = PathBuf::from(env::var("CARGO_MANIFEST_DIR").expect("set by cargo"));
    let out = PathBuf::from(env::var("OUT_DIR").expect("set by cargo"));
    // Watches the folder rather than the object: cargo takes a missing file for a changed one and
    // would rebuild every time.
    let folder = objects(&package);
    println!("cargo::rerun-if-changed={}", folder.display());
    for program in [
        "account",
        "account-traced",
        "flow",
        "responder",
        "watch",
        "watch-traced",
    ] {
        let object = fs::read(folder.join(program)).unwrap_or_default();
        fs::write(out.join(program), object).expect("OUT_DIR can be written");
    }
}

/// The folder of objects: the crate's own, which a published crate has, or else the workspace's.
fn objects(package: &Path) -> PathBuf {
    let own = package.join("objects");
    if own.is_dir() {
        return own;
    }
    let built = package
        .parent()
        .expect("the workspace")
        .join("target/ebpf-object");
    fs::create_dir_all(&built).expect("target folder can be written");
    built
}
