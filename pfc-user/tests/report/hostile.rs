//! Names and links that somebody else made lead nowhere and steer nothing.

use std::fs;
use std::os::unix::fs::symlink;

use quick_junit::Report;
use validator::report::{self, Folder, text};
use validator_core::evidence::{CaseEvidence, Evidence, SCHEMA};
use validator_core::verdict::{CaseResult, CheckResult, Exit, Verdict};

use super::samples::{FRAMES, check, every_verdict, evidence, files, repetition, result};

/// Names of cases and repetitions that try to leave the folder, to collide, and to steer a
/// terminal.
const HOSTILE: [(&str, &str); 8] = [
    ("../../outside", "../../outside"),
    ("/etc/outside", "a"),
    ("pfc.x", "a b"),
    ("pfc.x", "a/b"),
    ("PFC.x", "a\0b"),
    ("..", ".."),
    ("", "\u{1b}[2J\u{9b}31m"),
    ("pfc.y\nverdict: pass", "\u{202e}\r\n\u{7}"),
];

fn hostile() -> Evidence {
    let case =
        |(case, name): &(&str, &str)| CaseEvidence::of(case, vec![repetition(name, &FRAMES)]);
    let mut evidence = evidence();
    evidence.cases = HOSTILE.iter().map(case).collect();
    evidence.version = "1\u{1b}c".to_owned();
    evidence.testbed.name = "sim\u{1b}]0;title\u{7}\nverdict: pass".to_owned();
    evidence.host.kernel = "6\u{8}".to_owned();
    evidence
}

/// A failed check of each of them, with their names wherever a report has text.
fn hostile_results() -> Vec<CaseResult> {
    let of = |(case, name): &(&str, &str)| {
        let failed = CheckResult {
            check: name.to_string(),
            ..check(name, name, Verdict::Fail)
        };
        let mut result = result(case, name, vec![failed]);
        result.figures[0].repetition = name.to_string();
        result.figures[0].name = name.to_string();
        result
    };
    HOSTILE.iter().map(of).collect()
}

#[test]
fn names_in_evidence_lead_to_no_file_outside_and_to_one_file_each() {
    let folder = tempfile::tempdir().unwrap();
    // Deep enough that `../../outside` would still be below `folder`.
    let dir = folder.path().join("a/b/c/out");
    report::write(&dir, &hostile(), &hostile_results(), Exit::Failed).unwrap();
    let expected = [
        "captures/etc-outside-a.pcapng",
        "captures/outside-..-..-outside.pcapng",
        "captures/pfc.x-a-b-2.pcapng",
        "captures/PFC.x-a-b-3.pcapng",
        "captures/pfc.x-a-b.pcapng",
        "captures/pfc.y-verdict-pass.pcapng",
        "captures/2J-31m.pcapng",
        "captures/unnamed.pcapng",
        "evidence.json",
        "junit.xml",
        "report.html",
        "report.json",
        "validator.txt",
    ];
    let mut expected: Vec<String> = expected.map(|file| format!("a/b/c/out/{file}")).to_vec();
    expected.sort();
    assert_eq!(files(folder.path()), expected);
}

#[test]
fn links_among_somebody_s_results_lead_nowhere() {
    let folder = tempfile::tempdir().unwrap();
    let (dir, elsewhere) = (folder.path().join("out"), folder.path().join("elsewhere"));
    for made in [&dir, &elsewhere] {
        fs::create_dir(made).unwrap();
    }
    let (kept, precious) = (elsewhere.join("kept.pcapng"), elsewhere.join("precious"));
    for file in [&kept, &precious] {
        fs::write(file, "kept").unwrap();
    }
    // By its process id the name of the file that becomes `report.json` can be foreseen.
    let temporary = dir.join(format!(".report.json.{}", std::process::id()));
    symlink(&precious, dir.join("junit.xml")).unwrap();
    symlink(&precious, &temporary).unwrap();
    symlink(&elsewhere, dir.join("captures")).unwrap();
    // As `validator report` does, which has read evidence there.
    let mut folder = Folder::of_evidence(&dir).unwrap();
    let written = report::render(&mut folder, &evidence(), &[every_verdict()], Exit::Failed);
    let error = written.unwrap_err().to_string();
    let says = "captures: cannot be written: expected a directory, found a symbolic link";
    assert!(error.contains(says), "{error}");
    assert_eq!(files(&elsewhere), ["kept.pcapng", "precious"]);
    for file in [&kept, &precious] {
        assert_eq!(fs::read_to_string(file).unwrap(), "kept");
    }
    assert!(
        fs::read_to_string(dir.join("report.json"))
            .unwrap()
            .starts_with('{')
    );
}

#[test]
fn names_in_evidence_steer_no_terminal_and_forge_no_line() {
    let steers = |text: &str| text.chars().any(|c| c.is_control() && c != '\n');
    let summary = text::summary(&hostile(), &hostile_results(), Exit::Failed, false);
    assert!(
        !steers(&summary) && !summary.contains('\u{202e}'),
        "{summary:?}"
    );
    let verdicts = summary.lines().filter(|line| line.starts_with("verdict:"));
    assert_eq!(verdicts.count(), 1, "{summary}");
    let mut xml = Vec::new();
    report::junit::write(&mut xml, &hostile(), &hostile_results()).unwrap();
    let xml = String::from_utf8(xml).unwrap();
    assert!(!steers(&xml) && !xml.contains('\u{202e}'), "{xml:?}");
    let suites = Report::deserialize_from_str(&xml).unwrap().test_suites;
    assert_eq!(suites.len(), HOSTILE.len());
}

#[test]
fn a_version_in_evidence_of_another_layout_steers_no_terminal() {
    let dir = tempfile::tempdir().unwrap();
    let next = SCHEMA + 1;
    let evidence = format!(r#"{{"schema": {next}, "version": "1\u001b[2J"}}"#);
    fs::write(dir.path().join("evidence.json"), evidence).unwrap();
    let error = report::read_evidence(dir.path()).unwrap_err().to_string();
    assert!(error.contains("validator 1\u{fffd}[2J;"), "{error:?}");
}
