//! A reader that goes away changes no exit code, be it of standard output or of standard error.
//!
//! lane: waiting

use std::io::Write;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use std::{fs, io, thread};

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::resource::{Resource, setrlimit};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use validator::driver::kernel::link::{End, create_veth};
use validator::driver::kernel::netns::Namespace;
use validator::report;
use validator_core::cases;
use validator_core::evidence::{CaseEvidence, Evidence, Host, Omitted, Planned, Testbed};
use validator_core::verdict::Exit;

use crate::common;

const PROGRAM: &str = env!("CARGO_BIN_EXE_validator");
/// Longest wait for what has to come: only a failure takes as long.
const PATIENCE: Duration = Duration::from_secs(120);
/// From one look at what sends no event to the next.
const LOOK: Duration = Duration::from_millis(20);

/// A testbed of two ports that are down.
const TESTBED: &str = r#"
name = "none"
[dut]
kind = "external"
[ports]
line_rate = "1G"
tx = { interface = "none-0" }
rx = { interface = "none-1" }
[qos]
lossless = [3]
dscp_map = "dscp-mod-8"
"#;

/// Evidence of a case that ended before it did anything, and of one that did not apply.
fn write_evidence(dir: &Path) {
    let omitted = Omitted {
        name: "lossless 3".into(),
        reason: "nothing reaches it".into(),
        not_applicable: true,
    };
    let case = |id: &str, error: Option<&str>| CaseEvidence {
        planned: vec![Planned::Omitted {
            omitted: omitted.clone(),
        }],
        omitted: vec![omitted.clone()],
        error: error.map(str::to_owned),
        ..CaseEvidence::of(id, vec![])
    };
    let evidence = Evidence {
        version: "1.2.3".into(),
        started: 1_800_000_000,
        host: Host {
            kernel: "6.18.0".into(),
            machine: "x86_64".into(),
            cpus: 2,
            ..Host::default()
        },
        testbed: Testbed {
            name: "sim".into(),
            dut: "sim".into(),
            ..Testbed::default()
        },
        ..Evidence::of(vec![
            case("pfc.pause-lossy", Some("the link went away")),
            case("pfc.global-pause", None),
        ])
    };
    let results = cases::judge(&evidence);
    let exit = Exit::of(&results, false);
    report::write(dir, &evidence, &results, exit).unwrap();
}

/// Exit code, and the messages on standard error.
fn ends(arguments: &[&str], dir: &Path, stdout: Stdio) -> (Option<i32>, String) {
    let output = Command::new(PROGRAM)
        .args(arguments)
        .current_dir(dir)
        .stdin(Stdio::null())
        .stdout(stdout)
        .stderr(Stdio::piped())
        .output()
        .unwrap();
    let messages = String::from_utf8(output.stderr).unwrap();
    (output.status.code(), messages)
}

/// A pipe that nobody reads.
fn closed() -> Stdio {
    let (reader, writer) = io::pipe().unwrap();
    drop(reader);
    writer.into()
}

/// Runs the command with a reader and without; both have to end with `code`.
fn ends_with(code: i32, command: &str, dir: &Path) {
    let arguments: Vec<&str> = command.split(' ').collect();
    let read = ends(&arguments, dir, Stdio::null());
    assert_eq!(read.0, Some(code), "{command}: {}", read.1);
    let unread = ends(&arguments, dir, closed());
    assert_eq!(unread, read, "{command}, with a closed pipe");
    let unheard = Command::new(PROGRAM)
        .args(&arguments)
        .current_dir(dir)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(closed())
        .status()
        .unwrap();
    assert_eq!(
        unheard.code(),
        Some(code),
        "{command}, with closed standard error"
    );
}

#[test]
fn each_command_ends_as_it_does_with_a_reader() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    write_evidence(&dir.join("out"));
    for (code, command) in [
        (0, "--help"),
        (0, "--version"),
        (2, "no-command"),
        (0, "list"),
        (0, "list --format json"),
        (3, "judge out"),
        (3, "judge out --format json"),
        (3, "report out"),
        (2, "judge nothing"),
        (2, "watch nothing"),
    ] {
        ends_with(code, command, dir);
    }
}

#[test]
fn help_and_version_that_do_not_fit_are_no_success() {
    let dir = tempfile::tempdir().unwrap();
    let full = || fs::File::options().write(true).open("/dev/full").unwrap();
    for arguments in ["--help", "--version", "run --help"] {
        let arguments: Vec<&str> = arguments.split(' ').collect();
        let message = "standard output cannot be written";
        let (code, messages) = ends(&arguments, dir.path(), full().into());
        assert_eq!(code, Some(2), "{arguments:?}: {messages}");
        assert_eq!(messages.matches(message).count(), 1, "{messages}");

        // Beyond the limit comes SIGXFSZ, and then the error.
        let limit = || Ok(setrlimit(Resource::RLIMIT_FSIZE, 8, 8)?);
        let mut command = Command::new(PROGRAM);
        command.args(&arguments).stderr(Stdio::piped());
        command.stdout(fs::File::create(dir.path().join("out")).unwrap());
        // SAFETY: the closure makes one system call and touches no memory of others.
        unsafe { command.pre_exec(limit) };
        let output = command.spawn().unwrap().wait_with_output().unwrap();
        let messages = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {messages}");
        assert!(messages.contains("File too large"), "{messages}");
    }
}

/// A pipe that is full, and its end that nobody reads.
fn full() -> (io::PipeReader, Stdio) {
    let (reader, writer) = io::pipe().unwrap();
    fcntl(&writer, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).unwrap();
    while (&writer).write(&[b'x'; 4096]).is_ok() {}
    fcntl(&writer, FcntlArg::F_SETFL(OFlag::empty())).unwrap();
    (reader, writer.into())
}

#[test]
fn a_message_that_nobody_takes_holds_up_no_end() {
    for arguments in [&["watch", "nothing"][..], &["no-command"]] {
        let (_reader, stderr) = full();
        let mut child = Command::new(PROGRAM)
            .args(arguments)
            .stdout(Stdio::null())
            .stderr(stderr)
            .spawn()
            .unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(2), "{arguments:?}");
    }
}

/// The run goes on to its end and writes its reports. Its summary waits for the reader, until a
/// signal comes.
#[test]
fn root_a_run_whose_readers_stall_ends_and_obeys_signals() {
    if !common::need_root("root_a_run_whose_readers_stall_ends_and_obeys_signals") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let (_out, stdout) = full();
    let (_err, stderr) = full();
    let mut child = Command::new(PROGRAM)
        .args(["run", "--plan", "mad", "--out", "results", "--testbed"])
        .arg(root.join("configs/testbeds/sim.toml"))
        .current_dir(dir.path())
        .stdin(Stdio::null())
        .stdout(stdout)
        .stderr(stderr)
        .spawn()
        .unwrap();
    let page = dir.path().join("results/junit.xml");
    let begin = Instant::now();
    while !page.exists() {
        assert_eq!(child.try_wait().unwrap(), None, "it waits for its reader");
        assert!(begin.elapsed() < PATIENCE, "it never ended");
        thread::sleep(LOOK);
    }
    // One that comes before the reports are written interrupts the run, which has ended.
    let ended = loop {
        kill(Pid::from_raw(child.id() as i32), Signal::SIGTERM).unwrap();
        if let Some(ended) = child.try_wait().unwrap() {
            break ended;
        }
        assert!(begin.elapsed() < PATIENCE, "signals do not end it");
        thread::sleep(LOOK);
    };
    assert_eq!(ended.signal(), Some(Signal::SIGTERM as i32), "{ended}");
}

#[test]
fn root_a_check_that_finds_a_problem_says_so_without_a_reader() {
    if !common::need_root("root_a_check_that_finds_a_problem_says_so_without_a_reader") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    fs::write(dir.join("t.toml"), TESTBED).unwrap();
    let namespace = Namespace::new().unwrap();
    let end = |name, number| End {
        namespace: &namespace,
        name,
        mac: [2, 0, 0, 0, 0, number],
    };
    create_veth(end("none-0", 1), end("none-1", 2), 1500).unwrap();
    let check = || {
        for interface in ["none-0", "none-1"] {
            let down = ["link", "set", "dev", interface, "down"];
            assert!(Command::new("ip").args(down).status().unwrap().success());
        }
        ends_with(1, "check --testbed t.toml --passive", dir);
        ends_with(1, "check --testbed t.toml --passive --format json", dir);
    };
    namespace.run(check).unwrap();
}
