//! Commands that check or test, and their outcome. Output is shown as it comes. Commands that run
//! side by side show theirs in one piece at their end.

use std::collections::VecDeque;
use std::fmt;
use std::fs;
use std::io::{self, BufRead, BufReader, PipeReader, Read};
use std::panic::resume_unwind;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::{Scope, ScopedJoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use nix::sys::wait::{Id, WaitPidFlag, waitid};
use nix::unistd::{Pid, SysconfVar, gettid, sysconf};

use crate::step;

/// Outcome of tests. A failed part that is no test counts as a failed test.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pub passed: usize,
    pub failed: usize,
    pub skipped: usize,
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} passed, {} failed, {} skipped",
            self.passed, self.failed, self.skipped
        )
    }
}

/// Lines of a failed part's output that are shown once more at the end of the tests: hundreds of
/// other parts may follow the first time.
const LAST: usize = 60;

/// A tally, a text on each part with failures, and what each part took.
#[derive(Debug, Default)]
pub struct Outcome {
    pub tally: Tally,
    /// A line, and the last lines of the part's output.
    pub failures: Vec<String>,
    pub took: Vec<Took>,
}

/// What a part took.
#[derive(Clone, Debug)]
pub struct Took {
    pub name: String,
    /// From its start to its end.
    pub time: Duration,
    /// CPU time of all its processes.
    pub cpu: Duration,
}

impl Outcome {
    /// Notes the failure of a part that counts no tests.
    pub fn failed(&mut self, name: &str, error: &anyhow::Error) {
        self.tally.failed += 1;
        self.failures.push(format!("{name}: {error:#}"));
    }

    /// Waits for parts that run beside this thread, and adds their outcome.
    pub fn join(&mut self, parts: Vec<ScopedJoinHandle<'_, Self>>) {
        for thread in parts {
            self.add(thread.join().unwrap_or_else(|panic| resume_unwind(panic)));
        }
    }

    /// Adds the outcome of another part.
    pub fn add(&mut self, other: Self) {
        self.tally.passed += other.tally.passed;
        self.tally.failed += other.tally.failed;
        self.tally.skipped += other.tally.skipped;
        self.failures.extend(other.failures);
        self.took.extend(other.took);
    }
}

/// A command with a name. Libtest's closing lines in its output are counted.
#[derive(Debug)]
pub struct Part {
    pub name: String,
    pub command: Command,
    /// True: a warning of a crate fails the part, once the command has ended.
    denies_warnings: bool,
}

impl Part {
    pub fn new(name: impl Into<String>, command: Command) -> Self {
        Self {
            name: name.into(),
            command,
            denies_warnings: false,
        }
    }

    /// A build in which a warning of a crate counts as a failure, but ends nothing.
    pub fn denying_warnings(mut self) -> Self {
        self.denies_warnings = true;
        self
    }

    /// Runs it, with its output shown as it comes.
    pub fn run(self) -> Outcome {
        // Uses `print!`, because libtest captures it in the tests of this file.
        self.run_and_show(&mut |text| print!("{text}"))
    }

    /// Runs it, with its output shown in one piece at its end.
    fn run_aside(self) -> Outcome {
        println!("    begins: {}", self.name);
        let mut kept = String::new();
        let outcome = self.run_and_show(&mut |text| kept.push_str(text));
        print!("{kept}");
        outcome
    }

    fn run_and_show(mut self, show: &mut dyn FnMut(&str)) -> Outcome {
        let start = Start::now(&self.name, show);
        let spawned = self.spawn_into_pipe();
        self.end(&start, spawned, show)
    }

    /// Both outputs into one pipe, in their order.
    fn spawn_into_pipe(&mut self) -> io::Result<(PipeReader, Child)> {
        let (read, write) = io::pipe()?;
        let child = self
            .command
            .stdin(Stdio::null())
            .stdout(write.try_clone()?)
            .stderr(write)
            .spawn();
        // Drops the write ends of the pipe that the command holds. With them open, reading would
        // never end.
        self.command.stdout(Stdio::null()).stderr(Stdio::null());
        Ok((read, child?))
    }

    fn end(
        self,
        start: &Start,
        spawned: io::Result<(impl Read, Child)>,
        show: &mut dyn FnMut(&str),
    ) -> Outcome {
        let mut outcome = Outcome::default();
        let shown = step::show(&self.command);
        let mut last = VecDeque::new();
        let mut warned = 0;
        let mut show_and_keep = |line: &str| {
            show(line);
            warned += usize::from(is_of_warnings(line));
            if last.len() == LAST {
                last.pop_front();
            }
            last.push_back(line.to_owned());
        };
        let ended = spawned
            .with_context(|| format!("cannot run {shown}"))
            .and_then(|(output, child)| {
                count(output, child, &mut outcome.tally, &mut show_and_keep)
            });
        let (failure, cpu) = match ended {
            Ok((status, cpu)) if status.success() => {
                let denied = self.denies_warnings && warned > 0;
                let failure = denied.then(|| anyhow!("{warned} targets have warnings, see above"));
                (failure, cpu)
            }
            Ok((status, cpu)) => (Some(anyhow!("{shown} ended with {status}")), cpu),
            Err(error) => (Some(error), Duration::ZERO),
        };
        let time = start.ended(failure.is_none(), show);
        let name = self.name.clone();
        outcome.took.push(Took { name, time, cpu });
        let Some(error) = failure else {
            return outcome;
        };
        if outcome.tally.failed == 0 {
            outcome.failed(&self.name, &error);
        } else {
            let failed = outcome.tally.failed;
            outcome
                .failures
                .push(format!("{}: {failed} failed", self.name));
        }
        if let Some(text) = outcome.failures.last_mut().filter(|_| !last.is_empty()) {
            let lines = last.iter().map(|line| format!("    | {line}"));
            *text = format!(
                "{text}; its last lines:\n{}",
                lines.collect::<String>().trim_end()
            );
        }
        outcome
    }
}

/// True for the line in which cargo says how many warnings a target has, also of an earlier build:
/// "warning: `xtask` (bin "xtask" test) generated 1 warning".
fn is_of_warnings(line: &str) -> bool {
    line.starts_with("warning: `") && line.contains(") generated ") && line.contains(" warning")
}

/// Shows the output of a command, and adds up the closing line of each test program. Returns how it
/// ended and its CPU time.
fn count(
    output: impl Read,
    mut child: Child,
    tally: &mut Tally,
    show: &mut dyn FnMut(&str),
) -> Result<(ExitStatus, Duration)> {
    for line in BufReader::new(output).split(b'\n') {
        let line = line.context("cannot read what the tests print")?;
        let line = String::from_utf8_lossy(&line);
        show(&format!("{line}\n"));
        if let Some(part) = result_of(&line) {
            tally.passed += part.passed;
            tally.failed += part.failed;
            tally.skipped += part.skipped;
        }
    }
    let cpu = cpu_time(&child)?;
    Ok((child.wait()?, cpu))
}

/// Waits for the end of a process, which stays to be waited for. Returns the CPU time of it and of
/// those of its processes that were waited for (proc(5), `stat`).
fn cpu_time(child: &Child) -> Result<Duration> {
    let ended = WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT;
    waitid(Id::Pid(Pid::from_raw(child.id() as i32)), ended)?;
    let stat = fs::read_to_string(format!("/proc/{}/stat", child.id()))?;
    // The program's name may have spaces. After it come the state and ten further fields.
    let (_, fields) = stat.rsplit_once(')').context("no name in /proc/PID/stat")?;
    let times = fields.split_whitespace().skip(11).take(4);
    let ticks: u64 = times.filter_map(|time| time.parse::<u64>().ok()).sum();
    let a_second = sysconf(SysconfVar::CLK_TCK)?.context("no clock ticks")? as u64;
    Ok(Duration::from_millis(ticks * 1000 / a_second))
}

/// Start of a part.
struct Start(Instant);

impl Start {
    fn now(name: &str, show: &mut dyn FnMut(&str)) -> Self {
        show(&format!("==> {name}\n"));
        Self(Instant::now())
    }

    fn ended(&self, well: bool, show: &mut dyn FnMut(&str)) -> Duration {
        let word = if well { "done" } else { "failed" };
        let took = self.0.elapsed();
        show(&format!("    {word} after {}\n", step::elapsed(took)));
        took
    }
}

/// Starts parts, some at a time in their order, on threads of their own. They get the CPU time that
/// nothing else wants: what runs beside them measures times. Returns the threads.
pub fn start<'scope>(
    scope: &'scope Scope<'scope, '_>,
    parts: Vec<Part>,
    at_a_time: usize,
) -> Vec<ScopedJoinHandle<'scope, Outcome>> {
    let queue = Arc::new(Mutex::new(VecDeque::from(parts)));
    let worker = |_| {
        let queue = Arc::clone(&queue);
        scope.spawn(move || {
            let mut outcome = Outcome::default();
            if let Err(error) = give_way() {
                outcome.failed("priority of the parts beside others", &error);
            }
            let next = || queue.lock().expect("no holder panics").pop_front();
            while let Some(part) = next() {
                outcome.add(part.run_aside());
            }
            outcome
        })
    };
    (0..at_a_time).map(worker).collect()
}

/// Gives this thread the policy SCHED_IDLE, which the processes that it starts inherit (sched(7)).
fn give_way() -> Result<()> {
    let thread = gettid().to_string();
    step::output(Command::new("chrt").args(["--idle", "--pid", "0", &thread])).map(drop)
}

/// Reads libtest's closing line, such as `test result: ok. 5 passed; 0 failed; 1 ignored; ...`.
fn result_of(line: &str) -> Option<Tally> {
    let (_, counts) = line.strip_prefix("test result: ")?.split_once(". ")?;
    let number = |word: &str| {
        counts
            .split("; ")
            .find_map(|part| part.strip_suffix(word)?.trim().parse().ok())
    };
    Some(Tally {
        passed: number("passed")?,
        failed: number("failed")?,
        skipped: number("ignored")?,
    })
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn closing_lines_are_read() {
        let line = "test result: FAILED. 5 passed; 2 failed; 1 ignored; 0 measured; 3 filtered \
         out; finished in 0.31s";
        assert_eq!(
            result_of(line),
            Some(Tally {
                passed: 5,
                failed: 2,
                skipped: 1
            })
        );
        assert_eq!(result_of("test root_a_veth ... ok"), None);
    }

    /// A part that prints a closing line with these counts and exits with this code.
    fn part(passed: usize, failed: usize, code: i32) -> Part {
        let mut shell = Command::new("sh");
        shell.arg("-c").arg(format!(
            "echo 'test result: x. {passed} passed; {failed} failed; 0 ignored; 0 \
             measured'; echo >&2; exit {code}"
        ));
        Part::new(format!("{passed}+{failed}"), shell)
    }

    /// Outcome of parts that run two at a time.
    fn two_at_a_time(parts: Vec<Part>) -> Outcome {
        let mut outcome = Outcome::default();
        thread::scope(|scope| outcome.join(start(scope, parts, 2)));
        outcome
    }

    #[test]
    fn parts_are_added_up_whatever_fails_in_them() {
        let nowhere = Part::new("nowhere", Command::new("/nowhere/at/all"));
        let parts = vec![
            part(1, 0, 0),
            part(2, 3, 101),
            part(4, 0, 7),
            nowhere,
            part(8, 0, 0),
        ];
        let Outcome {
            tally,
            mut failures,
            ..
        } = two_at_a_time(parts);
        assert_eq!(
            tally,
            Tally {
                passed: 15,
                failed: 5,
                skipped: 0
            }
        );
        failures.sort();
        assert_eq!(failures.len(), 3, "{failures:?}");
        let (failed, last) = failures[0].split_once(":\n").expect("its last lines");
        assert_eq!(failed, "2+3: 3 failed; its last lines");
        let closing = "| test result: x. 2 passed; 3 failed;";
        assert!(last.trim_start().starts_with(closing), "{last}");
        assert!(
            failures[1].starts_with("4+0: sh -c")
                && failures[1].contains("exit status: 7; its last lines:\n    | test result"),
            "{failures:?}"
        );
        assert!(
            failures[2].starts_with("nowhere: cannot run /nowhere/at/all"),
            "{failures:?}"
        );
    }

    #[test]
    fn parts_beside_others_get_what_cpu_time_is_left() {
        let mut shell = Command::new("sh");
        shell
            .arg("-c")
            .arg("chrt --pid $$ | grep -q SCHED_IDLE && echo 'test result: ok. 1 passed; 0 failed; 0 ignored'");
        let outcome = two_at_a_time(vec![Part::new("policy", shell)]);
        assert_eq!(outcome.tally.passed, 1, "{outcome:?}");
    }

    #[test]
    fn warnings_of_a_crate_fail_a_build_and_those_of_the_surroundings_do_not() {
        let build = |line: &str| {
            let mut shell = Command::new("sh");
            shell.args(["-c", &format!("echo '{line}' >&2")]);
            Part::new("build", shell)
                .denying_warnings()
                .run()
                .tally
                .failed
        };
        assert_eq!(
            build("warning: `x` (bin \"x\" test) generated 2 warnings"),
            1
        );
        assert_eq!(build("warning: `/root/.cargo/config` is deprecated"), 0);
    }

    #[test]
    fn of_a_failed_part_the_last_lines_are_kept() {
        let mut shell = Command::new("sh");
        shell.arg("-c").arg("seq 1 100; exit 1");
        let failures = Part::new("seq", shell).run_aside().failures;
        let lines: Vec<&str> = failures[0].lines().skip(1).collect();
        assert_eq!(lines.len(), LAST);
        assert_eq!((lines[0], lines[LAST - 1]), ("    | 41", "    | 100"));
    }

    #[test]
    fn cpu_time_is_that_of_a_parts_processes_together() {
        let mut shell = Command::new("bash");
        shell
            .arg("-c")
            .arg("(for _ in {1..200000}; do :; done)& wait");
        let took = Part::new("busy", shell).run_aside().took;
        let cpu = took[0].cpu;
        assert!(Duration::ZERO < cpu && cpu <= took[0].time * 2, "{took:?}");
        let took = part(1, 0, 0).run_aside().took;
        assert!(took[0].cpu < cpu, "{took:?}");
    }

    #[test]
    fn a_part_by_itself_is_counted_alike() {
        assert_eq!(
            part(5, 0, 0).run().tally,
            Tally {
                passed: 5,
                failed: 0,
                skipped: 0
            }
        );
        assert_eq!(
            part(5, 1, 101).run().tally,
            Tally {
                passed: 5,
                failed: 1,
                skipped: 0
            }
        );
    }
}
