//! The example `judge` reads a directory and prints the report: evidence needs nothing but this
//! crate to be judged.

#![allow(clippy::disallowed_types, reason = "it runs the example, a program")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use validator_core::evidence::whole;
use validator_core::report::{self, Folder};

/// Cargo puts examples beside the folder of test programs.
fn judge(folder: &Path) -> Output {
    let this = std::env::current_exe().unwrap();
    let example: PathBuf = this.ancestors().nth(2).unwrap().join("examples/judge");
    Command::new(example).arg(folder).output().unwrap()
}

#[test]
fn stored_evidence_is_judged_without_the_rest_of_the_tool() {
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/seeds/evidence");
    for (seed, code, expected) in [
        ("mad-good", 0, "mad.c13-013  pass"),
        ("rc-no-retry", 1, "rc.c09-142-01  fail"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let stored = serde_json::from_slice(&fs::read(seeds.join(seed)).unwrap()).unwrap();
        let evidence = whole::without_digests(&stored).unwrap();
        report::write_evidence(&mut Folder::make(folder.path()).unwrap(), &evidence).unwrap();
        let output = judge(folder.path());
        let text = String::from_utf8(output.stdout).unwrap();
        assert_eq!(output.status.code(), Some(code), "{seed}: {text}");
        assert!(text.contains(expected), "{seed}: {text}");
        // Nothing but the evidence and the mark of the folder are there afterwards.
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }
}

#[test]
fn a_directory_without_evidence_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let output = judge(folder.path());
    assert_eq!(output.status.code(), Some(2));
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(
        stderr.starts_with("judge: ") && stderr.contains("no evidence.json here"),
        "{stderr}"
    );
}
