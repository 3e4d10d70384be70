//! `cargo xtask setup`: finds what is missing and installs it.

mod apt;
pub mod built;
mod linker;
mod tools;

use anyhow::{Context, Result, bail};

use self::apt::Apt;
pub use self::tools::in_path;
use crate::step::{self, step};
use crate::toolchain::{LINKER_VERSION, Toolchain};

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Group {
    /// To build the XDP programs.
    Build,
    /// Witnesses that the tests compare with.
    Test,
    /// To build the book.
    Docs,
    /// To build the agent with verbs, for the lab's guest or a real DUT host.
    Lab,
    /// Peers that the benchmarks measure beside the validator. The benchmarks name the missing ones
    /// and leave them out.
    Bench,
    /// To hold the crates of others against rules.
    Crates,
    /// To test pages in a browser.
    Browser,
    /// To make a fresh Debian in a folder.
    Userspace,
    /// To make packages.
    Dist,
}

/// Groups for building and testing.
pub const EVERYTHING: [Group; 4] = [Group::Build, Group::Test, Group::Lab, Group::Docs];
/// The groups among them that the tests need from the start.
pub const BEFORE_TESTS: [Group; 3] = [Group::Build, Group::Test, Group::Lab];

#[derive(clap::Args)]
pub struct Install {
    /// Say what is missing and how to get it, and install nothing
    #[arg(long)]
    pub no_install: bool,
}

/// Sources and compiler of one version. Debian 12 has them in its security suite, Debian 13 in
/// main.
const SOURCES: [&str; 2] = ["rustc-web", "rust-web-src"];

/// A missing tool or package.
struct Missing {
    what: String,
    why: &'static str,
    from: Source,
}

enum Source {
    Packages(Vec<&'static str>),
    /// Built here by this command, which takes about a minute.
    Built(String),
}

/// Installs the missing tools of `groups`. If it must not or cannot install them, the error says
/// what to do.
pub fn run(groups: &[Group], options: &Install) -> Result<()> {
    let apt = Apt::of_this_machine();
    let missing = missing(groups);
    let unfinished = apt.unfinished();
    if missing.is_empty() && unfinished.is_empty() {
        println!("==> setup: nothing is missing");
        return Ok(());
    }
    show(&missing, &unfinished);
    if options.no_install {
        return refuse(&missing);
    }
    let mut packages: Vec<&str> = missing
        .iter()
        .flat_map(|missing| missing.from.packages())
        .copied()
        .collect();
    packages.dedup();
    if !packages.is_empty() {
        apt::check_machine(&packages, in_path("apt-get"))?;
    }
    if !packages.is_empty() || (!unfinished.is_empty() && step::is_root()) {
        let advice = "if a package cannot be had or others are in its way, the Rust sources can \
                      come from rustup instead: `rustup toolchain install nightly --component \
                      rust-src`";
        let installed = apt.install(&packages);
        if packages.contains(&SOURCES[0]) {
            installed.context(advice)?;
        } else {
            installed?;
        }
    }
    if groups.contains(&Group::Build) {
        let toolchain = Toolchain::find()
            .context("the Rust sources were installed, and yet no compiler has them")?;
        if !toolchain.has_linker() {
            let headline = format!(
                "bpf-linker {LINKER_VERSION} for LLVM {} (a minute or two)",
                toolchain.llvm
            );
            step(&headline, || linker::build(&toolchain))?;
        }
    }
    for tool in built::ALL {
        if groups.contains(&tool.group) && !tool.is_there() {
            let headline = format!("{} {} ({})", tool.name, tool.version, tool.takes);
            step(&headline, || tool.build())?;
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

fn show(missing: &[Missing], unfinished: &[String]) {
    println!("==> setup: missing");
    for Missing { what, why, from } in missing {
        println!("    {what}: {why}\n        {}", from.command());
    }
    if !unfinished.is_empty() {
        println!(
            "    the rest of what dpkg began to install: {}\n        \
             dpkg --configure -a; apt-get install --fix-broken",
            unfinished.join(", ")
        );
    }
}

/// Unfinished packages may not be the validator's and are no error here.
fn refuse(missing: &[Missing]) -> Result<()> {
    if missing.is_empty() {
        return Ok(());
    }
    bail!(
        "{} missing and not installed, as asked; `cargo xtask setup` installs them",
        count(missing.len())
    )
}

/// Installs the missing tools of an optional group. Prints the reason if it cannot.
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
            Self::Built(_) => &[],
        }
    }

    fn command(&self) -> String {
        match self {
            Self::Packages(packages) => Apt::hint(packages),
            Self::Built(command) => command.clone(),
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
                from: Source::Built(format!(
                    "cargo install bpf-linker --version {LINKER_VERSION}, linked with that \
                     compiler's libLLVM"
                )),
            });
        }
    }
    for tool in built::ALL {
        if groups.contains(&tool.group) && !tool.is_there() {
            let of = format!("{} --version {}", tool.name, tool.version);
            missing.push(Missing {
                what: format!("{} {}", tool.name, tool.version),
                why: tool.why,
                from: Source::Built(format!("cargo install {of}")),
            });
        }
    }
    for (group, tools) in tools::ALL {
        if groups.contains(group) {
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
