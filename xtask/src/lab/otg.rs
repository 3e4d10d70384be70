//! `cargo xtask lab otg`: real clients of the Open Traffic Generator API against `validator otg` on
//! two veths, in a network namespace of its own.

mod python;
mod server;
pub mod smoke;
mod sonic;
mod suites;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};

use super::network;
use crate::step::{self, step};
use server::Server;
use sonic::Sonic;
use suites::Conformance;

/// The tester's ports, which are the ends of a cable or at the switch.
const PORTS: [&str; 2] = ["otg0", "otg1"];
/// Scripts of this repository; each takes a transport, the server and two locations.
const SCRIPTS: &str = "pfc-user/otg/tests/python";

#[derive(clap::Args)]
pub struct Otg {
    /// Clone of the repository `conformance` of open-traffic-generator, whose tests of data and
    /// neighbours run, too
    #[arg(long, value_name = "DIR")]
    conformance: Option<PathBuf>,
    /// Clone of the repository `sonic-mgmt` of sonic-net, whose PFC helpers run alone, with the
    /// simulated switch between the ports
    #[arg(long, value_name = "DIR", conflicts_with = "conformance")]
    sonic: Option<PathBuf>,
    /// Only scripts, or cases of `--sonic`, whose names have this word
    #[arg(long, value_name = "WORD")]
    only: Option<String>,
    /// Only the clients against an engine that records: neither root nor frames
    #[arg(long, conflicts_with_all = ["conformance", "sonic", "only"])]
    offline: bool,
}

/// Fails if one client does.
pub fn run(root: &Path, options: &Otg) -> Result<ExitCode> {
    let folder = root.join("target/lab/otg");
    if let Some(clone) = &options.sonic {
        return sonic(root, clone, &folder, options.only.as_deref());
    }
    let python = step("client", client)?;
    step("clients against an engine that records", || {
        let mut cargo = step::cargo();
        cargo.args(["test", "--package", "validator-otg", "--test", "snappi"]);
        step::run(cargo.env(smoke::PYTHON, &python).current_dir(root))
    })?;
    if options.offline {
        return Ok(ExitCode::SUCCESS);
    }
    require_root()?;
    let validator = step("validator with the feature otg", || build(root))?;
    let conformance = options
        .conformance
        .as_deref()
        .map(|clone| Conformance::prepare(clone, &folder))
        .transpose()?;
    network::with_veths(&[PORTS], || {
        let scripts = scripts(root, options.only.as_deref())?;
        for script in &scripts {
            for transport in ["http", "https", "grpc", "grpc-pieces"] {
                let server = Server::start(&validator, &folder)?;
                let name = script.file_stem().unwrap_or_default().to_string_lossy();
                step(&format!("{name} over {transport}"), || {
                    let mut command = Command::new(&python);
                    command.arg(script).arg(transport);
                    command.arg(server.location(transport)).args(PORTS);
                    step::run(&mut command)
                })?;
                server.stop()?;
            }
        }
        if let Some(conformance) = &conformance {
            for transport in ["https", "grpc"] {
                let server = Server::start(&validator, &folder)?;
                step(&format!("conformance over {transport}"), || {
                    conformance.run(transport, &server.location(transport), PORTS)
                })?;
                server.stop()?;
            }
        }
        Ok(ExitCode::SUCCESS)
    })
}

/// The lab's scripts, by name.
fn scripts(root: &Path, only: Option<&str>) -> Result<Vec<PathBuf>> {
    let folder = root.join(SCRIPTS);
    let mut found = Vec::new();
    for entry in fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        if path.extension().is_some_and(|end| end == "py")
            && only.is_none_or(|word| name.contains(word))
        {
            found.push(path);
        }
    }
    if found.is_empty() {
        bail!("no script in {SCRIPTS} has that word in its name");
    }
    found.sort();
    Ok(found)
}

/// The Python that has snappi; makes its environment first, if necessary.
pub fn client() -> Result<PathBuf> {
    python::CLIENT.python()
}

/// Runs SONiC's helpers.
fn sonic(root: &Path, clone: &Path, folder: &Path, only: Option<&str>) -> Result<ExitCode> {
    require_root()?;
    let sonic = Sonic::prepare(clone)?;
    let validator = step("validator with the feature otg", || build(root))?;
    let [first, second] = PORTS;
    let [one, other] = sonic::SWITCH;
    network::with_veths(&[[first, one], [second, other]], || {
        sonic.run(root, &validator, folder, only)
    })?;
    Ok(ExitCode::SUCCESS)
}

fn require_root() -> Result<()> {
    if !step::is_root() {
        bail!("frames need root: run it as root, or with --offline");
    }
    Ok(())
}

fn build(root: &Path) -> Result<PathBuf> {
    crate::build_ebpf::object(root)?;
    let mut cargo = step::cargo();
    cargo.args([
        "build",
        "--release",
        "--package",
        "pfc-user",
        "--bin",
        "validator",
    ]);
    step::run(cargo.args(["--features", "otg"]).current_dir(root))?;
    Ok(root.join("target/release/validator"))
}
