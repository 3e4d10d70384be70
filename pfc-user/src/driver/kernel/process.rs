//! Child processes that end with the tester: the simulated device, and hook commands.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, FromRawFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{SigSet, Signal, killpg};
use nix::unistd::Pid;
use validator_core::evidence::pfc::HookOutput;

use super::netns::{Namespace, NamespaceError};
use super::wait;

/// A command that runs the tester's own program, also where an upgrade or a build has replaced its
/// file since it was started.
pub fn own_program() -> Command {
    let mut command = Command::new("/proc/self/exe");
    // For lists of processes.
    command.arg0("validator");
    command
}

/// Errors of a child process.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    /// The process could not be started.
    #[error("cannot start {what}: {source}")]
    Start {
        /// Command.
        what: String,
        /// The kernel's error.
        source: io::Error,
    },
    /// The process ended before its answer.
    #[error("{what} ended ({status}) before it answered; its messages are above")]
    Ended {
        /// Command.
        what: String,
        /// The way it ended.
        status: ExitStatus,
    },
    /// The process did not answer or end in time and was killed.
    #[error("{what} did not {awaited} within {} s and was killed", .waited.as_secs_f64())]
    TimedOut {
        /// Command.
        what: String,
        /// The awaited event.
        awaited: &'static str,
        /// Time waited.
        waited: Duration,
    },
    /// Pipes or waiting failed.
    #[error("cannot talk to {what}: {source}")]
    System {
        /// Command.
        what: String,
        /// The kernel's error.
        source: io::Error,
    },
    /// The namespace could not be entered.
    #[error(transparent)]
    Namespace(#[from] NamespaceError),
}

/// A process whose standard input and output we hold; its standard error is ours. Killed when
/// dropped, and by the kernel when this process dies. Keys of the terminal do not reach it: it is
/// in a process group of its own.
#[derive(Debug)]
pub struct Child {
    what: String,
    process: std::process::Child,
    pidfd: OwnedFd,
    stdin: Option<ChildStdin>,
    stdout: ChildStdout,
    /// Read, and not yet handed out.
    buffer: Vec<u8>,
}

/// End of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finished {
    /// Exit status.
    pub status: ExitStatus,
    /// Its output that [`Child::read_line`] had not read.
    pub stdout: String,
}

impl Child {
    /// Starts `command` in `namespace`, or where this process is, which needs no privilege.
    pub fn spawn(
        namespace: Option<&Namespace>,
        mut command: Command,
    ) -> Result<Self, ProcessError> {
        let namespace = namespace.map(Namespace::try_clone).transpose()?;
        let what = format!("{command:?}");
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .process_group(0);
        prepare(&mut command);
        let (started, start) = mpsc::channel();
        // The kernel sends the death signal when the thread that started the child ends, so this
        // one stays until the child has.
        thread::spawn(move || {
            let entered = namespace.map_or(Ok(()), |namespace| namespace.enter());
            let spawned = entered
                .map_err(ProcessError::from)
                .map(|()| command.spawn().and_then(with_pidfd));
            let exit = match &spawned {
                Ok(Ok((_, pidfd))) => pidfd.try_clone().ok(),
                _ => None,
            };
            let _ = started.send(spawned);
            if let Some(exit) = exit {
                let _ = wait::readable(&[&exit], None);
            }
        });
        let spawned = start.recv().expect("the thread sends before it ends");
        let (mut process, pidfd) = spawned?.map_err(|source| ProcessError::Start {
            what: what.clone(),
            source,
        })?;
        let stdin = process.stdin.take();
        let stdout = process.stdout.take().expect("asked for above");
        Ok(Self {
            what,
            process,
            pidfd,
            stdin,
            stdout,
            buffer: Vec::new(),
        })
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// Writes to its standard input.
    pub fn write(&mut self, text: &str) -> Result<(), ProcessError> {
        let stdin = self
            .stdin
            .as_mut()
            .expect("only `finish`, which takes the child, closes it");
        stdin
            .write_all(text.as_bytes())
            .and_then(|()| stdin.flush())
            .map_err(|error| self.failed(error))
    }

    /// The next line that it prints, without its end. An error after `timeout`, or when it ends
    /// without one.
    pub fn read_line(&mut self, timeout: Duration) -> Result<String, ProcessError> {
        let deadline = Instant::now() + timeout;
        loop {
            if let Some(end) = self.buffer.iter().position(|&octet| octet == b'\n') {
                let line: Vec<u8> = self.buffer.drain(..=end).collect();
                return Ok(String::from_utf8_lossy(&line[..end]).into_owned());
            }
            if !self.is_readable(&self.stdout, deadline)? {
                return Err(self.timed_out("print a line", timeout));
            }
            if self.read()? == 0 {
                let status = self.wait(deadline, timeout)?;
                return Err(ProcessError::Ended {
                    what: self.what.clone(),
                    status,
                });
            }
        }
    }

    /// Lines that it has printed and that were not read yet. Does not wait.
    pub fn printed_lines(&mut self) -> Result<Vec<String>, ProcessError> {
        while self.is_readable(&self.stdout, Instant::now())? && self.read()? > 0 {}
        let whole = self.buffer.iter().rposition(|&octet| octet == b'\n');
        let lines: Vec<u8> = self
            .buffer
            .drain(..whole.map_or(0, |end| end + 1))
            .collect();
        let lines = String::from_utf8_lossy(&lines);
        Ok(lines.lines().map(str::to_owned).collect())
    }

    /// True if it has ended already.
    pub fn has_ended(&self) -> Result<bool, ProcessError> {
        self.is_readable(&self.pidfd, Instant::now())
    }

    /// Closes its standard input, reads what it still prints and waits for its end. Killed after
    /// `timeout`, which is an error.
    pub fn finish(mut self, timeout: Duration) -> Result<Finished, ProcessError> {
        let deadline = Instant::now() + timeout;
        self.stdin = None;
        loop {
            if !self.is_readable(&self.stdout, deadline)? {
                return Err(self.timed_out("end", timeout));
            }
            if self.read()? == 0 {
                break;
            }
        }
        let status = self.wait(deadline, timeout)?;
        Ok(Finished {
            status,
            stdout: String::from_utf8_lossy(&self.buffer).into_owned(),
        })
    }

    fn wait(&mut self, deadline: Instant, timeout: Duration) -> Result<ExitStatus, ProcessError> {
        if !self.is_readable(&self.pidfd, deadline)? {
            return Err(self.timed_out("end", timeout));
        }
        self.process.wait().map_err(|error| self.failed(error))
    }

    /// Waits for one of its files until `deadline`; `false` where that came first.
    fn is_readable(&self, file: &dyn AsFd, deadline: Instant) -> Result<bool, ProcessError> {
        let ready = wait::readable(&[file], Some(deadline));
        ready
            .map(|ready| ready[0])
            .map_err(|error| self.failed(error))
    }

    /// Reads some octets of its output; 0 at the end of it.
    fn read(&mut self) -> Result<usize, ProcessError> {
        read_some(&mut self.stdout, &mut self.buffer).map_err(|error| self.failed(error))
    }

    fn timed_out(&mut self, awaited: &'static str, waited: Duration) -> ProcessError {
        self.kill();
        ProcessError::TimedOut {
            what: self.what.clone(),
            awaited,
            waited,
        }
    }

    fn kill(&mut self) {
        // Both fail only when it has ended and been waited for already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }

    fn failed(&self, source: io::Error) -> ProcessError {
        ProcessError::System {
            what: self.what.clone(),
            source,
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Exit status of a hook that did not end in time, as timeout(1) has it.
const TIMED_OUT: i32 = 124;

/// Runs the user's `command` by `sh -c` with `env` added to the environment. `hook` and `when` name
/// it in the evidence. A status other than 0 is no error here. After `timeout` the command and all
/// that it started are killed; what it printed until then is kept, with a line that says so.
pub fn run_hook(
    hook: &str,
    when: &str,
    command: &str,
    env: &[(&str, &str)],
    timeout: Duration,
) -> Result<HookOutput, ProcessError> {
    let deadline = Instant::now() + timeout;
    let what = || format!("the hook {hook} ({command})");
    let failed = |source| ProcessError::System {
        what: what(),
        source,
    };
    let (mut shell, pidfd) = start_shell(command, env).map_err(|source| ProcessError::Start {
        what: what(),
        source,
    })?;
    let mut pipes = shell.pipes();
    let ended = read_until_end(&pidfd, &mut pipes, deadline).map_err(failed)?;
    let status = if ended {
        let status = shell.0.wait().map_err(failed)?;
        // As shells have it.
        status
            .code()
            .unwrap_or_else(|| 128 + status.signal().unwrap_or(0))
    } else {
        TIMED_OUT
    };
    let [mut stdout, mut stderr] = pipes.map(Pipe::into_text);
    if !ended {
        note_killed(&mut stdout, &mut stderr, timeout);
    }
    Ok(HookOutput {
        hook: hook.to_owned(),
        when: when.to_owned(),
        command: command.to_owned(),
        status,
        stdout,
        stderr,
    })
}

/// Adds a line on the time-out to the output whose last lines are shown: standard error, or
/// standard output where that alone has text.
fn note_killed(stdout: &mut String, stderr: &mut String, timeout: Duration) {
    let shown = if stderr.trim().is_empty() && !stdout.trim().is_empty() {
        stdout
    } else {
        stderr
    };
    if !shown.is_empty() && !shown.ends_with('\n') {
        shown.push('\n');
    }
    let seconds = timeout.as_secs_f64();
    *shown += &format!("[it did not end within {seconds} s and was killed]\n");
}

/// Starts a shell in a process group of its own, and opens a descriptor that tells its end.
fn start_shell(command: &str, env: &[(&str, &str)]) -> io::Result<(Group, OwnedFd)> {
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(command).envs(env.iter().copied());
    shell
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0);
    // The calling thread waits for the shell, so it lives long enough.
    prepare(&mut shell);
    let (process, pidfd) = shell.spawn().and_then(with_pidfd)?;
    Ok((Group(process), pidfd))
}

/// Reads both outputs until the shell has ended and they are empty, even if something in the
/// background holds them open. `false`: the deadline came first, also if the shell never stops
/// printing.
fn read_until_end(pidfd: &OwnedFd, pipes: &mut [Pipe; 2], deadline: Instant) -> io::Result<bool> {
    loop {
        let open: Vec<&mut Pipe> = pipes
            .iter_mut()
            .filter(|pipe| pipe.file.is_some())
            .collect();
        let mut watched: Vec<&dyn AsFd> = vec![pidfd];
        watched.extend(
            open.iter()
                .flat_map(|pipe| &pipe.file)
                .map(|file| file as &dyn AsFd),
        );
        let ready = wait::readable(&watched, Some(deadline))?;
        if ready[0] && !ready[1..].contains(&true) {
            return Ok(true);
        }
        // Also at the deadline: the last words are there if this process was held up.
        for (pipe, _) in open
            .into_iter()
            .zip(&ready[1..])
            .filter(|(_, ready)| **ready)
        {
            pipe.read()?;
        }
        if !ready.contains(&true) || Instant::now() >= deadline {
            return Ok(false);
        }
    }
}

/// A shell with all that it started in its process group, which ends with this.
struct Group(std::process::Child);

impl Group {
    /// Its standard output and its standard error.
    fn pipes(&mut self) -> [Pipe; 2] {
        let stdout = self.0.stdout.take().expect("piped, and taken once");
        let stderr = self.0.stderr.take().expect("piped, and taken once");
        [OwnedFd::from(stdout), OwnedFd::from(stderr)].map(|pipe| Pipe {
            file: Some(File::from(pipe)),
            text: Vec::new(),
            cut: 0,
        })
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // Until it has been waited for the group's number is its own; afterwards what it left
        // behind goes on, as it wished.
        if let Ok(None) = self.0.try_wait() {
            let _ = killpg(Pid::from_raw(self.0.id() as i32), Signal::SIGKILL);
            let _ = self.0.wait();
        }
    }
}

/// One output of a hook.
struct Pipe {
    /// `None` once its other end is closed.
    file: Option<File>,
    /// The first octets, at most [`LONGEST_OUTPUT`].
    text: Vec<u8>,
    /// Octets beyond those.
    cut: usize,
}

/// Octets of each output of a hook that become evidence.
const LONGEST_OUTPUT: usize = 1 << 20;

impl Pipe {
    fn read(&mut self) -> io::Result<()> {
        if let Some(file) = &mut self.file
            && read_some(file, &mut self.text)? == 0
        {
            self.file = None;
        }
        self.cut += self.text.len().saturating_sub(LONGEST_OUTPUT);
        self.text.truncate(LONGEST_OUTPUT);
        Ok(())
    }

    /// The text, with a line that says how much of it was cut.
    fn into_text(self) -> String {
        let mut text = String::from_utf8_lossy(&self.text).into_owned();
        if self.cut > 0 {
            text += &format!("\n[{} more octets of output were cut]\n", self.cut);
        }
        text
    }
}

/// The kernel kills the child when the thread that starts it ends, whatever ends it. No signal is
/// blocked in it, though the tester blocks those that it waits for: the user's commands may rely on
/// them.
fn prepare(command: &mut Command) {
    let set = || {
        nix::sys::prctl::set_pdeathsig(Signal::SIGKILL)?;
        SigSet::empty().thread_set_mask()?;
        Ok(())
    };
    // SAFETY: between fork and exec only prctl and pthread_sigmask are called, which are
    // async-signal-safe and allocate nothing.
    unsafe { command.pre_exec(set) };
}

fn with_pidfd(process: std::process::Child) -> io::Result<(std::process::Child, OwnedFd)> {
    // SAFETY: the call has no memory arguments. The process has not been waited for, so the number
    // is its own.
    let pidfd = unsafe { libc::syscall(libc::SYS_pidfd_open, process.id(), 0) };
    if pidfd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just opened this descriptor, and nobody else knows it.
    Ok((process, unsafe { OwnedFd::from_raw_fd(pidfd as i32) }))
}

fn read_some(from: &mut impl Read, to: &mut Vec<u8>) -> io::Result<usize> {
    let mut chunk = [0; 4096];
    let octets = from.read(&mut chunk)?;
    to.extend_from_slice(&chunk[..octets]);
    Ok(octets)
}

/// Start time of a process, in clock ticks since boot (field 22 of /proc/PID/stat). `None` if there
/// is no such process, or only a zombie.
pub fn start_time(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may hold anything, so count from behind it: state is field 3.
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_ascii_whitespace();
    let state = fields.next()?;
    if state == "Z" {
        None
    } else {
        fields.nth(18)?.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_known_by_its_start() {
        let own = start_time(std::process::id()).unwrap();
        assert!(own > 0);
        // PID_MAX_LIMIT: numbers stay below it.
        assert_eq!(start_time(1 << 22), None);
    }
}
