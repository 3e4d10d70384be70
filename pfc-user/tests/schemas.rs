//! Files that a run writes are what the published schemas say, as an independent validator reads
//! them.
//!
//! lane: waiting

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::common;

const PROGRAM: &str = env!("CARGO_BIN_EXE_validator");

/// Prints the mistakes of each file; the first argument is the schema.
const VALIDATE: &str = r#"
import json, sys
from jsonschema import Draft202012Validator as Validator
schema, *files = [json.load(open(name)) for name in sys.argv[1:]]
Validator.check_schema(schema)
for file in files:
    for error in Validator(schema).iter_errors(file):
        print("/".join(map(str, error.absolute_path)) + ": " + error.message[:300])
"#;

/// A short repetition of each kind of evidence.
const PLAN: &str = r#"
name = "schemas"
durations = { baseline = "50ms", lead = "50ms", traffic = "50ms", tail = "50ms", resume = "50ms" }
[[case]]
id = "pfc.pause-single-lossless"
repetitions = [{ lossless = [3] }]
[[case]]
id = "rc.c09-142-01"
queue_pairs = [{ retry_count = 1, timeout = 12 }]
"#;

/// Faults, each of which meets other frames than the rest.
const FAULTS: &str = r#"testbed.dut.faults=["changes-port=499", "duplicates=503", "reorders=509",
    "corrupts=521", "swaps-words=523", "appends=541", "remarks=547", "forwards-control"]"#;
/// Parts of the evidence of a switch that has them.
const RECORDED: [&str; 9] = [
    r#""kind":"altered""#,
    r#""kind":"corrupt""#,
    r#""kind":"duplicate""#,
    r#""kind":"malformed""#,
    r#""kind":"own-control""#,
    r#""kind":"remarked""#,
    r#""kind":"reordered""#,
    r#""kind":"resized""#,
    r#""damaged":[["headers","#,
];

fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}

/// Validates `file` by the schema of that name and returns the errors that were found.
fn mistakes(schema: &str, file: &Path) -> String {
    let output = Command::new(common::PYTHON)
        .args(["-c", VALIDATE])
        .arg(repository(&format!("docs/schemas/{schema}.schema.json")))
        .arg(file)
        .stderr(Stdio::inherit())
        .output()
        .unwrap();
    assert!(output.status.success(), "the validator itself failed");
    String::from_utf8(output.stdout).unwrap()
}

/// Runs on the simulated devices, and holds what was written against the schemas.
fn run_and_validate(folder: &Path, arguments: &[&str]) {
    let out = folder.join("out");
    let run = Command::new(PROGRAM)
        .args(["run", "--testbed"])
        .arg(repository("configs/testbeds/sim.toml"))
        .args(arguments)
        .arg("--out")
        .arg(&out)
        .env("VALIDATOR_JOURNAL", folder.join("journal"))
        .output()
        .unwrap();
    assert!(matches!(run.status.code(), Some(0 | 1 | 3)), "{run:?}");
    for name in ["evidence", "report"] {
        assert_eq!(mistakes(name, &out.join(format!("{name}.json"))), "");
    }
}

#[test]
fn what_mad_cases_record_and_report() {
    if !common::need_tool("what_mad_cases_record_and_report", "jsonschema") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    run_and_validate(
        folder.path(),
        &["--plan", "mad", "--set", "testbed.mad.timeout=50ms"],
    );

    // The schemas leave no room for what they do not name.
    let report = folder.path().join("out/report.json");
    let text = fs::read_to_string(&report).unwrap();
    fs::write(&report, text.replacen("\"cases\"", "\"kases\"", 1)).unwrap();
    let found = mistakes("report", &report);
    assert!(found.contains("'cases' is a required property"), "{found}");
    assert!(found.contains("'kases' was unexpected"), "{found}");
}

#[test]
fn root_what_pfc_and_rc_cases_record_and_report() {
    const NAME: &str = "root_what_pfc_and_rc_cases_record_and_report";
    if !common::need_root(NAME) || !common::need_tool(NAME, "jsonschema") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let plan = folder.path().join("plan.toml");
    fs::write(&plan, PLAN).unwrap();
    let plan = plan.to_str().unwrap();
    run_and_validate(folder.path(), &["--plan", plan]);

    // Defects of frames are recorded too.
    run_and_validate(folder.path(), &["--plan", plan, "--set", FAULTS]);
    let evidence = fs::read_to_string(folder.path().join("out/evidence.json")).unwrap();
    let missing: Vec<_> = RECORDED
        .iter()
        .filter(|part| !evidence.contains(**part))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn the_list_of_cases() {
    if !common::need_tool("the_list_of_cases", "jsonschema") {
        return;
    }
    let output = Command::new(PROGRAM)
        .args(["list", "--format", "json"])
        .output()
        .unwrap();
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(&output.stdout).unwrap();
    assert_eq!(mistakes("list", file.path()), "");
}
