//! A reader that goes away changes no exit code.
//!
//! lane: waiting

use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

use validator::cases;
use validator::evidence::{CaseEvidence, Evidence, Host, Omitted, SCHEMA, Testbed};
use validator::report;

const PROGRAM: &str = env!("CARGO_BIN_EXE_validator");

/// A testbed whose ports do not exist.
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
    let case = |id: &str, error: Option<&str>| CaseEvidence {
        case: id.into(),
        repetitions: vec![],
        omitted: vec![Omitted {
            name: "lossless 3".into(),
            reason: "nothing reaches it".into(),
            not_applicable: true,
        }],
        error: error.map(str::to_owned),
    };
    let evidence = Evidence {
        schema: SCHEMA,
        version: "1.2.3".into(),
        started: 1_800_000_000,
        seconds: 1.0,
        host: Host {
            kernel: "6.18.0".into(),
            machine: "x86_64".into(),
            cpus: 2,
        },
        testbed: Testbed {
            name: "sim".into(),
            dut: "sim".into(),
            toml: String::new(),
        },
        preflight: None,
        cases: vec![
            case("pfc.pause-lossy", Some("the link went away")),
            case("pfc.global-pause", None),
        ],
        interrupted: false,
    };
    let results = cases::judge(&evidence);
    let exit = validator::case::Exit::of(&results, false);
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

#[test]
fn each_command_ends_as_it_does_with_a_reader() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("t.toml"), TESTBED).unwrap();
    write_evidence(&dir.path().join("out"));
    let commands = [
        ("list", 0),
        ("list --format json", 0),
        ("check --testbed t.toml --passive", 1),
        ("check --testbed t.toml --passive --format json", 1),
        ("run --testbed t.toml --plan smoke --dry-run", 0),
        ("judge out", 3),
        ("judge out --format json", 3),
        ("report out", 3),
        ("judge nothing", 2),
    ];
    for (command, code) in commands {
        let arguments: Vec<&str> = command.split(' ').collect();
        let read = ends(&arguments, dir.path(), Stdio::null());
        assert_eq!(read.0, Some(code), "{command}: {}", read.1);
        let unread = ends(&arguments, dir.path(), closed());
        assert_eq!(unread, read, "{command}, with a closed pipe");
    }
}

#[test]
fn a_simulated_device_ends_well_without_a_reader() {
    let dir = tempfile::tempdir().unwrap();
    let arguments = ["dut", "sma", "--socket", "closed-output"];
    let read = ends(&arguments, dir.path(), Stdio::null());
    assert_eq!(ends(&arguments, dir.path(), closed()), read);
}
