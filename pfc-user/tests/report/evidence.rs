//! Evidence is read back as it was recorded, or refused.

use std::fs;
use std::path::Path;
use std::process::Command;

use validator::report::{self, Folder};
use validator_core::evidence::{Evidence, SCHEMA, digest, numbers};

use super::samples::{evidence, run};
use crate::common;
use crate::verdicts::corpus;

#[test]
fn evidence_that_cannot_be_used_is_refused_with_the_reason() {
    let dir = tempfile::tempdir().unwrap();
    let refusal = |content: Option<&str>| {
        let path = dir.path().join("evidence.json");
        if let Some(content) = content {
            fs::write(path, content).unwrap();
        }
        report::read_evidence(dir.path())
            .unwrap_err()
            .to_string()
            .replace(dir.path().to_str().unwrap(), "DIR")
    };
    assert_eq!(
        refusal(None),
        "DIR: no evidence.json here; expected a directory that `validator run --out` wrote"
    );
    let whole = serde_json::to_string(&evidence()).unwrap();
    let cut = refusal(Some(&whole[..whole.len() / 2]));
    assert!(
        cut.starts_with("DIR/evidence.json: cut short (EOF while parsing")
            && cut.ends_with("copy it again from where it was written"),
        "{cut}"
    );
    let schema = |number: u32| format!("\"schema\":{number}");
    let next = SCHEMA + 1;
    let other =
        whole
            .replacen(&schema(SCHEMA), &schema(next), 1)
            .replacen("\"seconds\"", "\"secs\"", 1);
    assert_eq!(
        refusal(Some(&other)),
        format!(
            "DIR/evidence.json: layout {next} of validator 1.2.3; expected layout {SCHEMA}: judge \
             it with that version, or measure again"
        )
    );
    assert_eq!(
        refusal(Some("{}")),
        "DIR/evidence.json: is no evidence of a run: missing field `schema` at line 1 column 2"
    );
    let changed = refusal(Some(&whole.replacen("\"interrupted\"", "\"stopped\"", 1)));
    let expected = "DIR/evidence.json: the evidence is not whole, so that there is no verdict: \
                    cases[0].repetitions[0]: missing field `interrupted`";
    assert!(changed.starts_with(expected), "{changed}");
}

/// Evidence of the corpus: the RC case on a good device.
fn recorded() -> Evidence {
    run(vec![corpus::recorded("rc", "rc.c09-142-01", "good")])
}

/// Exit code of `validator COMMAND DIR` and what it said, on standard output and standard error.
fn says(command: &str, dir: &Path) -> (Option<i32>, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_validator"))
        .arg(command)
        .arg(dir)
        .output()
        .unwrap();
    let text = |octets| String::from_utf8(octets).unwrap();
    (
        output.status.code(),
        text(output.stdout),
        text(output.stderr),
    )
}

#[test]
fn evidence_that_is_not_whole_is_refused_without_a_verdict() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("evidence.json");
    report::write_evidence(&mut Folder::make(dir.path()).unwrap(), &recorded()).unwrap();
    let whole: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    assert_eq!(says("judge", dir.path()).0, Some(0));
    let refused = |change: &dyn Fn(&mut serde_json::Value), sealed: bool| {
        let mut changed = whole.clone();
        change(&mut changed);
        if sealed {
            changed["digests"] = serde_json::to_value(digest::of(&changed)).unwrap();
        }
        fs::write(&path, changed.to_string()).unwrap();
        let (code, shown, error) = says("judge", dir.path());
        assert_eq!((code, shown.as_str()), (Some(2), ""), "{error}");
        assert_eq!(says("report", dir.path()), (code, shown, error.clone()));
        assert!(!dir.path().join("report.json").exists());
        error
    };
    let change = |e: &mut serde_json::Value| {
        e["cases"][0]["repetitions"]
            .as_array_mut()
            .unwrap()
            .remove(1);
    };
    let error = refused(&change, false);
    assert!(
        error.contains("is not whole, so that there is no verdict: cases[0]"),
        "{error}"
    );
    let error = refused(&change, true);
    let expected = "`retry 0, time-out 18, PMTU 1024` was planned, and is missing";
    assert!(error.contains(expected), "{error}");
    let error = refused(&|e| e["cases"] = serde_json::json!([]), true);
    assert!(
        error.contains("cases: planned were rc.c09-142-01; found "),
        "{error}"
    );
    let error = refused(
        &|e| {
            drop(
                e["cases"][0]["repetitions"][0]
                    .as_object_mut()
                    .unwrap()
                    .remove("flush"),
            )
        },
        true,
    );
    assert!(
        error.contains("cases[0].repetitions[0].flush: is missing"),
        "{error}"
    );
    // A plan that makes no sense to its case is no error among the verdicts.
    let senseless = |e: &mut serde_json::Value| {
        for part in ["planned", "repetitions"] {
            e["cases"][0][part][0]["plan"]["timeout"] = 0.into();
        }
    };
    let error = refused(&senseless, true);
    assert!(
        error.contains("cases[0].repetitions[0] (rc.c09-142-01, ")
            && error.contains("): expected a time-out of 1 to 31, found 0"),
        "{error}"
    );
}

/// A whole file, in which times, keys and texts are such as other programs change.
fn store_large(dir: &Path) -> Evidence {
    let mut evidence = recorded();
    evidence.host.clock = 1_764_092_728_123_456_789;
    evidence.testbed.name = "18446744073709551615".into();
    evidence.seconds = 10.0;
    report::write_evidence(&mut Folder::make(dir).unwrap(), &evidence).unwrap();
    evidence
}

/// All numbers of a file as doubles.
fn doubles(value: &serde_json::Value, found: &mut Vec<f64>) {
    match value {
        serde_json::Value::Number(number) => found.extend(number.as_f64()),
        serde_json::Value::Array(items) => items.iter().for_each(|item| doubles(item, found)),
        serde_json::Value::Object(fields) => fields.values().for_each(|item| doubles(item, found)),
        _ => {}
    }
}

#[test]
fn evidence_that_jq_has_rewritten_is_judged_alike() {
    let test = "evidence_that_jq_has_rewritten_is_judged_alike";
    if !common::need_tool(test, "jq") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let written = store_large(dir.path());
    let path = dir.path().join("evidence.json");
    let before = says("judge", dir.path());
    assert_eq!(before.0, Some(0));
    let rewritten = Command::new("jq")
        .args([".", "evidence.json"])
        .current_dir(&dir)
        .output();
    let rewritten = rewritten.unwrap().stdout;
    assert_ne!(fs::read(&path).unwrap(), rewritten);
    fs::write(&path, rewritten).unwrap();
    assert_eq!(report::read_evidence(dir.path()).unwrap(), written);
    assert_eq!(says("judge", dir.path()), before);
}

#[test]
fn no_number_in_evidence_is_beyond_a_double() {
    let dir = tempfile::tempdir().unwrap();
    store_large(dir.path());
    let path = dir.path().join("evidence.json");
    let stored: serde_json::Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    assert_eq!(stored["host"]["clock"], "1764092728123456789");
    assert_eq!(stored["testbed"]["name"], "\\18446744073709551615");
    let mut found = Vec::new();
    doubles(&stored, &mut found);
    assert!(found.len() > 100);
    assert!(
        found
            .iter()
            .all(|number| number.abs() <= numbers::MAX as f64)
    );
}
