//! Embeds the XDP objects that `cargo xtask build-ebpf` made. Without them the program still
//! builds, so that nobody needs eBPF tools to compile it. Loading the empty object then fails with
//! a message that says how to build the real one.

use std::path::Path;
use std::{env, fs};

fn main() {
    let root = Path::new(&env::var("CARGO_MANIFEST_DIR").expect("set by cargo"))
        .parent()
        .expect("the workspace")
        .to_owned();
    // Watches the folder rather than the object: cargo takes a missing file for a changed one and
    // would rebuild every time.
    let folder = root.join("target/ebpf-object");
    fs::create_dir_all(&folder).expect("target folder can be written");
    println!("cargo::rerun-if-changed={}", folder.display());
    let out = env::var("OUT_DIR").expect("set by cargo");
    for program in [
        "account",
        "account-traced",
        "responder",
        "watch",
        "watch-traced",
    ] {
        let object = fs::read(folder.join(program)).unwrap_or_default();
        fs::write(Path::new(&out).join(program), object).expect("OUT_DIR can be written");
    }
}
