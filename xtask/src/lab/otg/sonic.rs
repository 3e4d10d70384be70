//! SONiC's PFC helpers against `validator otg`, with the simulated switch between its ports.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

use anyhow::{Context, Result, bail};

use super::PORTS;
use super::server::Server;
use super::switch::Switch;
use crate::lab::python::{Environment, SCAPY, SNAPPI};
use crate::step::{self, step};

/// The script that calls the helpers, and what stands in for a SONiC host.
const SCRIPT: &str = "pfc-user/otg/tests/sonic/pfc.py";
/// What tries the latter without a clone.
const OFFLINE: &str = "pfc-user/otg/tests/sonic/offline.py";
/// How the script ends where a helper's assertions failed.
const FAILED: i32 = 1;
/// The same where the tester's own storm had gaps.
const GAPS: i32 = 75;
/// How often a case is called at most.
const ATTEMPTS: u32 = 5;
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

/// A case of the script: what the switch is like, and what the helper finds wrong with it.
struct Case {
    name: &'static str,
    transport: &'static str,
    /// More arguments of the switch.
    switch: &'static [&'static str],
    faults: &'static [&'static str],
    wrong: Option<&'static str>,
}

/// Every helper passes on a good switch, and fails on one with a fitting fault.
const CASES: [Case; 22] = [
    good("pause_lossless"),
    good("pause_lossy"),
    good("pause_multi_lossless"),
    good("pause_multi_lossy"),
    good("pause_zero_mac"),
    good("pause_unset_bit"),
    good("pause_counter"),
    good("global_pause"),
    good("valid_pfc_frame").asking_often(),
    good("tx_drop_counter"),
    good("pfcwd_runtime"),
    good("pfcwd_burst_storm"),
    good("pfcwd_basic"),
    good("pause_counter").over("http"),
    good("pfcwd_basic").over("http"),
    bad("pause_lossless", &["ignores-pfc"], "should be paused"),
    bad("pause_multi_lossy", &["lossy-obeys-pfc"], "dropped packet"),
    bad("valid_pfc_frame", &["no-upstream-pfc"], "No PFC frames").asking_often(),
    // It sends less than comes in, and does not say so.
    bad(
        "tx_drop_counter",
        &["throttles=20", "no-upstream-pfc"],
        "Tx drop counter",
    ),
    bad("pfcwd_runtime", &["drops=lossless"], "are dropped"),
    bad("pfcwd_burst_storm", &["loses-held=1"], "should be dropped"),
    bad("pfcwd_basic", &["loses-held=1"], "Loss rate"),
];

/// Tries what stands in for a SONiC host without the helpers, which only a clone has.
pub fn offline(root: &Path, python: &Path, validator: &Path, folder: &Path) -> Result<()> {
    fs::create_dir_all(folder)?;
    let switch = Switch::start(validator, folder, &[], &[])?;
    let mut command = Command::new(python);
    command
        .arg(root.join(OFFLINE))
        .arg(&switch.counters)
        .args(CASES.iter().map(|case| case.name))
        .env("PYTHONDONTWRITEBYTECODE", "1");
    step::run(&mut command)?;
    switch.stop()
}

const fn good(name: &'static str) -> Case {
    Case {
        name,
        transport: "grpc",
        switch: &[],
        faults: &[],
        wrong: None,
    }
}

const fn bad(name: &'static str, faults: &'static [&'static str], wrong: &'static str) -> Case {
    Case {
        faults,
        wrong: Some(wrong),
        ..good(name)
    }
}

impl Case {
    /// Its switch repeats XOFF each half millisecond.
    const fn asking_often(self) -> Self {
        let switch = &["--xoff-quanta", "3000"];
        Self { switch, ..self }
    }

    const fn over(self, transport: &'static str) -> Self {
        Self { transport, ..self }
    }

    fn title(&self) -> String {
        let Self {
            name, transport, ..
        } = self;
        match self.faults.join(" and ") {
            faults if faults.is_empty() => format!("{name} over {transport}"),
            faults => format!("{name} over {transport} on a switch that {faults}"),
        }
    }
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
        let cases: Vec<_> = CASES.iter().filter(wanted).collect();
        if cases.is_empty() {
            bail!("no case has that word in its name");
        }
        let mut wrong = Vec::new();
        for (number, case) in cases.iter().enumerate() {
            let headline = format!("{}/{}: {}", number + 1, cases.len(), case.title());
            let outcome = step(&headline, || self.judge(root, validator, folder, case));
            wrong.extend(
                outcome
                    .err()
                    .map(|error| format!("{}: {error:#}", case.title())),
            );
        }
        let passed = cases.len() - wrong.len();
        println!("{passed} of {} cases as they should be", cases.len());
        if wrong.is_empty() {
            return Ok(());
        }
        bail!("{}", wrong.join("\n"))
    }

    /// Calls a case again if it failed and the tester's own storm had gaps: that says nothing.
    fn judge(&self, root: &Path, validator: &Path, folder: &Path, case: &Case) -> Result<()> {
        let log = folder.join(format!("sonic-{}.log", case.name));
        for _ in 0..ATTEMPTS {
            let status = self.call(root, validator, &log, case)?;
            let said = fs::read_to_string(&log)?;
            let last = said.lines().next_back().unwrap_or_default();
            println!("    {last}");
            match (status.code(), case.wrong) {
                (Some(GAPS), _) => println!("    the storm had gaps, as the machine stood still"),
                (Some(0), None) => return Ok(()),
                (Some(FAILED), Some(wrong)) if last.contains(wrong) => return Ok(()),
                (_, None) => bail!("{last} ({} has more)", log.display()),
                (_, Some(wrong)) => bail!("expected {wrong:?}, found {last:?} ({})", log.display()),
            }
        }
        bail!("undecided: the storm had gaps each of {ATTEMPTS} times; run it on an idle machine")
    }

    /// Runs the script between a new server and a new switch.
    fn call(&self, root: &Path, validator: &Path, log: &Path, case: &Case) -> Result<ExitStatus> {
        let folder = log.parent().expect("it is in a folder");
        let switch = Switch::start(validator, folder, case.switch, case.faults)?;
        let server = Server::start(validator, folder)?;
        let mut command = Command::new(&self.python);
        command
            .arg(root.join(SCRIPT))
            .arg(&self.clone)
            .arg(case.transport)
            .arg(server.location(case.transport))
            .arg(server.location("http"))
            .arg(&switch.counters)
            .args(PORTS)
            .arg(case.name)
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .current_dir(folder);
        let output = File::create(log)?;
        let status = command
            .stdout(output.try_clone()?)
            .stderr(output)
            .status()
            .with_context(|| format!("cannot run {}", step::show(&command)))?;
        server.stop()?;
        switch.stop()?;
        Ok(status)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(path: &str) -> String {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        fs::read_to_string(root.join(path)).unwrap()
    }

    /// Entries of a table of Python whose lines begin in a certain way.
    fn entries(text: &str, table: &str, begin: &str) -> usize {
        let (_, rest) = text.split_once(table).unwrap();
        rest.lines()
            .skip(1)
            .take_while(|line| line.starts_with(' '))
            .filter(|line| line.starts_with(begin))
            .count()
    }

    #[test]
    fn the_page_counts_what_stands_in_for_a_chassis_and_a_host() {
        let page = read("docs/otg.md");
        let absent = read("pfc-user/otg/tests/sonic/absent.py");
        let modules = entries(&absent, "ABSENT = (", "    \"");
        let called = entries(&absent, "PRESENT = {", "    \"");
        let commands = read("pfc-user/otg/tests/sonic/dut.py")
            .matches("    @answers(")
            .count();
        for words in [
            format!("- {modules} modules that reach for one"),
            format!(" {called} names of them are called"),
            format!("- A host that answers {commands} commands:"),
        ] {
            assert!(page.contains(&words), "docs/otg.md should say {words:?}");
        }
    }

    #[test]
    fn every_case_of_the_script_is_called_and_every_helper_has_to_fail() {
        let script = read("pfc-user/otg/tests/sonic/cases.py");
        let (_, table) = script.split_once("\nCASES = {").unwrap();
        let names = table
            .lines()
            .filter_map(|line| line.strip_prefix("    \"")?.split_once("\": "))
            .map(|(name, _)| name);
        let names: Vec<_> = names.collect();
        let good: Vec<_> = CASES
            .iter()
            .filter(|case| case.wrong.is_none() && case.transport == "grpc")
            .map(|case| case.name)
            .collect();
        assert_eq!(good, names);
        let fails = |begin| {
            let bad = |case: &&Case| case.wrong.is_some() && case.name.starts_with(begin);
            CASES.iter().any(|case| bad(&case))
        };
        let helpers = [
            "pause", "valid", "tx_drop", "pfcwd_r", "pfcwd_bu", "pfcwd_ba",
        ];
        assert!(helpers.into_iter().all(fails));
    }
}
