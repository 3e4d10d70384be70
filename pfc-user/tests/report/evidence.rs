//! Evidence is read back as it was recorded, or refused.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::Command;

use lzma_rust2::XzReader;
use validator::case::{CaseResult, Verdict};
use validator::cases;
use validator::evidence::{CaseEvidence, Evidence, digest};
use validator::report;

use super::samples::evidence;

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
    let other =
        whole
            .replacen("\"schema\":2", "\"schema\":7", 1)
            .replacen("\"seconds\"", "\"secs\"", 1);
    assert_eq!(
        refusal(Some(&other)),
        "DIR/evidence.json: layout 7 of validator 1.2.3; this version reads layouts 1 to 2"
    );
    assert_eq!(
        refusal(Some("{}")),
        "DIR/evidence.json: is no evidence of a run: missing field `schema` at line 1 column 2"
    );
    let changed = refusal(Some(&whole.replacen("\"interrupted\"", "\"stopped\"", 1)));
    assert!(
        changed
            .starts_with("DIR/evidence.json: is no evidence of a run: missing field `interrupted`"),
        "{changed}"
    );
}

/// Evidence of the corpus: the RC case on a good device.
fn recorded() -> Evidence {
    let corpus =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/verdicts/corpus/evidence/rc.jsonl.xz");
    let mut lines = BufReader::new(XzReader::new(fs::File::open(corpus).unwrap(), false)).lines();
    let line: serde_json::Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
    let case: CaseEvidence = serde_json::from_value(line["evidence"].clone()).unwrap();
    Evidence {
        planned: vec![case.case.clone()],
        cases: vec![case],
        ..evidence()
    }
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
    report::write_evidence(dir.path(), &recorded()).unwrap();
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
    // What makes no sense to its case is no error among the verdicts.
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

#[test]
fn evidence_without_a_plan_is_shown_and_its_passes_are_inconclusive() {
    let dir = tempfile::tempdir().unwrap();
    report::write_evidence(dir.path(), &recorded()).unwrap();
    let path = dir.path().join("evidence.json");
    let mut old: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    old["schema"] = serde_json::json!(1);
    for key in ["planned", "digests"] {
        old.as_object_mut().unwrap().remove(key);
    }
    old["cases"][0].as_object_mut().unwrap().remove("planned");
    fs::write(&path, old.to_string()).unwrap();
    let (code, shown, _) = says("judge", dir.path());
    assert_eq!(code, Some(3), "{shown}");
    assert!(shown.contains("recorded without a plan"), "{shown}");
    let evidence = report::read_evidence(dir.path()).unwrap();
    let passes = |results: &[CaseResult]| {
        let checks = results.iter().flat_map(|result| &result.checks);
        checks
            .filter(|check| check.verdict == Verdict::Pass)
            .count()
    };
    assert!(passes(&cases::judge(&recorded())) > 0);
    assert_eq!(passes(&cases::judge(&evidence)), 0);
}
