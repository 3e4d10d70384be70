//! Child processes and hooks.
//!
//! lane: waiting

use std::io::{BufRead, BufReader};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::process::{Command, Stdio};
use std::time::Duration;
use std::{env, fs};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal};
use validator::driver::kernel::netns::Namespace;
use validator::driver::kernel::process::{Child, ProcessError, run_hook};

/// Longer than anything here takes on a loaded machine.
const LONG: Duration = Duration::from_secs(20);
/// For what never comes.
const SHORT: Duration = Duration::from_millis(100);
/// Set in the process that a test starts from its own program in order to kill it.
const VICTIM: &str = "VALIDATOR_TEST_VICTIM";

fn shell(script: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", script]);
    command
}

fn spawn(script: &str) -> Child {
    Child::spawn(None, shell(script)).unwrap()
}

#[test]
fn a_child_answers_line_by_line_and_ends_when_its_input_does() {
    let mut child =
        spawn("echo ready; read line; echo \"got $line\"; cat; echo rest; echo more; exit 3");
    assert_eq!(child.read_line(LONG).unwrap(), "ready");
    child.write("this\n").unwrap();
    assert_eq!(child.read_line(LONG).unwrap(), "got this");
    let finished = child.finish(LONG).unwrap();
    assert_eq!(
        (finished.status.code(), finished.stdout.as_str()),
        (Some(3), "rest\nmore\n")
    );
}

#[test]
fn a_child_that_is_silent_or_ends_early_is_an_error() {
    let error = spawn("exec sleep 1000").read_line(SHORT).unwrap_err();
    assert!(
        matches!(
            error,
            ProcessError::TimedOut {
                awaited: "print a line",
                ..
            }
        ),
        "{error}"
    );
    let error = spawn("exit 4").read_line(LONG).unwrap_err();
    assert!(
        matches!(&error, ProcessError::Ended { status, .. } if status.code() == Some(4)),
        "{error}"
    );
    let error = spawn("exec sleep 1000").finish(SHORT).unwrap_err();
    assert!(
        matches!(error, ProcessError::TimedOut { awaited: "end", .. }),
        "{error}"
    );
    let error = Child::spawn(
        Some(&Namespace::current().unwrap()),
        Command::new("/no/such/program"),
    )
    .unwrap_err();
    assert!(
        error
            .to_string()
            .contains("cannot start \"/no/such/program\""),
        "{error}"
    );
}

#[test]
fn a_child_dies_with_a_killed_parent() {
    if env::var_os(VICTIM).is_some() {
        // A child that does not look at its input, with the victim's standard error.
        let _child = spawn("exec sleep 1000");
        println!("ready");
        loop {
            std::thread::park();
        }
    }
    let mut victim = Command::new(env::current_exe().unwrap());
    victim
        .args([
            "--exact",
            "host_process::a_child_dies_with_a_killed_parent",
            "--nocapture",
        ])
        .env(VICTIM, "1");
    let mut victim = victim
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(victim.stdout.take().unwrap()).lines();
    assert!(
        lines
            .map(Result::unwrap)
            .any(|line| line.ends_with("ready"))
    );
    victim.kill().unwrap();
    victim.wait().unwrap();
    assert_hangs_up(&victim.stderr.take().unwrap());
}

#[test]
fn a_hook_gets_its_environment_and_its_output_is_evidence() {
    let output = run_hook(
        "counters",
        "before",
        "echo $PORT; echo trouble >&2; exit 5",
        &[("PORT", "Ethernet0")],
        LONG,
    )
    .unwrap();
    assert_eq!(
        (
            output.status,
            output.stdout.as_str(),
            output.stderr.as_str()
        ),
        (5, "Ethernet0\n", "trouble\n")
    );
    assert_eq!(
        (output.hook.as_str(), output.when.as_str()),
        ("counters", "before")
    );
    assert_eq!(
        run_hook("counters", "after", "kill -9 $$", &[], LONG)
            .unwrap()
            .status,
        128 + 9
    );
    let printed = |octets: usize| {
        let command = format!("head -c {octets} /dev/zero | tr '\\0' x");
        let output = run_hook("counters", "after", &command, &[], LONG);
        output.unwrap().stdout
    };
    assert_eq!(printed(300_000).len(), 300_000);
    let cut = printed(3_000_000);
    let (kept, note) = cut.split_at(1 << 20);
    assert!(kept.bytes().all(|octet| octet == b'x'));
    let more = 3_000_000 - (1 << 20);
    assert_eq!(note, format!("\n[{more} more octets of output were cut]\n"));
}

#[test]
fn a_hook_is_over_when_its_shell_is() {
    let folder = tempfile::tempdir().unwrap();
    let pid = folder.path().join("pid");
    // The process that stays behind holds the pipes open.
    let output = run_hook(
        "configure",
        "before",
        &format!("sleep 1000 & echo $! > {}; echo done", pid.display()),
        &[],
        LONG,
    )
    .unwrap();
    let pid: i32 = fs::read_to_string(pid).unwrap().trim().parse().unwrap();
    nix::sys::signal::kill(
        nix::unistd::Pid::from_raw(pid),
        nix::sys::signal::Signal::SIGKILL,
    )
    .unwrap();
    assert_eq!(output.stdout, "done\n");
    // Nor does a shell that closes its outputs first end it early.
    let output = run_hook("configure", "before", "exec >&- 2>&-; exit 6", &[], LONG).unwrap();
    assert_eq!(output.status, 6);
}

#[test]
fn a_hook_that_takes_too_long_is_killed_with_all_that_it_started() {
    let folder = tempfile::tempdir().unwrap();
    let fifo = folder.path().join("fifo");
    nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let reader = fs::OpenOptions::new()
        .read(true)
        .custom_flags(nix::libc::O_NONBLOCK)
        .open(&fifo)
        .unwrap();
    // The shell and its child both hold the other end. Killing the shell alone would leave the
    // child.
    let script = format!("exec 3> {}; (exec sleep 1000) & wait", fifo.display());
    let output = run_hook("configure", "before", &script, &[], Duration::from_secs(2)).unwrap();
    assert_eq!(output.status, 124);
    assert_hangs_up(&reader);
}

/// Asserts that the last process that holds the other end of `pipe` is gone, or goes soon.
fn assert_hangs_up(pipe: &impl AsFd) {
    let mut polled = [PollFd::new(pipe.as_fd(), PollFlags::empty())];
    assert_eq!(
        poll(&mut polled, PollTimeout::try_from(LONG).unwrap()),
        Ok(1),
        "a process that should be dead holds the pipe"
    );
    assert_eq!(polled[0].revents(), Some(PollFlags::POLLHUP));
}

#[test]
fn a_hook_that_never_stops_printing_is_killed_in_time() {
    let output = run_hook(
        "counters",
        "before",
        "while :; do echo and on; done",
        &[],
        Duration::from_millis(300),
    )
    .unwrap();
    assert_eq!(output.status, 124);
}

#[test]
fn the_last_lines_of_a_hook_that_was_killed_are_shown() {
    const KILLED: &str = "[it did not end within 2 s and was killed]";
    // Both outputs; standard output alone, with a line that has no end; and neither.
    for (prints, shown) in [
        ("echo aside; echo one >&2; echo two >&2", "one / two / "),
        ("echo one; echo two; printf three", "two / three / "),
        ("", ""),
    ] {
        let script = format!("{prints}\nexec sleep 1000");
        let output = run_hook("prepare", "prepare", &script, &[], Duration::from_secs(2)).unwrap();
        assert_eq!(
            output.failure().unwrap(),
            format!("the hook `prepare` failed with exit status 124: {shown}{KILLED}")
        );
    }
}

#[test]
fn children_have_no_signal_blocked_and_a_process_group_of_their_own() {
    // Blocked in this thread, as the tester blocks them to wait for them.
    SigSet::from_iter([Signal::SIGINT, Signal::SIGTERM])
        .thread_block()
        .unwrap();
    let blocked = "grep SigBlk /proc/self/status";
    let output = run_hook("configure", "before", blocked, &[], LONG).unwrap();
    assert_eq!(output.stdout, "SigBlk:\t0000000000000000\n");
    let mut child = spawn(&format!("{blocked}; cut -d ' ' -f 5 /proc/$$/stat; cat"));
    assert_eq!(child.read_line(LONG).unwrap(), "SigBlk:\t0000000000000000");
    assert_eq!(
        child.read_line(LONG).unwrap(),
        child.id().to_string(),
        "its group has its own number"
    );
}
