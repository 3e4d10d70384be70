//! Programs, libraries and headers that tests, labs and benchmarks need, and how they are found.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::Group;
use crate::files;

/// Something that a test needs, and the Debian package that has it.
pub struct Tool {
    pub name: &'static str,
    pub package: &'static str,
    pub why: &'static str,
}

/// Defines tools by the group that needs them: `"NAME" in "PACKAGE": "REASON";`.
macro_rules! tools {
    ($($group:ident { $($name:literal in $package:literal: $why:literal;)+ })+) => {
        &[$((
            Group::$group,
            &[$(Tool { name: $name, package: $package, why: $why }),+],
        )),+]
    };
}

/// Tools by group.
pub const ALL: &[(Group, &[Tool])] = tools! {
    Test {
        "tshark" in "tshark": "an independent decoder of the frames that are sent";
        "scapy" in "python3-scapy": "an independent maker of the frames that are counted";
        "jsonschema" in "python3-jsonschema": "an independent reader of the published schemas";
        "jq" in "jq": "a program that reads and rewrites evidence, with its own idea of numbers";
        "ensurepip" in "python3-venv":
            "it keeps snappi, a client from PyPI, apart from the machine's Python";
        "ip" in "iproute2": "tests name namespaces and change links with it";
        "ethtool" in "ethtool": "tests read offloads and counters with it";
        "ibsim" in "ibsim-utils":
            "an independent InfiniBand fabric, and the shim that puts tools on it";
        "smpquery" in "infiniband-diags":
            "an independent client of the simulated subnet management agent";
        "opensm" in "opensm": "a subnet manager, which gives the simulated fabric its LIDs";
        "umad.h" in "libibumad-dev":
            "the kernel's and the library's layout of umad, which ours is compared with";
    }
    Lab {
        "cmake" in "cmake": "it builds what opens libibverbs for the agent with verbs";
        "libclang" in "libclang-dev":
            "the agent's bindings to verbs are made with it, and the headers that come with it";
    }
    Bench {
        "trafgen" in "netsniff-ng": "a peer of the sender";
        "mausezahn" in "netsniff-ng": "a peer of the sender";
        "tcpreplay" in "tcpreplay": "a peer of the sender";
        "xdp-trafficgen" in "xdp-tools": "a peer of the sender";
        "tcpdump" in "tcpdump": "a peer of the counting program";
        "nft" in "nftables": "a peer of the counting program";
        "tc" in "iproute2": "a peer of the counting program";
        "ethtool" in "ethtool": "it gives the links of the benchmarks a second queue";
    }
    Browser {
        "npm" in "npm":
            "it fetches axe-core, the rules of accessibility that pages are held against";
    }
    Userspace {
        "mmdebstrap" in "mmdebstrap": "it makes a fresh Debian of packages, in a folder";
        "git" in "git": "it names the workspace's files, which are copied there";
        "lintian" in "lintian": "it reads the packages by Debian's policy";
    }
    Dist {
        "objcopy" in "binutils": "it takes the debug symbols out of the program";
        "dpkg-shlibdeps" in "dpkg-dev":
            "it finds the packages of the libraries that the program needs";
        "dpkg-deb" in "dpkg": "it makes the package";
        "git" in "git": "it names the commit's date and the workspace's files";
    }
};

impl Tool {
    pub fn is_there(&self) -> bool {
        if self.package.starts_with("python3-") {
            // Debian's Python, which Debian's package is for. Another one may come first in PATH.
            let import = Command::new("/usr/bin/python3")
                .args(["-c", &format!("import {}", self.name)])
                .stderr(Stdio::null())
                .status();
            return import.is_ok_and(|status| status.success());
        }
        if self.name == "libclang" {
            return has_libclang();
        }
        if self.name == "umad.h" {
            return Path::new("/usr/include/infiniband/umad.h").is_file();
        }
        in_path(self.name)
    }
}

/// A libclang with headers, where Debian's packages put it or where the user says.
fn has_libclang() -> bool {
    let entries = |folder: &Path| files::entries(folder).unwrap_or_default();
    let is_library = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("libclang") && !name.starts_with("libclang-cpp") && name.contains(".so")
    };
    let llvm: Vec<PathBuf> = entries(Path::new("/usr/lib"))
        .into_iter()
        .map(|version| version.join("lib"))
        .collect();
    let common = PathBuf::from(format!("/usr/lib/{}-linux-gnu", env::consts::ARCH));
    let library = llvm
        .iter()
        .chain([&common])
        .any(|folder| entries(folder).iter().any(is_library));
    let headers = llvm
        .iter()
        .flat_map(|folder| entries(&folder.join("clang")))
        .any(|version| version.join("include/stddef.h").is_file());
    env::var_os("LIBCLANG_PATH").is_some() || (library && headers)
}

pub fn in_path(program: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path)
        .chain(["/usr/sbin", "/sbin"].map(PathBuf::from))
        .any(|folder| folder.join(program).is_file())
}
