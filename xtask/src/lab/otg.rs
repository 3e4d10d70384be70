//! `cargo xtask lab otg`: real clients of the Open Traffic Generator API against `validator otg` on
//! two veths, in a network namespace of its own.

mod otgen;
mod scripts;
mod server;
pub mod smoke;
mod sonic;
mod suites;
mod switch;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};

use super::{network, python};
use crate::step::{self, step};
use scripts::{Between, LAB, Outcome, Script};
use server::Server;
use sonic::Sonic;
use suites::Conformance;

/// The tester's ports, which are the ends of a cable or at the switch.
const PORTS: [&str; 2] = ["otg0", "otg1"];

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
    /// The program otgen, which then runs, too
    #[arg(long, value_name = "FILE", conflicts_with = "sonic")]
    otgen: Option<PathBuf>,
    /// Only scripts, or cases of `--sonic`, whose names have this word
    #[arg(long, value_name = "WORD")]
    only: Option<String>,
    /// Only the clients against an engine that records: neither root nor frames
    #[arg(long, conflicts_with_all = ["conformance", "sonic", "otgen", "only"])]
    offline: bool,
}

/// Fails if one client does, after all have run.
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
    let mut outcome = Outcome::default();
    let scripts = chosen(options.only.as_deref(), &mut outcome)?;
    let (cable, switch): (Vec<_>, Vec<_>) = scripts
        .into_iter()
        .partition(|(script, _)| script.between == Between::Cable);
    with_cables(&[PORTS], || {
        for (script, python) in &cable {
            outcome.add(script.run(root, python, &validator, &folder));
        }
        if let Some(otgen) = &options.otgen {
            outcome.note("otgen over https", || {
                otgen::run(otgen, &validator, &folder)
            });
        }
        if let Some(conformance) = &conformance {
            for transport in ["https", "grpc"] {
                outcome.note(&format!("conformance over {transport}"), || {
                    let server = Server::start(&validator, &folder)?;
                    conformance.run(transport, &server.location(transport), PORTS)?;
                    server.stop()
                });
            }
        }
        Ok(())
    })?;
    with_cables(&switch::cables(), || {
        for (script, python) in &switch {
            outcome.add(script.run(root, python, &validator, &folder));
        }
        Ok(())
    })?;
    outcome.close()?;
    Ok(ExitCode::SUCCESS)
}

/// The scripts with a word in their titles, and the Python of each. Those whose packages this
/// machine cannot have are noted as skipped, where they can be spared.
fn chosen(only: Option<&str>, outcome: &mut Outcome) -> Result<Vec<(&'static Script, PathBuf)>> {
    let wanted = |script: &&Script| only.is_none_or(|word| script.title().contains(word));
    let scripts: Vec<_> = LAB.iter().filter(wanted).collect();
    if scripts.is_empty() {
        let titles: Vec<_> = LAB.iter().map(Script::title).collect();
        bail!("expected a word of one of these: {}", titles.join(", "));
    }
    step("packages of the scripts", || {
        let mut found = Vec::new();
        for script in scripts {
            match script.python() {
                Ok(python) => found.push((script, python)),
                Err(error) if script.is_optional() => {
                    outcome
                        .skipped
                        .push(format!("{}: {error:#}", script.title()));
                }
                Err(error) => return Err(error),
            }
        }
        Ok(found)
    })
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
    network::with_veths(&switch::cables(), || {
        sonic.run(root, &validator, folder, only)
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Runs `work` in a namespace with these cables, on which only the tester and the switch send: the
/// scripts compare all that a port received with what was sent to it. The kernel's own multicasts
/// are IPv6.
fn with_cables<T: Send>(
    cables: &[[&str; 2]],
    work: impl FnOnce() -> Result<T> + Send,
) -> Result<T> {
    const DISABLED: &str = "/proc/sys/net/ipv6/conf/all/disable_ipv6";
    network::with_veths(cables, || {
        // A kernel without IPv6 has no such file.
        if Path::new(DISABLED).exists() {
            fs::write(DISABLED, "1").context(DISABLED)?;
        }
        work()
    })
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
