//! Programs, libraries and headers that tests, labs and benchmarks need, and how they are found.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs};

/// Something that a test needs, and the Debian package that has it.
pub struct Tool {
    pub name: &'static str,
    pub package: &'static str,
    pub why: &'static str,
}

pub const TEST: [Tool; 11] = [
    Tool {
        name: "tshark",
        package: "tshark",
        why: "an independent decoder of the frames that are sent",
    },
    Tool {
        name: "scapy",
        package: "python3-scapy",
        why: "an independent maker of the frames that are counted",
    },
    Tool {
        name: "jsonschema",
        package: "python3-jsonschema",
        why: "an independent reader of the published schemas",
    },
    Tool {
        name: "jq",
        package: "jq",
        why: "a program that reads and rewrites evidence, with its own idea of numbers",
    },
    Tool {
        name: "ensurepip",
        package: "python3-venv",
        why: "it keeps snappi, a client from PyPI, apart from the machine's Python",
    },
    Tool {
        name: "ip",
        package: "iproute2",
        why: "tests name namespaces and change links with it",
    },
    Tool {
        name: "ethtool",
        package: "ethtool",
        why: "tests read offloads and counters with it",
    },
    Tool {
        name: "ibsim",
        package: "ibsim-utils",
        why: "an independent InfiniBand fabric, and the shim that puts tools on it",
    },
    Tool {
        name: "smpquery",
        package: "infiniband-diags",
        why: "an independent client of the simulated subnet management agent",
    },
    Tool {
        name: "opensm",
        package: "opensm",
        why: "a subnet manager, which gives the simulated fabric its LIDs",
    },
    Tool {
        name: "umad.h",
        package: "libibumad-dev",
        why: "the kernel's and the library's layout of umad, which ours is compared with",
    },
];

pub const LAB: [Tool; 2] = [
    Tool {
        name: "cmake",
        package: "cmake",
        why: "it builds what opens libibverbs for the agent with verbs",
    },
    Tool {
        name: "libclang",
        package: "libclang-dev",
        why: "the agent's bindings to verbs are made with it, and the headers that come with it",
    },
];

pub const BENCH: [Tool; 8] = [
    Tool {
        name: "trafgen",
        package: "netsniff-ng",
        why: "a peer of the sender",
    },
    Tool {
        name: "mausezahn",
        package: "netsniff-ng",
        why: "a peer of the sender",
    },
    Tool {
        name: "tcpreplay",
        package: "tcpreplay",
        why: "a peer of the sender",
    },
    Tool {
        name: "xdp-trafficgen",
        package: "xdp-tools",
        why: "a peer of the sender",
    },
    Tool {
        name: "tcpdump",
        package: "tcpdump",
        why: "a peer of the counting program",
    },
    Tool {
        name: "nft",
        package: "nftables",
        why: "a peer of the counting program",
    },
    Tool {
        name: "tc",
        package: "iproute2",
        why: "a peer of the counting program",
    },
    Tool {
        name: "ethtool",
        package: "ethtool",
        why: "it gives the links of the benchmarks a second queue",
    },
];

pub const BROWSER: [Tool; 1] = [Tool {
    name: "npm",
    package: "npm",
    why: "it fetches axe-core, the rules of accessibility that pages are held against",
}];

pub const USERSPACE: [Tool; 3] = [
    Tool {
        name: "mmdebstrap",
        package: "mmdebstrap",
        why: "it makes a fresh Debian of packages, in a folder",
    },
    Tool {
        name: "git",
        package: "git",
        why: "it names the workspace's files, which are copied there",
    },
    Tool {
        name: "lintian",
        package: "lintian",
        why: "it reads the packages by Debian's policy",
    },
];

pub const DIST: [Tool; 4] = [
    Tool {
        name: "objcopy",
        package: "binutils",
        why: "it takes the debug symbols out of the program",
    },
    Tool {
        name: "dpkg-shlibdeps",
        package: "dpkg-dev",
        why: "it finds the packages of the libraries that the program needs",
    },
    Tool {
        name: "dpkg-deb",
        package: "dpkg",
        why: "it makes the package",
    },
    Tool {
        name: "git",
        package: "git",
        why: "it names the commit's date and the workspace's files",
    },
];

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
    let entries = |folder: &Path| -> Vec<PathBuf> {
        fs::read_dir(folder)
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path())
            .collect()
    };
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
