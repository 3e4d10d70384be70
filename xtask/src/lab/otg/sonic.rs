//! SONiC's PFC helpers against `validator otg`, with the simulated switch between its ports.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::PORTS;
use super::python::{Environment, SCAPY, SNAPPI};
use super::server::Server;
use super::switch::Switch;
use crate::step::{self, step};

/// The script that calls the helpers, and what stands in for a SONiC host.
const SCRIPT: &str = "pfc-user/otg/tests/sonic/pfc.py";
/// What the helpers import. Ansible, IxNetwork and the like are not among it.
const HELPERS: Environment = Environment {
    name: "sonic",
    packages: &[
        SNAPPI,
        SCAPY,
        "dpkt==1.9.8",
        "ipaddr==2.2.0",
        "natsort==8.4.0",
        "netaddr==1.3.0",
        "pandas==3.1.1",
        "pytest==9.2.0",
        "PyYAML==6.0.3",
        "six==1.17.0",
        "tabulate==0.10.0",
    ],
};

/// A case of the script, the switch's fault, and what the helper finds wrong with it.
struct Case {
    name: &'static str,
    fault: Option<(&'static str, &'static str)>,
}

const CASES: [Case; 7] = [
    good("pause_lossless"),
    good("pause_lossy"),
    good("pause_zero_mac"),
    good("pause_unset_bit"),
    good("pause_counter"),
    good("global_pause"),
    Case {
        name: "pause_lossless",
        fault: Some(("ignores-pfc", "should be paused")),
    },
];

const fn good(name: &'static str) -> Case {
    Case { name, fault: None }
}

/// A clone of sonic-mgmt.
pub struct Sonic {
    clone: PathBuf,
    python: PathBuf,
}

impl Sonic {
    /// Makes the environment. Nothing is written into the clone.
    pub fn prepare(clone: &Path) -> Result<Self> {
        let clone = fs::canonicalize(clone).with_context(|| clone.display().to_string())?;
        let python = step("packages of sonic-mgmt's helpers", || HELPERS.python())?;
        Ok(Self { clone, python })
    }

    /// Runs the cases with `only` in their names, each with a new server and a new switch.
    pub fn run(
        &self,
        root: &Path,
        validator: &Path,
        folder: &Path,
        only: Option<&str>,
    ) -> Result<()> {
        fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
        let wanted = |case: &&Case| only.is_none_or(|word| case.name.contains(word));
        for case in CASES.iter().filter(wanted) {
            let title = match case.fault {
                None => case.name.to_owned(),
                Some((fault, _)) => format!("{} on a switch that {fault}", case.name),
            };
            step(&format!("sonic-mgmt: {title}"), || {
                self.judge(root, validator, folder, case)
            })?;
        }
        Ok(())
    }

    fn judge(&self, root: &Path, validator: &Path, folder: &Path, case: &Case) -> Result<()> {
        let faults: Vec<_> = case.fault.iter().map(|(fault, _)| *fault).collect();
        let switch = Switch::start(validator, folder, "1G", &faults)?;
        let server = Server::start(validator, folder)?;
        let log = folder.join(format!("sonic-{}.log", case.name));
        let mut command = Command::new(&self.python);
        command
            .arg(root.join(SCRIPT))
            .arg(&self.clone)
            .arg("grpc")
            .arg(server.location("grpc"))
            .arg(&switch.counters)
            .args(PORTS)
            .arg(case.name)
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .current_dir(folder);
        let output = File::create(&log)?;
        let status = command
            .stdout(output.try_clone()?)
            .stderr(output)
            .status()
            .with_context(|| format!("cannot run {}", step::show(&command)))?;
        server.stop()?;
        switch.stop()?;
        let said = fs::read_to_string(&log)?;
        let last = said.lines().next_back().unwrap_or_default();
        println!("    {last}");
        match case.fault {
            None if !status.success() => bail!("{last} ({} has more)", log.display()),
            Some((_, wrong)) if status.success() || !last.contains(wrong) => {
                bail!("expected a failure with {wrong:?} ({})", log.display())
            }
            _ => Ok(()),
        }
    }
}
