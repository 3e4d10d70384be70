//! The example `judge` reads a directory and prints the report: evidence needs nothing but this
//! crate to be judged.

#![allow(clippy::disallowed_types, reason = "it runs the example, a program")]

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use lzma_rust2::XzReader;
use serde::Deserialize;
use validator_core::evidence::{CaseEvidence, Evidence, Host, Invocation, SCHEMA, Testbed};
use validator_core::report::{self, Folder};

/// A line of the corpus.
#[derive(Deserialize)]
struct Recorded {
    devices: Vec<String>,
    evidence: CaseEvidence,
}

/// Stores a run of `rc.c09-142-01` on the simulated requester that is `device`.
fn store(folder: &Path, device: &str) {
    let corpus =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/verdicts/corpus/evidence/rc.jsonl.xz");
    let lines = BufReader::new(XzReader::new(File::open(corpus).unwrap(), true)).lines();
    let mut recorded = lines.map(|line| serde_json::from_str::<Recorded>(&line.unwrap()).unwrap());
    let recorded = recorded
        .find(|recorded| recorded.devices.iter().any(|name| name == device))
        .expect("the corpus has the device");
    let evidence = Evidence {
        schema: SCHEMA,
        version: "0.1.0".into(),
        started: 1_700_000_000,
        seconds: 1.0,
        host: Host::default(),
        testbed: Testbed::default(),
        invocation: Invocation::default(),
        preflight: None,
        planned: vec![recorded.evidence.case.clone()],
        hooks: vec![],
        cases: vec![recorded.evidence],
        interrupted: false,
    };
    report::write_evidence(&mut Folder::make(folder).unwrap(), &evidence).unwrap();
}

/// Cargo puts examples beside the folder of test programs.
fn judge(folder: &Path) -> Output {
    let this = std::env::current_exe().unwrap();
    let example: PathBuf = this.ancestors().nth(2).unwrap().join("examples/judge");
    Command::new(example).arg(folder).output().unwrap()
}

#[test]
fn stored_evidence_is_judged_without_the_rest_of_the_tool() {
    for (device, code, said) in [
        ("good", 0, "rc.c09-142-01  pass"),
        ("one-retry-less", 1, "rc.c09-142-01  fail"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        store(folder.path(), device);
        let output = judge(folder.path());
        let text = String::from_utf8(output.stdout).unwrap();
        assert_eq!(output.status.code(), Some(code), "{device}: {text}");
        assert!(text.contains(said), "{device}: {text}");
        // Nothing but the evidence and the mark of the folder are there afterwards.
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }
}

#[test]
fn a_directory_without_evidence_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let output = judge(folder.path());
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        said.starts_with("judge: ") && said.contains("no evidence.json here"),
        "{said}"
    );
}
