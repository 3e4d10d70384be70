//! `cargo xtask setup`: finds what is missing and installs it.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs};

use anyhow::{Context, Result, bail};

use crate::step::{self, is_root, step};
use crate::toolchain::{LINKER_VERSION, Toolchain};

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Group {
    /// To build the XDP programs.
    Build,
    /// What the tests compare with.
    Test,
    /// To build the agent with verbs, for the lab's guest or a real DUT host.
    Lab,
    /// Peers that the benchmarks measure beside ours; what is missing is left out there by name.
    Bench,
}

/// What building and testing need.
pub const EVERYTHING: [Group; 3] = [Group::Build, Group::Test, Group::Lab];

#[derive(clap::Args)]
pub struct Install {
    /// Say what is missing, and how to get it, and install nothing
    #[arg(long)]
    pub no_install: bool,
}

/// Something that a test needs, and the Debian package that has it.
struct Tool {
    name: &'static str,
    package: &'static str,
    why: &'static str,
}

const TEST_TOOLS: [Tool; 8] = [
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

const LAB_TOOLS: [Tool; 2] = [
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

const BENCH_TOOLS: [Tool; 8] = [
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

/// Sources and compiler of one version. Debian's security suite has them, where rustup's component cannot be had.
const SOURCES: [&str; 2] = ["rustc-web", "rust-web-src"];

/// Something that is not there.
struct Missing {
    what: String,
    why: &'static str,
    from: Source,
}

enum Source {
    Packages(Vec<&'static str>),
    /// Built here, which takes about a minute.
    Built,
}

/// Installs what is missing of `groups`; where nothing may be installed, or cannot be, an error with what to do.
pub fn run(groups: &[Group], options: &Install) -> Result<()> {
    let missing = missing(groups);
    if missing.is_empty() {
        println!("==> setup: nothing is missing");
        return Ok(());
    }
    println!("==> setup: missing");
    for Missing { what, why, from } in &missing {
        println!("    {what}: {why}\n        {}", from.command());
    }
    if options.no_install {
        bail!(
            "{} missing and not installed, as asked; `cargo xtask setup` installs them",
            count(missing.len())
        );
    }
    let mut packages: Vec<&str> = missing
        .iter()
        .flat_map(|missing| missing.from.packages())
        .copied()
        .collect();
    packages.dedup();
    if !packages.is_empty() {
        install(&packages)?;
    }
    if groups.contains(&Group::Build) {
        let toolchain = Toolchain::find()
            .context("the Rust sources were installed, and yet no compiler has them")?;
        if !toolchain.has_linker() {
            step(
                &format!(
                    "bpf-linker {LINKER_VERSION} for LLVM {} (about a minute)",
                    toolchain.llvm
                ),
                || build_linker(&toolchain),
            )?;
        }
    }
    let left: Vec<String> = self::missing(groups)
        .into_iter()
        .map(|missing| missing.what)
        .collect();
    if !left.is_empty() {
        bail!("installed, and yet not found: {}", left.join(", "));
    }
    Ok(())
}

/// Installs what is missing of a group that can be done without; says why where it cannot.
pub fn offer(group: Group, options: &Install) {
    if let Err(error) = run(&[group], options) {
        println!("    going on without: {error:#}");
    }
}

fn count(things: usize) -> String {
    if things == 1 {
        "1 thing is".to_owned()
    } else {
        format!("{things} things are")
    }
}

impl Source {
    fn packages(&self) -> &[&'static str] {
        match self {
            Self::Packages(packages) => packages,
            Self::Built => &[],
        }
    }

    fn command(&self) -> String {
        match self {
            Self::Packages(packages) => step::show(&apt_install(packages)),
            Self::Built => format!(
                "cargo install bpf-linker --version {LINKER_VERSION}, linked with that compiler's libLLVM"
            ),
        }
    }
}

fn missing(groups: &[Group]) -> Vec<Missing> {
    let mut missing = Vec::new();
    if groups.contains(&Group::Build) {
        let toolchain = Toolchain::find();
        if toolchain.is_none() {
            missing.push(Missing {
                what: "the sources of Rust's core library, with a compiler of the same version"
                    .to_owned(),
                why: "there is no compiled core for the BPF target",
                from: Source::Packages(SOURCES.to_vec()),
            });
        }
        if !toolchain.is_some_and(|toolchain| toolchain.has_linker()) {
            missing.push(Missing {
                what: format!("bpf-linker {LINKER_VERSION}"),
                why: "it makes the object that the kernel loads",
                from: Source::Built,
            });
        }
    }
    for (group, tools) in [
        (Group::Test, &TEST_TOOLS[..]),
        (Group::Lab, &LAB_TOOLS[..]),
        (Group::Bench, &BENCH_TOOLS[..]),
    ] {
        if groups.contains(&group) {
            missing.extend(
                tools
                    .iter()
                    .filter(|tool| !tool.is_there())
                    .map(|tool| Missing {
                        what: tool.name.to_owned(),
                        why: tool.why,
                        from: Source::Packages(vec![tool.package]),
                    }),
            );
        }
    }
    missing
}

impl Tool {
    fn is_there(&self) -> bool {
        if self.name == "scapy" {
            // Debian's Python, for which Debian's package is; another one may come first in PATH.
            let import = Command::new("/usr/bin/python3")
                .args(["-c", "import scapy"])
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

/// A libclang, and headers of one, where Debian's packages put them; or the user says where it is.
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

fn install(packages: &[&str]) -> Result<()> {
    let install = apt_install(packages);
    if !in_path("apt-get") {
        bail!(
            "there is no apt-get to install {} with: install what is listed above with this system's own package manager, and the Rust \
             sources with `rustup toolchain install nightly --component rust-src`",
            packages.join(", ")
        );
    }
    if !is_root() {
        bail!(
            "only root can install packages; run `sudo apt-get update && sudo {}`, then this again",
            step::show(&install)
        );
    }
    step("apt-get update", || step::run(&mut apt(&["update"])))?;
    let advice = "if a package cannot be had or others are in its way, the Rust sources can come from rustup instead: \
                  `rustup toolchain install nightly --component rust-src`";
    let installed = step(&step::show(&install), || {
        step::run(&mut apt_install(packages))
    });
    if packages.contains(&SOURCES[0]) {
        installed.context(advice)
    } else {
        installed
    }
}

fn apt(arguments: &[&str]) -> Command {
    let mut apt = Command::new("apt-get");
    apt.args(arguments)
        .arg("-q")
        .env("DEBIAN_FRONTEND", "noninteractive");
    apt
}

/// Never at the cost of a package that is there.
fn apt_install(packages: &[&str]) -> Command {
    let mut apt = apt(&["install", "--yes", "--no-install-recommends", "--no-remove"]);
    apt.args(packages);
    apt
}

fn build_linker(toolchain: &Toolchain) -> Result<()> {
    let root = toolchain.linker_root();
    // The linker is built against a folder that looks like LLVM's, and finds its library there when it runs, too.
    let prefix = root.join("llvm");
    let (name, library) = toolchain.llvm_library()?;
    let link = || -> std::io::Result<()> {
        if prefix.exists() {
            fs::remove_dir_all(&prefix)?;
        }
        fs::create_dir_all(prefix.join("lib"))?;
        std::os::unix::fs::symlink(&library, prefix.join("lib/libLLVM.so"))?;
        std::os::unix::fs::symlink(&library, prefix.join("lib").join(&name))
    };
    link().with_context(|| {
        format!(
            "cannot write to {}; VALIDATOR_CACHE names another folder",
            prefix.display()
        )
    })?;
    let mut cargo = step::cargo();
    cargo.args([
        "install",
        "bpf-linker",
        "--version",
        LINKER_VERSION,
        "--locked",
        "--force",
        "--no-default-features",
    ]);
    cargo
        .args(["--features", &toolchain.linker_feature(), "--root"])
        .arg(&root);
    cargo
        .env("LLVM_PREFIX", &prefix)
        .env("CARGO_PROFILE_RELEASE_DEBUG", "0");
    step::run(&mut cargo)
}
