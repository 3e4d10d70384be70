//! `cargo xtask lab`: devices, kernels and network cards that this machine does not have, in
//! virtual machines; clients and servers of others; and fresh systems in chroots.
//!
//! The labs are programs of Python in `labs`. Here is what is installed and built for each.

pub mod otg;
#[cfg(test)]
mod prometheus;
pub mod rxe;

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::{env, iter};

use anyhow::{Context, Result, bail};

use crate::setup::{self, Group, Install};
use crate::{build_ebpf, step};

#[derive(clap::Args)]
pub struct Lab {
    #[command(subcommand)]
    device: Device,
}

#[derive(clap::Subcommand)]
enum Device {
    /// Soft-RoCE (rdma_rxe) of Debian's stock kernel in QEMU, for the RC cases (as root)
    #[command(disable_help_flag = true)]
    Rxe(Words),
    /// Every BPF program on every kernel of the range, in QEMU with virtual time
    #[command(disable_help_flag = true)]
    Kernel(Words),
    /// Drivers of real network cards in QEMU with virtual time: check, watch, PFC cases and OTG
    #[command(disable_help_flag = true)]
    Nic(Words),
    /// Clients of the Open Traffic Generator API against `validator otg` (as root)
    #[command(disable_help_flag = true)]
    Otg(Words),
    /// Debian's Prometheus on 20 exporters: its alerts fire for what is planted, and clear (as
    /// root)
    #[command(disable_help_flag = true)]
    Fleet(Words),
    /// Setup and demo as on a freshly installed machine, in chroots (as root)
    #[command(disable_help_flag = true)]
    Userspace(Words),
    /// Part of `cargo xtask test`: rdma_rxe
    #[command(hide = true)]
    TestRxe,
    /// Part of `cargo xtask test`: boots a kernel
    #[command(hide = true)]
    TestKernel { kernel: String },
    /// Part of `cargo xtask test`: a driver of a real network card, which takes its link down when
    /// a program is attached
    #[command(hide = true)]
    TestNic {
        /// All cards and kernels, and all repetitions
        #[arg(long)]
        all: bool,
    },
    /// Part of `cargo xtask test`: snappi against `validator otg`
    #[command(hide = true)]
    TestOtg,
    /// Part of `cargo xtask test --full`: pages in a browser
    #[command(hide = true)]
    TestBrowser,
    /// Part of `cargo xtask test --full`: the fleet
    #[command(hide = true)]
    TestFleet,
    /// Part of `cargo xtask test`: rules and queries for Prometheus
    #[command(hide = true)]
    TestPrometheus,
}

/// What is passed on to the lab, which says with --help what it takes
#[derive(clap::Args)]
struct Words {
    /// Options of the lab; --help lists them. With --no-install nothing is installed
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    _words: Vec<String>,
}

/// Returns the lab's own exit code.
pub fn run(root: &Path, lab: &Lab) -> Result<ExitCode> {
    match &lab.device {
        Device::Rxe(_) => with_options(root, "rxe", &[Group::Build, Group::Lab]),
        Device::Kernel(_) => with_options(root, "kernel", &[Group::Build]),
        Device::Nic(_) => with_options(root, "nic", &[Group::Build]),
        Device::Otg(_) => with_options(root, "otg", &[]),
        Device::Fleet(_) => with_options(root, "fleet", &[Group::Build, Group::Test]),
        Device::Userspace(_) => with_options(root, "userspace", &[Group::Userspace]),
        // The programs of the tests' build are up to date.
        Device::TestRxe => {
            rxe::build_agent(root)?;
            here(root, "rxe", ["--test"])
        }
        Device::TestKernel { kernel } => here(root, "kernel", ["--kernel", kernel]),
        Device::TestNic { all: true } => here(root, "nic", iter::empty()),
        Device::TestNic { all: false } => {
            let igb = "--quick --model igb --kernel 6.12";
            here(root, "nic", igb.split(' '))
        }
        Device::TestOtg => here(root, "otg", ["--smoke"]),
        Device::TestBrowser => here(root, "browser", iter::empty()),
        Device::TestFleet => here(root, "fleet", iter::empty()),
        Device::TestPrometheus => here(root, "prometheus", iter::empty()),
    }
}

/// Installs and builds what a lab needs, and starts it with the options of this call.
fn with_options(root: &Path, name: &str, groups: &[Group]) -> Result<ExitCode> {
    // As they were typed: clap would take the first `--` for its own.
    let mut words: Vec<String> = env::args().skip(3).collect();
    let own = words.iter().position(|word| word == "--");
    let own = own.unwrap_or(words.len());
    let asked = |flag: &str| words[..own].iter().any(|word| word == flag);
    if asked("--help") || asked("-h") {
        return here(root, name, ["--help"]);
    }
    let install = Install {
        no_install: asked("--no-install"),
    };
    if name == "rxe" {
        rxe::check_machine()?;
    }
    if ["fleet", "userspace"].contains(&name) || name == "otg" && !asked("--offline") {
        need_root()?;
    }
    setup::run(groups, &install)?;
    let built = match name {
        "rxe" if asked("--exec") => rxe::build_agent(root),
        "rxe" => build_ebpf::run(root).and_then(|()| rxe::build_agent(root)),
        "userspace" => Ok(()),
        "otg" if asked("--offline") => Ok(()),
        "nic" | "otg" => otg::build(root),
        _ => build_ebpf::run(root),
    };
    step::explain_cargo(built, root)?;
    let no_install = words[..own].iter().position(|word| word == "--no-install");
    if let Some(place) = no_install {
        words.remove(place);
    }
    here(root, name, words.iter().map(String::as_str))
}

fn need_root() -> Result<()> {
    if !step::is_root() {
        bail!("network namespaces and chroots need root: run it with sudo or as root");
    }
    Ok(())
}

/// Debian's own, or the user's.
const PYTHON: &str = "python3";

/// A program in `labs` under a Python, to which options can be added.
fn program(root: &Path, python: &Path, file: &str) -> Command {
    let mut python = Command::new(python);
    // Without compiled files beside it.
    python
        .arg("-B")
        .arg(root.join("labs").join(file))
        .current_dir(root);
    python
}

/// Becomes a lab that needs no package of Python's.
fn here<'a>(root: &Path, name: &str, words: impl IntoIterator<Item = &'a str>) -> Result<ExitCode> {
    start(root, Path::new(PYTHON), name, words)
}

/// Becomes a lab under that Python.
pub fn start<'a>(
    root: &Path,
    python: &Path,
    name: &str,
    words: impl IntoIterator<Item = &'a str>,
) -> Result<ExitCode> {
    let mut lab = program(root, python, &format!("{name}.py"));
    lab.args(words);
    Err(lab.exec()).with_context(|| format!("cannot run {}", step::show(&lab)))
}

/// The Python of an environment with packages of PyPI. It is made first if it is not there.
pub fn python(root: &Path, environment: &str) -> Result<PathBuf> {
    let mut make = program(root, Path::new(PYTHON), "shared/packages.py");
    step::output(make.arg(environment)).map(PathBuf::from)
}

/// Tries the packages in a folder on a fresh Debian.
pub fn try_packages(root: &Path, folder: &Path) -> Result<()> {
    step::run(program(root, Path::new(PYTHON), "package.py").arg(folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_labs_read_and_say() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        step::run(&mut program(root, Path::new(PYTHON), "tests.py")).unwrap();
    }
}
