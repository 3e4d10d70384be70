//! `validator report`: two runs compared, and the page written alone.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use validator::report::{self, Folder};
use validator_core::cases;
use validator_core::evidence::CaseEvidence;

use super::samples::run;
use crate::common;
use crate::verdicts::corpus;

const PROGRAM: &str = env!("CARGO_BIN_EXE_validator");

/// Prints the mistakes of a file by a schema.
const VALIDATE: &str = r#"
import json, sys
from jsonschema import Draft202012Validator as Validator
schema, file = [json.load(open(name)) for name in sys.argv[1:]]
Validator.check_schema(schema)
for error in Validator(schema).iter_errors(file):
    print("/".join(map(str, error.absolute_path)) + ": " + error.message[:300])
"#;

/// Stores a run of `rc.c09-142-01` on a simulated requester, and returns its directory.
fn store(folder: &Path, device: &str) -> PathBuf {
    let dir = folder.join(device);
    store_cases(&dir, vec![corpus::recorded("rc", "rc.c09-142-01", device)]);
    dir
}

fn store_cases(dir: &Path, cases: Vec<CaseEvidence>) {
    report::write_evidence(&mut Folder::make(dir).unwrap(), &run(cases)).unwrap();
}

fn report(arguments: &[&Path]) -> Output {
    let mut command = Command::new(PROGRAM);
    command.arg("report").args(arguments).output().unwrap()
}

fn compare(before: &Path, after: &Path, more: &[&str]) -> (Option<i32>, String) {
    let mut arguments = vec![Path::new("--compare"), before, after];
    arguments.extend(more.iter().map(Path::new));
    let output = report(&arguments);
    let text = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(text).unwrap())
}

#[test]
fn a_check_that_is_worse_is_a_regression_and_a_better_one_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let (good, bad) = (
        store(folder.path(), "good"),
        store(folder.path(), "one-retry-less"),
    );

    let (code, text) = compare(&good, &bad, &[]);
    assert_eq!(code, Some(1), "{text}");
    for expected in [
        "before  pass,",
        "after   fail,",
        "\nworse\n  rc.c09-142-01 ",
        "pass -> fail",
        "\nfigures\n",
        "regression: ",
    ] {
        assert!(text.contains(expected), "{expected:?} in {text}");
    }

    let (code, text) = compare(&bad, &good, &[]);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("\nother changes of verdicts\n"), "{text}");
    assert!(
        text.ends_with("no regression: no result is worse (exit code 0)\n"),
        "{text}"
    );

    let (code, text) = compare(&good, &good, &[]);
    assert_eq!(code, Some(0), "{text}");
    assert!(
        text.ends_with("\nno regression: every result is as it was (exit code 0)\n"),
        "{text}"
    );
}

#[test]
fn a_run_is_as_it_was_beside_itself() {
    let folder = tempfile::tempdir().unwrap();
    for device in ["good", "dies-after-pause"] {
        let dir = folder.path().join(device);
        let case = corpus::recorded("pfc", "pfc.pause-single-lossless", device);
        store_cases(&dir, vec![case]);
        let evidence = report::read_evidence(&dir).unwrap();
        let result = cases::judge_case(&evidence.cases[0]);
        let mut names: Vec<_> = result
            .figures
            .iter()
            .map(|figure| (&figure.repetition, &figure.name))
            .collect();
        let all = names.len();
        names.sort();
        names.dedup();
        // Such as the waits after the bursts of a probe, where not all of it came.
        assert_eq!(names.len() < all, device != "good");
        let (code, text) = compare(&dir, &dir, &[]);
        assert_eq!(code, Some(0), "{text}");
        assert!(!text.contains("\nfigures\n"), "{text}");
    }
}

#[test]
fn a_check_that_the_second_run_lacks_is_a_regression() {
    let folder = tempfile::tempdir().unwrap();
    let good = store(folder.path(), "good");
    let evidence = report::read_evidence(&good).unwrap();
    let mut case = evidence.cases[0].clone();
    case.repetitions.pop();
    case.planned.pop();
    case.attempts -= 1;
    let less = folder.path().join("less");
    store_cases(&less, vec![case]);
    let (code, text) = compare(&good, &less, &[]);
    assert_eq!(code, Some(1), "{text}");
    let missing = "\nmissing in the second run\n  rc.c09-142-01 [";
    assert!(text.contains(missing), "{text}");
    assert!(text.contains("results are missing (exit code 1)"), "{text}");
    let (code, text) = compare(&less, &good, &[]);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("\nonly in the second run\n"), "{text}");
}

#[test]
fn runs_without_a_check_in_common_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let good = store(folder.path(), "good");
    let empty = folder.path().join("empty");
    store_cases(&empty, Vec::new());
    let (code, text) = compare(&good, &empty, &[]);
    assert_eq!(code, Some(2), "{text}");
    assert!(
        text.contains("the first has rc.c09-142-01, the second no case"),
        "{text}"
    );
    let (code, text) = compare(&good, folder.path(), &[]);
    assert_eq!(code, Some(2), "{text}");
    assert!(text.contains("no evidence.json here"), "{text}");
}

#[test]
fn programs_read_the_comparison_by_its_schema() {
    const NAME: &str = "programs_read_the_comparison_by_its_schema";
    if !common::need_tool(NAME, "jsonschema") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (good, bad) = (
        store(folder.path(), "good"),
        store(folder.path(), "one-retry-less"),
    );
    let (code, text) = compare(&good, &bad, &["--format", "json"]);
    assert_eq!(code, Some(1), "{text}");
    let found: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(found["regression"], true);
    assert_eq!(found["before"]["verdict"], "pass");
    assert!(!found["figures"].as_array().unwrap().is_empty());

    let file = folder.path().join("compared.json");
    let schema = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/schemas/compare.schema.json");
    let mistakes = |text: &str| {
        fs::write(&file, text).unwrap();
        let mut python = Command::new(common::PYTHON);
        let output = python
            .args(["-c", VALIDATE])
            .arg(&schema)
            .arg(&file)
            .output();
        String::from_utf8(output.unwrap().stdout).unwrap()
    };
    assert_eq!(mistakes(&text), "");
    let other = mistakes(&text.replacen("\"regression\"", "\"progress\"", 1));
    assert!(
        other.contains("'regression' is a required property"),
        "{other}"
    );
}

#[test]
fn the_page_is_written_alone_where_it_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let good = store(folder.path(), "good");
    let page = folder.path().join("page.html");
    let output = report(&[&good, Path::new("--html"), &page]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let text = fs::read_to_string(&page).unwrap();
    assert!(text.starts_with("<!DOCTYPE html>") && text.ends_with("</html>\n"));
    assert!(text.contains("rc.c09-142-01"));
    let names = fs::read_dir(&good).unwrap().count();
    assert_eq!(
        names, 2,
        "nothing but the evidence and the list of files is there"
    );

    let output = report(&[&good]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(fs::read_to_string(good.join("report.html")).unwrap(), text);
}

#[test]
fn a_directory_that_cannot_be_written_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let good = store(folder.path(), "good");
    let output = report(&[
        &good,
        Path::new("--html"),
        &folder.path().join("no/page.html"),
    ]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.contains("no/page.html: cannot be written"), "{error}");
}
