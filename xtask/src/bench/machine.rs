//! The machine on which the figures were measured.

use std::path::Path;
use std::process::Command;
use std::time::Duration;
use std::{fmt, fs, thread};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::{files, step};

/// Share of the CPUs in use above which figures are noisy.
const BUSY: f64 = 0.1;

/// The machine, the sources and the time. Unknown values are `unknown`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    pub cpu: String,
    pub cpus: usize,
    /// The hypervisor; `none` on bare metal.
    pub virtualised: String,
    pub governor: String,
    pub kernel: String,
    /// Active mitigations, by vulnerability.
    pub mitigations: Vec<String>,
    pub rustc: String,
    pub commit: String,
    pub date: String,
    /// Load average over the last minute, taken before the build.
    pub load: f64,
    /// Share of the CPUs' time in use in the second before the first benchmark.
    pub busy: f64,
}

impl Machine {
    /// Collects everything that does not change while the benchmarks run.
    pub fn describe(root: &Path) -> Self {
        let cpuinfo = read("/proc/cpuinfo");
        Self {
            cpu: cpu_model(&cpuinfo),
            cpus: thread::available_parallelism().map_or(1, usize::from),
            virtualised: stdout(Command::new("systemd-detect-virt").arg("--vm"))
                .unwrap_or_else(|| hypervisor(&cpuinfo)),
            governor: known(read(
                "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
            )),
            kernel: known(read("/proc/sys/kernel/osrelease")),
            mitigations: mitigations(),
            rustc: known(stdout(Command::new("rustc").arg("--version")).unwrap_or_default()),
            commit: commit(root),
            date: known(
                stdout(Command::new("date").args(["-u", "+%Y-%m-%dT%H:%M:%SZ"]))
                    .unwrap_or_default(),
            ),
            load: load(&read("/proc/loadavg")),
            busy: 0.0,
        }
    }

    /// Measures the current load.
    pub fn measure_load(&mut self) {
        let before = CpuTime::read().unwrap_or_default();
        thread::sleep(Duration::from_secs(1));
        self.busy = CpuTime::read().unwrap_or_default().busy_since(before);
    }

    /// Lists the reasons why the figures may mislead.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if self.busy > BUSY {
            warnings.push(format!(
                "other work takes {:.0} % of the CPUs: expect a wide spread",
                self.busy * 100.0
            ));
        }
        if self.load > self.cpus as f64 {
            warnings.push(format!(
                "the load average was {} on {} CPUs before the build",
                self.load, self.cpus
            ));
        }
        if !matches!(self.governor.as_str(), "performance" | "unknown") {
            warnings.push(format!(
                "the CPUs' frequency is governed by `{}`; `performance` gives steadier figures",
                self.governor
            ));
        }
        warnings
    }

    /// Lists the facts on which times depend.
    pub fn hardware(&self) -> (&str, usize, &str) {
        (&self.cpu, self.cpus, &self.virtualised)
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            cpu,
            cpus,
            virtualised,
            governor,
            kernel,
            rustc,
            commit,
            date,
            load,
            busy,
            ..
        } = self;
        writeln!(
            f,
            "  {cpus} CPUs {cpu}, hypervisor {virtualised}, governor {governor}, Linux {kernel}"
        )?;
        writeln!(
            f,
            "  mitigations: {}",
            if self.mitigations.is_empty() {
                "none".to_owned()
            } else {
                self.mitigations.join(", ")
            }
        )?;
        writeln!(f, "  commit {commit}, {rustc}, {date}")?;
        write!(
            f,
            "  load average {load} before the build, CPUs {:.0} % in use before the first \
             benchmark",
            busy * 100.0
        )
    }
}

fn read(file: &str) -> String {
    fs::read_to_string(file).unwrap_or_default()
}

/// Output of a command; `None` if it fails.
fn stdout(command: &mut Command) -> Option<String> {
    let output = command.output().ok()?;
    Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
        .filter(|stdout| !stdout.is_empty())
}

fn known(text: String) -> String {
    match text.trim() {
        "" => "unknown".to_owned(),
        text => text.to_owned(),
    }
}

fn cpu_model(cpuinfo: &str) -> String {
    let models = cpuinfo.lines().filter_map(|line| {
        line.split_once(':')
            .filter(|(name, _)| name.trim() == "model name")
    });
    known(
        models
            .map(|(_, model)| model.to_owned())
            .next()
            .unwrap_or_default(),
    )
}

/// For machines without systemd: the CPU shows that there is a hypervisor, but not which.
fn hypervisor(cpuinfo: &str) -> String {
    let flags = cpuinfo.lines().find(|line| line.starts_with("flags"));
    match flags.map(|flags| {
        flags
            .split_ascii_whitespace()
            .any(|flag| flag == "hypervisor")
    }) {
        Some(true) => "of unknown name".to_owned(),
        Some(false) => "none".to_owned(),
        None => "unknown".to_owned(),
    }
}

fn mitigations() -> Vec<String> {
    let files = fs::read_dir("/sys/devices/system/cpu/vulnerabilities")
        .into_iter()
        .flatten()
        .flatten();
    let in_force = |file: fs::DirEntry| {
        let state = fs::read_to_string(file.path()).ok()?;
        let mitigation = state.trim().strip_prefix("Mitigation: ")?;
        Some(format!(
            "{} ({mitigation})",
            file.file_name().to_string_lossy()
        ))
    };
    let mut found: Vec<String> = files.filter_map(in_force).collect();
    found.sort();
    found
}

fn commit(root: &Path) -> String {
    let git =
        |arguments: &[&str]| step::output(Command::new("git").args(arguments).current_dir(root));
    let Ok(commit) = git(&["rev-parse", "--short", "HEAD"]) else {
        return "unknown".to_owned();
    };
    let changed = git(&["status", "--porcelain"]).is_ok_and(|changes| !changes.is_empty());
    if changed {
        format!("{commit} with changes")
    } else {
        commit
    }
}

/// Parses the first field of /proc/loadavg.
fn load(loadavg: &str) -> f64 {
    loadavg
        .split_ascii_whitespace()
        .next()
        .and_then(|load| load.parse().ok())
        .unwrap_or(0.0)
}

/// Time of all CPUs since the machine started, in clock ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuTime {
    all: u64,
    idle: u64,
    /// The host of the virtual machine ran something else.
    stolen: u64,
}

impl CpuTime {
    pub fn read() -> Result<Self> {
        const FILE: &str = "/proc/stat";
        Self::parse(&files::read(Path::new(FILE))?)
            .with_context(|| format!("{FILE}: expected a line `cpu` with 8 numbers"))
    }

    /// Reads the line of all CPUs: user, nice, system, idle, iowait, irq, softirq, steal, and two
    /// that user and nice have in them (proc(5)).
    fn parse(text: &str) -> Option<Self> {
        let line = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
        let ticks = line.split_whitespace().take(8).map(str::parse);
        let ticks: Vec<u64> = ticks.collect::<Result<_, _>>().ok()?;
        Some(Self {
            all: ticks.iter().sum(),
            idle: ticks.get(3..5)?.iter().sum(),
            stolen: *ticks.get(7)?,
        })
    }

    /// Share that was stolen since an earlier reading.
    pub fn stolen_since(self, before: Self) -> f64 {
        let all = self.all.saturating_sub(before.all).max(1);
        self.stolen.saturating_sub(before.stolen) as f64 / all as f64
    }

    /// Share that was in use since an earlier reading.
    fn busy_since(self, before: Self) -> f64 {
        match self.all.saturating_sub(before.all) {
            0 => 0.0,
            all => 1.0 - self.idle.saturating_sub(before.idle) as f64 / all as f64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_says_is_read() {
        let cpuinfo =
            "processor\t: 0\nmodel name\t: Some CPU @ 2.10GHz\nflags\t\t: fpu hypervisor sse\n";
        assert_eq!(cpu_model(cpuinfo), "Some CPU @ 2.10GHz");
        assert_eq!(hypervisor(cpuinfo), "of unknown name");
        assert_eq!(hypervisor("flags: fpu\n"), "none");
        assert_eq!(
            (cpu_model(""), hypervisor("")),
            ("unknown".to_owned(), "unknown".to_owned())
        );
        assert_eq!(load("0.52 0.10 0.01 1/87 1453\n"), 0.52);
    }

    #[test]
    fn time_in_use_and_time_that_the_host_took_are_shares_of_all() {
        let read = |line: &str| CpuTime::parse(&format!("{line}\ncpu0 1 1 1 1 1 1 1 1 0 0\n"));
        let before = read("cpu  100 0 50 700 50 0 0 100 7 0").unwrap();
        let after = read("cpu  130 0 50 740 60 0 0 120 9 0").unwrap();
        assert_eq!((before.all, before.idle, before.stolen), (1000, 750, 100));
        assert_eq!(after.stolen_since(before), 0.2);
        assert_eq!(after.busy_since(before), 0.5);
        assert_eq!(
            (after.stolen_since(after), after.busy_since(after)),
            (0.0, 0.0)
        );
        assert_eq!(read("cpu  1 2 3 4 5 6 7"), None, "a kernel without steal");
        assert_eq!(read("intr 1"), None);
    }

    #[test]
    fn a_busy_machine_is_warned_of() {
        let quiet = Machine {
            cpus: 2,
            governor: "unknown".into(),
            load: 1.5,
            busy: 0.05,
            ..Machine::default()
        };
        assert!(quiet.warnings().is_empty());
        let busy = Machine {
            busy: 0.5,
            load: 3.0,
            governor: "powersave".into(),
            ..quiet
        };
        assert_eq!(busy.warnings().len(), 3);
    }
}
