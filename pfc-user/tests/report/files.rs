//! Files that a run leaves in its folder, and what it says where it cannot.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use validator::report::{self, Folder};
use validator_core::evidence::{Evidence, Repetition};
use validator_core::plan::Nanos;
use validator_core::verdict::Exit;

use super::samples::{every_verdict, evidence, repetition};

#[test]
fn what_is_written_is_read_again() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().join("new/out");
    let evidence = || Evidence {
        interrupted: true,
        ..evidence()
    };
    report::write(&dir, &evidence(), &[every_verdict()], Exit::Failed).unwrap();
    assert_eq!(report::read_evidence(&dir).unwrap(), evidence());
    let mut names: Vec<_> = fs::read_dir(&dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(
        names,
        [
            "captures",
            "evidence.json",
            "junit.xml",
            "report.html",
            "report.json",
            "validator.txt"
        ]
    );

    let mut without_frames = evidence();
    without_frames.cases[0].repetitions.remove(0);
    without_frames.cases[0].planned.remove(0);
    without_frames.cases[0].attempts -= 1;
    report::write(&dir, &without_frames, &[every_verdict()], Exit::Failed).unwrap();
    assert_eq!(report::read_evidence(&dir).unwrap(), without_frames);
    assert_eq!(
        fs::read_dir(dir.join("captures")).unwrap().count(),
        0,
        "captures of the earlier run are gone"
    );
}

#[test]
fn the_page_shows_attempts_by_their_number_wherever_they_stand() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("report.html");
    let page = |numbers: [u32; 2]| {
        let mut evidence = evidence();
        evidence.cases[0].repetitions = numbers
            .map(|number| {
                let mut attempt = repetition("lossless 3", &[]);
                let Repetition::Pfc(found) = &mut attempt else {
                    unreachable!("the helper makes repetitions of PFC");
                };
                found.attempt = number;
                found.sender.max_burst = Nanos::from(number);
                attempt
            })
            .into();
        report::write_page(&path, &evidence, &[every_verdict()], Exit::Failed).unwrap();
        fs::read_to_string(&path).unwrap()
    };
    let text = page([1, 2]);
    assert!(text.find(">attempt 1<").unwrap() < text.find(">attempt 2<").unwrap());
    assert_eq!(page([2, 1]), text);
    // One that was left out is not counted over.
    assert!(page([1, 3]).contains(">attempt 3<"));
}

#[test]
fn a_report_that_cannot_be_written_is_an_error_that_names_the_file() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("file"), "").unwrap();
    let error = report::write(
        &dir.path().join("file/out"),
        &evidence(),
        &[],
        Exit::Undecided,
    )
    .unwrap_err()
    .to_string();
    assert!(
        error.ends_with("file/out: cannot be read: Not a directory (os error 20)"),
        "{error}"
    );

    let mut folder = Folder::make(&dir.path().join("out")).unwrap();
    folder.write("report.json", |_| Ok(())).unwrap();
    let way = dir.path().join("out/report.json");
    fs::remove_file(&way).unwrap();
    fs::create_dir(&way).unwrap();
    let error = report::render(&mut folder, &evidence(), &[], Exit::Undecided)
        .unwrap_err()
        .to_string();
    assert!(
        error.ends_with("out/report.json: cannot be written: Is a directory (os error 21)"),
        "{error}"
    );
    let left: Vec<_> = fs::read_dir(dir.path().join("out"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(
        left.len(),
        2,
        "the list of files and the directory in the way, nothing half written: {left:?}"
    );
}

/// Runs a MAD case with `--force` on a folder `out` in which the shell has done `before`.
fn run_after(before: &str, folder: &Path) -> Output {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let arguments = "run --plan mad --case mad.c14-024-10-01 --out out --force --testbed";
    Command::new("sh")
        .args(["-c", &format!(r#"{before} && exec "$0" "$@""#)])
        .arg(env!("CARGO_BIN_EXE_validator"))
        .args(arguments.split(' '))
        .arg(repository.join("configs/testbeds/sim.toml"))
        .current_dir(folder)
        .env("VALIDATOR_JOURNAL", folder.join("journal"))
        .output()
        .unwrap()
}

#[test]
fn where_evidence_cannot_be_written_the_verdict_is_shown_all_the_same() {
    let folder = tempfile::tempdir().unwrap();
    // The file that becomes the evidence once it is complete has the number of the process, which
    // stays that of the shell.
    let output = run_after("mkdir -p out/.evidence.json.$$", folder.path());
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(
        error.contains("evidence.json: cannot be written: File exists"),
        "{error}"
    );
    let shown = String::from_utf8(output.stdout).unwrap();
    assert!(
        shown.lines().any(|line| line.starts_with("verdict: ")),
        "{shown}"
    );
    let report = fs::read_to_string(folder.path().join("out/report.json")).unwrap();
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    assert_eq!(report["exit_code"], 2);
}

#[test]
fn what_stands_in_the_way_of_results_is_refused_before_anything_is_measured() {
    let folder = tempfile::tempdir().unwrap();
    let output = run_after("mkdir -p out/report.json", folder.path());
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(
        (output.status.code(), error.as_str()),
        (
            Some(2),
            "validator: out/report.json: cannot be written: expected a file, found a directory; \
             remove it, or name another folder with --out\n"
        )
    );
    assert!(output.stdout.is_empty());
    let left = fs::read_dir(folder.path().join("out")).unwrap().count();
    assert_eq!(left, 1, "nothing is written beside it");
}
