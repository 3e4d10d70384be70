//! Environment of a test's program: a folder, named network namespaces, and a check for leftovers.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;
use validator::driver::kernel::netns::Namespace;

use crate::common;
use crate::run::outcome::{Outcome, word_of};

pub const PROGRAM: &str = env!("CARGO_BIN_EXE_validator");
/// Upper bound of waits for immediate events; exceeding it is a failure.
const PATIENCE: Duration = Duration::from_secs(60);
/// Marks every process started by a test, directly or indirectly.
const MARK: &str = "VALIDATOR_TEST_LAB";
/// One lab at a time: several would compete for the CPU.
static ALONE: Mutex<()> = Mutex::new(());

/// Dropping it ends its processes and removes its namespaces.
pub struct Lab {
    folder: TempDir,
    mark: String,
    namespaces: Vec<String>,
    children: Vec<Child>,
    links: BTreeSet<String>,
    journal: BTreeSet<PathBuf>,
    _alone: MutexGuard<'static, ()>,
}

impl Lab {
    /// Returns `None` and reports a skip if `test` cannot run.
    pub fn new(test: &str) -> Option<Self> {
        if !common::need_root(test) || !common::need_tool(test, "ip") {
            return None;
        }
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let folder = tempfile::tempdir().unwrap();
        // For tests that run as another user.
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let mark = format!("{}-{test}", std::process::id());
        Some(Self {
            folder,
            mark,
            namespaces: Vec::new(),
            children: Vec::new(),
            links: links(),
            journal: journal(),
            _alone: alone,
        })
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a file and returns its path as an argument.
    pub fn file(&self, name: &str, text: &str) -> String {
        let path = self.path(name);
        fs::write(&path, text).unwrap();
        path.display().to_string()
    }

    /// Writes a short plan, as [`plan`] makes it, and returns its path as an argument.
    pub fn plan(&self, traffic: &str, cases: &[(&str, &str)]) -> String {
        self.file("plan.toml", &plan(traffic, cases))
    }

    /// The directory for `--out`, which does not exist yet.
    pub fn out(&self) -> PathBuf {
        self.path("out")
    }

    /// Makes a command of `validator` with these arguments, separated by spaces.
    pub fn validator(&self, arguments: &str) -> Command {
        self.command(PROGRAM, arguments)
    }

    pub fn command(&self, program: &str, arguments: &str) -> Command {
        let mut command = Command::new(program);
        command
            .args(arguments.split(' '))
            .env(MARK, &self.mark)
            .stdin(Stdio::null());
        command
    }

    /// Runs `validator` to its end.
    pub fn run(&self, arguments: &str) -> Outcome {
        Outcome::of(self.validator(arguments).output().unwrap())
    }

    /// Starts `validator run` with results in [`Lab::out`], in a process group of its own as a
    /// shell would.
    pub fn start(&self, arguments: &str) -> Child {
        use std::os::unix::process::CommandExt;
        let mut command =
            self.validator(&format!("run --out {} {arguments}", self.out().display()));
        command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .unwrap()
    }

    /// Runs `validator run` to its end, with results in [`Lab::out`].
    pub fn finish(&self, arguments: &str) -> Outcome {
        Outcome::of(self.start(arguments).wait_with_output().unwrap())
    }

    /// Makes a named network namespace and returns its full name.
    pub fn namespace(&mut self, name: &str) -> String {
        let name = format!("validator-{}-{name}", std::process::id());
        ip(&format!("netns add {name}"));
        self.namespaces.push(name.clone());
        name
    }

    /// Makes `child` end with the lab.
    pub fn keep(&mut self, child: Child) {
        self.children.push(child);
    }

    /// Ends the processes that would end with the lab.
    pub fn end_kept(&mut self) {
        for mut child in self.children.drain(..) {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Process id and command line of the processes that this test has started, directly or
    /// indirectly.
    pub fn processes(&self) -> Vec<(i32, String)> {
        let mark = format!("{MARK}={}", self.mark);
        let numbers = fs::read_dir("/proc")
            .unwrap()
            .flatten()
            .filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let own = numbers.filter(|number: &i32| {
            let environment = fs::read(format!("/proc/{number}/environ")).unwrap_or_default();
            environment
                .split(|octet| *octet == 0)
                .any(|variable| variable == mark.as_bytes())
        });
        own.map(|number| {
            let command = fs::read(format!("/proc/{number}/cmdline")).unwrap_or_default();
            (number, String::from_utf8_lossy(&command).replace('\0', " "))
        })
        .collect()
    }

    /// Process id of the simulated DUT that a run has started.
    pub fn dut(&self) -> Option<i32> {
        self.processes()
            .into_iter()
            .find(|(_, command)| command.contains(" dut switch "))
            .map(|(number, _)| number)
    }

    /// Waits until a simulated DUT has received data at its port 0 after the storm began at its
    /// port 1. Returns its process id.
    pub fn wait_for_data_in_the_storm(&self) -> i32 {
        let mut before = None;
        let mut found = None;
        wait_until("data in the storm", || {
            let Some((dut, [data, storm])) =
                self.dut().and_then(|dut| Some((dut, frames_into(dut)?)))
            else {
                return false;
            };
            found = Some(dut);
            // Data after the storm's first three frames: earlier ones are not pause frames, and the
            // lead has no data.
            if before.is_none() && storm >= 3 {
                before = Some(data);
            }
            before.is_some_and(|before| data > before + 200)
        });
        found.unwrap()
    }

    /// Asserts that a run has restored the host: no process, no interface, no entry in the journal,
    /// and no program on the interfaces of the test's own namespaces.
    pub fn assert_nothing_is_left(&self) {
        wait_until("the end of all processes", || self.processes().is_empty());
        assert_eq!(links(), self.links, "interfaces of the host");
        assert_eq!(journal(), self.journal, "settings to put back");
        for namespace in &self.namespaces {
            // The kernel frees a killed process's link on a work queue.
            wait_until("no XDP program", || {
                !ip(&format!("-n {namespace} -d link show")).contains("prog/xdp")
            });
        }
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        for (number, _) in self.processes() {
            let _ = kill(Pid::from_raw(number), Signal::SIGKILL);
        }
        for child in &mut self.children {
            let _ = child.wait();
        }
        for namespace in &self.namespaces {
            let _ = Command::new("ip")
                .args(["netns", "del", namespace])
                .status();
        }
    }
}

/// Returns the output of `ip`, which must succeed.
pub fn ip(arguments: &str) -> String {
    let output = Command::new("ip")
        .args(arguments.split(' '))
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "ip {arguments}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

/// Names of the interfaces in this process's namespace.
fn links() -> BTreeSet<String> {
    Namespace::current()
        .and_then(|here| {
            here.run(|| {
                nix::net::if_::if_nameindex()
                    .unwrap()
                    .iter()
                    .map(|link| link.name().to_owned().into_string().unwrap())
                    .collect()
            })
        })
        .unwrap()
}

/// Entries by which the program would restore settings after it was killed.
fn journal() -> BTreeSet<PathBuf> {
    fs::read_dir(common::journal())
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .collect()
}

/// Frames received at ports p0 and p1 in a process's namespace.
fn frames_into(process: i32) -> Option<[u64; 2]> {
    let table = fs::read_to_string(format!("/proc/{process}/net/dev")).ok()?;
    let of = |port: &str| {
        let line = table
            .lines()
            .find_map(|line| line.trim().strip_prefix(port)?.strip_prefix(':'))?;
        line.split_ascii_whitespace().nth(1)?.parse().ok()
    };
    Some([of("p0")?, of("p1")?])
}

/// Polls: the kernel does not report these events.
pub fn wait_until(what: &str, mut reached: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !reached() {
        assert!(begin.elapsed() < PATIENCE, "{what} was not reached");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Path of a file in the repository.
pub fn of_repository(path: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .unwrap()
        .join(path)
        .display()
        .to_string()
}

/// A short plan with these durations and these cases with their repetitions.
pub fn plan(traffic: &str, cases: &[(&str, &str)]) -> String {
    let mut text = format!(
        "name = \"short\"\n[durations]\nbaseline = \"150ms\"\nlead = \"100ms\"\n\
         traffic = \"{traffic}\"\ntail = \"100ms\"\nresume = \"150ms\"\ndrain_max = \"500ms\"\n"
    );
    for (case, repetition) in cases {
        text += &format!("[[case]]\nid = \"pfc.{case}\"\nrepetitions = [{{ {repetition} }}]\n");
    }
    text
}

/// All four cases, one word each.
pub const CASES: [&str; 4] = ["single", "multi", "lossy", "global"];

/// The cases in these words, each once.
pub fn cases_of(words: &[&str]) -> String {
    cases_with("250ms", words)
}

/// The same with so much traffic in the storm phase.
pub fn cases_with(traffic: &str, words: &[&str]) -> String {
    let all = [
        ("pause-single-lossless", "lossless = [3]"),
        ("pause-multi-lossless", "lossless = [3, 4], storm = [3]"),
        ("pause-lossy", "lossless = [3]"),
        ("global-pause", "lossless = [3, 4]"),
    ];
    let wanted: Vec<_> = all
        .into_iter()
        .filter(|(case, _)| words.contains(&word_of(case)))
        .collect();
    plan(traffic, &wanted)
}
