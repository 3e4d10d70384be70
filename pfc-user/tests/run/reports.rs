//! A run's reports for people and programs, and those made of its evidence later.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use validator::cases;
use validator::evidence::Repetition;
use validator::report;

use crate::common;
use crate::lab::{CASES, Lab, cases_of, of_repository};
use crate::outcome::{Outcome, Report, word_of};

/// Class, name and verdict of each test case in a junit.xml, read without the crate that wrote it.
fn junit(out: &Path) -> BTreeSet<(String, String, String)> {
    let text = fs::read_to_string(out.join("junit.xml")).unwrap();
    let attribute = |element: &str, name: &str| {
        let (_, rest) = element.split_once(&format!(" {name}=\""))?;
        Some(rest.split_once('"')?.0.to_owned())
    };
    let of = |case: &str| {
        let (head, body) = case.split_once('>').unwrap();
        let verdict =
            attribute(body.split("</testcase>").next().unwrap(), "type").unwrap_or("pass".into());
        (
            attribute(head, "classname").unwrap(),
            attribute(&format!(" {head}"), "name").unwrap(),
            verdict,
        )
    };
    text.split("<testcase ").skip(1).map(of).collect()
}

#[test]
fn root_all_reports_say_the_same_now_and_later() {
    let Some(lab) = Lab::new("root_all_reports_say_the_same_now_and_later") else {
        return;
    };
    let plan = lab.file("plan.toml", &cases_of(&CASES));
    let testbed = of_repository("configs/testbeds/sim.toml");
    let run = lab.start(&format!(
        "--testbed {testbed} --plan {plan} --format json --set testbed.dut.faults=[\"corrupts\"]"
    ));
    let ended = Outcome::of(run.wait_with_output().unwrap());
    assert_eq!(ended.code, Some(1));
    let out = lab.out();
    let files = ["report.json", "junit.xml"].map(|name| out.join(name));
    let written = files
        .each_ref()
        .map(|file| fs::read_to_string(file).unwrap());
    assert_eq!(written[0], ended.stdout);
    let outcomes = Report::read(&out).outcomes();
    assert!(outcomes.iter().any(|(.., verdict)| verdict == "fail"));
    assert_eq!(junit(&out), outcomes);

    let judged = lab.run(&format!("judge {} --format json", out.display()));
    assert_eq!((judged.code, judged.stdout), (Some(1), written[0].clone()));

    files.iter().for_each(|file| fs::remove_file(file).unwrap());
    fs::remove_dir_all(out.join("captures")).unwrap();
    let rendered = lab.run(&format!("report {}", out.display()));
    assert_eq!(rendered.code, Some(1));
    assert_eq!(
        files
            .each_ref()
            .map(|file| fs::read_to_string(file).unwrap()),
        written
    );
    let told = cases::all().into_iter().filter(|case| {
        let of_family = case.id.strip_prefix("pfc.");
        of_family.is_some_and(|id| CASES.contains(&word_of(id)))
    });
    let told: Vec<_> = told.map(|case| case.id).collect();
    assert_eq!(told.len(), CASES.len());
    for id in told {
        assert!(rendered.stdout.contains(id), "{}", rendered.stdout);
    }

    if !common::need_tool("root_all_reports_say_the_same_now_and_later", "tshark") {
        return;
    }
    // The corrupt frames, and others caused by the DUT; as many as were kept.
    let evidence = report::read_evidence(&out).unwrap();
    let kept: usize = evidence
        .cases
        .iter()
        .flat_map(|case| &case.repetitions)
        .filter_map(Repetition::pfc)
        .map(|measured| measured.offences.len())
        .sum();
    let mut decoded = 0;
    for capture in fs::read_dir(out.join("captures")).unwrap() {
        let path = capture.unwrap().path();
        let output = Command::new("tshark")
            .arg("-r")
            .arg(&path)
            .args(["-T", "fields", "-e", "frame.number"])
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "{}: {}",
            path.display(),
            String::from_utf8_lossy(&output.stderr)
        );
        decoded += String::from_utf8(output.stdout).unwrap().lines().count();
    }
    assert!(kept > 0);
    assert_eq!(decoded, kept);
}

#[test]
fn root_evidence_that_is_missing_or_cut_short_is_refused() {
    let Some(lab) = Lab::new("root_evidence_that_is_missing_or_cut_short_is_refused") else {
        return;
    };
    let out = lab.out();
    for command in ["judge", "report"] {
        fs::create_dir_all(&out).unwrap();
        let refused = lab.run(&format!("{command} {}", out.display()));
        refused.assert_refused(&format!(
            "{}: no evidence.json here; expected a directory that `validator run --out` wrote",
            out.display()
        ));
        fs::write(
            out.join("evidence.json"),
            "{\"schema\":1,\"version\":\"0.1.0\",\"cases\":[",
        )
        .unwrap();
        let refused = lab.run(&format!("{command} {}", out.display()));
        assert_eq!((refused.code, refused.stdout.as_str()), (Some(2), ""));
        assert!(
            refused.stderr.contains("evidence.json: cut short (EOF"),
            "{}",
            refused.stderr
        );
        assert_eq!(fs::read_dir(&out).unwrap().count(), 1, "no report");
        fs::remove_dir_all(&out).unwrap();
    }
}

#[test]
fn root_every_case_is_listed_and_a_dry_run_touches_nothing() {
    let Some(lab) = Lab::new("root_every_case_is_listed_and_a_dry_run_touches_nothing") else {
        return;
    };
    let list: serde_json::Value =
        serde_json::from_str(&lab.run("list --format json").stdout).unwrap();
    let text = lab.run("list").stdout;
    for case in cases::all() {
        assert!(
            list.to_string().contains(&format!("\"{}\"", case.id)),
            "{list}"
        );
        assert!(text.contains(case.id), "{text}");
    }
    let testbed = of_repository("configs/testbeds/sim.toml");
    let dry = lab.run(&format!(
        "run --testbed {testbed} --plan smoke --dry-run --out {}",
        lab.out().display()
    ));
    assert_eq!((dry.code, dry.stderr.as_str()), (Some(0), ""));
    for step in [
        "pfc.pause-single-lossless [lossless 3]",
        "storm: from the rx port send PFC for priority 3",
        "802.3x PAUSE",
        "probe:",
        "drain:",
    ] {
        assert!(dry.stdout.contains(step), "{step}: {}", dry.stdout);
    }
    assert!(!lab.out().exists());
    lab.assert_nothing_is_left();
}
