//! No verdict is lost on its way into a report, and what was recorded is read back as it was.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use lzma_rust2::XzReader;
use pfc_ebpf::abi::account::OffenceKind;
use pfc_ebpf::stamp::Phase;
use pfc_ebpf::units::{Dscp, LineRate, Priority, Quanta};
use quick_junit::{NonSuccessKind, Report, TestCaseStatus};
use validator::case::{Assertion, CaseResult, CheckResult, Exit, Figure, Verdict};
use validator::cases;
use validator::evidence::pfc::{
    Arrivals, Counting, Departure, Gap, GapHistogram, Instruments, LeftOut, Offence, PfcEvidence,
    PortReceived, Ports, SenderReport, StallsNoted, StormReport, Windows,
};
use validator::evidence::{CaseEvidence, Evidence, Host, Repetition, SCHEMA, Testbed, digest};
use validator::plan::{
    Durations, FlowPlan, Limits, Nanos, RepetitionPlan, Role, StormKind, StormPlan,
};
use validator::report::{self, text};

use crate::common;

const ALL: [Verdict; 6] = [
    Verdict::Pass,
    Verdict::Fail,
    Verdict::Inconclusive,
    Verdict::Error,
    Verdict::NotApplicable,
    Verdict::Skipped,
];

/// Two pause frames, as a MAC sent them: PFC for priority 3, and 802.3x.
const FRAMES: [(&str, &str); 2] = [
    (
        "tx",
        "0180c20000015a5152535455880801010008000000000000a00300000000000000000000000000000000000000000000000000000000000000000000",
    ),
    (
        "rx",
        "0180c20000015a5152535455880800011234000000000000000000000000000000000000000000000000000000000000000000000000000000000000",
    ),
];

fn repetition(name: &str, frames: &[(&str, &str)]) -> Repetition {
    let offence = |(index, (port, octets)): (usize, &(&str, &str))| Offence {
        port: port.to_string(),
        time: 5_000_000_123 - index as u64,
        kind: OffenceKind::OwnControl,
        length: 60,
        octets: octets.to_string(),
    };
    Repetition::Pfc(Box::new(PfcEvidence {
        counting: Counting::default(),
        plan: RepetitionPlan {
            name: name.to_owned(),
            lossless: vec![],
            flows: vec![],
            storm: StormPlan {
                kind: StormKind::Pause,
                quanta: Quanta::MAX,
                interval: 10_000_000,
            },
            probe: None,
            probe_first: false,
            durations: Durations {
                baseline: 1,
                lead: 2,
                traffic: 3,
                tail: 4,
                resume: 5,
                drain_max: 6,
            },
        },
        attempt: 1,
        waits: Vec::new(),
        limits: Limits {
            line_rate: LineRate::from_bits_per_second(1_000_000_000).unwrap(),
            max_response: 1_000_000,
            headroom: 1 << 20,
            max_residence: 1_000_000_000,
            min_throughput: 0.99,
            max_burst: 4_000_000,
        },
        ports: Ports::default(),
        instruments: Instruments::default(),
        phases: vec![],
        not_begun: vec![Phase::Baseline, Phase::Storm, Phase::Drain, Phase::Resume],
        sender: SenderReport::default(),
        received: vec![],
        windows: Windows::default(),
        storm: None,
        probes: vec![],
        single_pauses: 0,
        arrivals: Arrivals::default(),
        tx_port: PortReceived::default(),
        rx_port: PortReceived::default(),
        mac: Vec::new(),
        offences: frames.iter().enumerate().map(offence).collect(),
        accounting: vec![],
        dut: None,
        hooks: vec![],
        interrupted: true,
    }))
}

fn evidence() -> Evidence {
    Evidence {
        schema: SCHEMA,
        version: "1.2.3".to_owned(),
        started: 1_800_000_000,
        seconds: 12.5,
        host: Host {
            kernel: "6.18.0".to_owned(),
            machine: "x86_64".to_owned(),
            cpus: 2,
            ..Host::default()
        },
        testbed: Testbed {
            name: "sim".to_owned(),
            dut: "sim".to_owned(),
            toml: "name = \"sim\"\n".to_owned(),
        },
        preflight: None,
        planned: vec!["pfc.x".to_owned()],
        cases: vec![CaseEvidence::of(
            "pfc.x",
            vec![
                repetition("lossless 3+4, storm on 3", &FRAMES),
                repetition("lossless 5", &[]),
            ],
        )],
        interrupted: false,
    }
}

fn check(check: &str, repetition: &str, verdict: Verdict) -> CheckResult {
    let actual = format!("actual of {check} in {repetition}");
    let reason = if verdict == Verdict::Pass {
        String::new()
    } else {
        format!("reason of {check} in {repetition}")
    };
    let assertions = vec![Assertion {
        what: "frames".to_owned(),
        expected: "none <of them>".to_owned(),
        actual,
        verdict,
    }];
    CheckResult {
        check: check.to_owned(),
        repetition: repetition.to_owned(),
        verdict,
        reason,
        assertions,
    }
}

fn result(case: &str, reason: &str, checks: Vec<CheckResult>) -> CaseResult {
    let verdict = Verdict::of_parts(checks.iter().map(|check| check.verdict));
    let figures = ["a", "b"].map(|name| Figure {
        repetition: name.to_owned(),
        name: "gap".to_owned(),
        value: format!("7 ms in {name}"),
    });
    CaseResult {
        case: case.to_owned(),
        verdict,
        reason: reason.to_owned(),
        checks,
        attempts: Vec::new(),
        assertions: Vec::new(),
        steps: Vec::new(),
        figures: figures.to_vec(),
    }
}

/// A case with one check for each verdict: all pass in repetition a, and each has its verdict in
/// repetition b.
fn every_verdict() -> CaseResult {
    let checks = ["a", "b"].iter().flat_map(|repetition| {
        ALL.iter().map(move |verdict| {
            check(
                &format!("is-{verdict}"),
                repetition,
                if *repetition == "a" {
                    Verdict::Pass
                } else {
                    *verdict
                },
            )
        })
    });
    result("pfc.x", "", checks.collect())
}

fn junit(results: &[CaseResult]) -> Report {
    let mut out = Vec::new();
    report::junit::write(&mut out, &evidence(), results).unwrap();
    Report::deserialize_from_str(&String::from_utf8(out).unwrap()).unwrap()
}

fn json(results: &[CaseResult], exit: Exit) -> serde_json::Value {
    let mut out = Vec::new();
    report::json::write(&mut out, &evidence(), results, exit).unwrap();
    serde_json::from_slice(&out).unwrap()
}

#[test]
fn the_summary_counts_every_verdict_and_gives_the_reason_of_each_that_is_no_pass() {
    let summary = text::summary(&evidence(), &[every_verdict()], Exit::Failed, false);
    assert!(
        summary.starts_with(
            "validator 1.2.3, testbed sim (sim), Linux 6.18.0 on x86_64 with 2 CPUs, 12.5 s\n"
        ),
        "{summary}"
    );
    for verdict in ALL {
        let row = summary
            .lines()
            .find(|line| line.starts_with(&format!("  is-{verdict} ")))
            .unwrap();
        let counts = row.trim_start().split_once(' ').unwrap().1.trim();
        let (reason, found) = (
            format!("reason of is-{verdict} in b"),
            format!("expected none <of them>, found actual of is-{verdict} in b"),
        );
        if verdict == Verdict::Pass {
            assert_eq!(counts, "pass 2/2");
            assert!(!summary.contains(&reason) && !summary.contains(&found));
        } else {
            let light = matches!(verdict, Verdict::Skipped | Verdict::NotApplicable);
            let expected = if light {
                format!("pass 1/2, {verdict} 1/2")
            } else {
                format!("{verdict} 1/2, pass 1/2")
            };
            assert_eq!(counts, expected);
            assert!(
                summary.contains(&reason) && summary.contains(&found),
                "{verdict} in\n{summary}"
            );
        }
    }
    assert!(
        summary.contains("pfc.x  fail\n")
            && summary.ends_with("verdict: fail (cases: fail 1/1; exit code 1)\n"),
        "{summary}"
    );
    assert!(
        summary
            .contains("figures of b (the other repetitions: report.json)\n      gap  7 ms in b\n"),
        "{summary}"
    );
    assert!(
        summary.lines().all(|line| line.chars().count() <= 100),
        "{summary}"
    );
}

#[test]
fn the_summary_ends_in_a_table_and_explains_what_did_not_pass_alone() {
    let of = |case: &str, verdict| result(case, "", vec![check("paused", "a", verdict)]);
    let results = [
        of("pfc.x", Verdict::Pass),
        of("mad.long-name", Verdict::Fail),
    ];
    let summary = text::summary(&evidence(), &results, Exit::Failed, false);
    let table = "\
        pfc.x          pass            checks: pass 1/1\n\
        mad.long-name  fail            checks: fail 1/1, pass 0/1\n\
        \n\
        verdict: fail (cases: fail 1/2, pass 1/2; exit code 1)\n";
    assert!(summary.ends_with(table), "{summary}");
    assert!(summary.contains("reason of paused in a"), "{summary}");
    assert!(!summary.contains("pfc.x  pass\n"), "{summary}");
    let verbose = text::verbose(&evidence(), &results, Exit::Failed, false);
    assert!(verbose.ends_with(table), "{verbose}");
    assert!(verbose.contains("pfc.x  pass\n"), "{verbose}");

    let mut many: Vec<_> = (0..30)
        .map(|number| of(&format!("pfc.{number}"), Verdict::Pass))
        .collect();
    many.push(of("pfc.bad", Verdict::Fail));
    let summary = text::summary(&evidence(), &many, Exit::Failed, false);
    let end = "pfc.bad  fail            checks: fail 1/1, pass 0/1\nand 30 more that pass\n\n";
    assert!(summary.contains(end), "{summary}");
}

#[test]
fn the_marks_of_tagged_frames_are_shown() {
    let priority = |number| Priority::new(number).unwrap();
    let flow = |id: u16, number: u8, dscp: u8, pcp| FlowPlan {
        id,
        role: Role::Test,
        priority: priority(number),
        dscp: Dscp::all().nth(dscp.into()).unwrap(),
        pcp: Some(priority(pcp)),
        rate: 1,
        length: 100,
    };
    let shown = |flows: Vec<FlowPlan>| {
        let mut evidence = evidence();
        if let Repetition::Pfc(pfc) = &mut evidence.cases[0].repetitions[1] {
            pfc.plan.flows = flows;
        }
        let summary = text::summary(&evidence, &[], Exit::Undecided, false);
        // A paragraph, up to the empty line.
        let marks = summary.split_once("\ntagged ")?.1.split("\n\n").next()?;
        Some(marks.split_whitespace().collect::<Vec<_>>().join(" "))
    };
    assert_eq!(shown(vec![]), None);
    let by_pcp = vec![flow(0, 3, 6, 3), flow(1, 4, 7, 4)];
    let expected = "the DUT is to go by the PCP; the flows have PCP/DSCP 3/6, 4/7";
    assert_eq!(shown(by_pcp).as_deref(), Some(expected));
    let by_dscp = (0..9).map(|id| flow(id, 3, 3, 6)).collect();
    let found = shown(by_dscp).unwrap();
    assert!(
        found.starts_with("the DUT is to go by the DSCP;"),
        "{found}"
    );
    assert!(found.ends_with("6/3, ..."), "{found}");
}

#[test]
fn what_is_the_same_in_several_repetitions_is_said_once() {
    let mut checks: Vec<_> = ["a", "b", "c"]
        .map(|repetition| check("paused", repetition, Verdict::Fail))
        .to_vec();
    checks.extend(["paused", "resume"].map(|name| check(name, "d", Verdict::Inconclusive)));
    checks.push(check("xon", "d", Verdict::Pass));
    for check in &mut checks {
        check.reason = "the same".to_owned();
        check.assertions.clear();
    }
    let summary = text::summary(
        &evidence(),
        &[result("pfc.x", "", checks)],
        Exit::Failed,
        false,
    );
    assert!(
        summary.contains(
            "  fail  paused [a; b; c]:\n      the same\n\
             \x20 inconclusive  paused, resume [d]:\n      the same\n"
        ),
        "{summary}"
    );
}

#[test]
fn a_repetition_that_does_not_apply_takes_one_line() {
    let checks = ["a", "b"].iter().flat_map(|repetition| {
        let verdict = if *repetition == "a" {
            Verdict::Pass
        } else {
            Verdict::NotApplicable
        };
        ["paused", "resume", "xon"].map(|name| CheckResult {
            reason: "no DSCP".to_owned(),
            assertions: vec![],
            ..check(name, repetition, verdict)
        })
    });
    let summary = text::verbose(
        &evidence(),
        &[result("pfc.x", "", checks.collect())],
        Exit::Passed,
        false,
    );
    assert!(
        summary.contains("  not-applicable  all checks [b]:\n      no DSCP\n"),
        "{summary}"
    );
}

#[test]
fn colour_changes_nothing_but_colour() {
    let results = [every_verdict()];
    let plain = text::summary(&evidence(), &results, Exit::Failed, false);
    let coloured = text::summary(&evidence(), &results, Exit::Failed, true);
    assert!(!plain.contains('\x1b') && coloured.contains("\x1b[1;31mfail\x1b[0m"));
    let mut parts = coloured.split('\x1b');
    let first = parts.next().unwrap().to_owned();
    assert_eq!(
        parts.fold(first, |text, part| text + part.split_once('m').unwrap().1),
        plain
    );
}

#[test]
fn an_error_of_a_case_is_in_every_report() {
    let mut broken = result("pfc.broken", "no carrier on eth1", vec![]);
    broken.verdict = Verdict::Error;
    let results = [
        result("pfc.x", "", vec![check("paused", "a", Verdict::Pass)]),
        broken,
    ];
    let summary = text::summary(&evidence(), &results, Exit::Interrupted, false);
    assert!(
        summary.contains("pfc.broken  error\n  no carrier on eth1\n"),
        "{summary}"
    );
    assert!(
        summary
            .ends_with("verdict: error, interrupted (cases: error 1/2, pass 1/2; exit code 130)\n"),
        "{summary}"
    );
    let junit = junit(&results);
    assert_eq!(
        (junit.tests, junit.failures, junit.errors, junit.skipped),
        (2, 0, 1, 0)
    );
    assert_eq!(junit.test_suites[1].test_cases[0].name.as_str(), "case");
    let json = json(&results, Exit::Undecided);
    assert_eq!(json["cases"][1]["reason"], "no carrier on eth1");
    assert_eq!(
        (json["verdict"].as_str(), json["exit_code"].as_u64()),
        (Some("error"), Some(3))
    );
}

#[test]
fn junit_has_a_test_case_for_each_check_in_each_repetition() {
    let report = junit(&[every_verdict()]);
    assert_eq!(
        (report.tests, report.failures, report.errors, report.skipped),
        (12, 1, 2, 2)
    );
    let suite = &report.test_suites[0];
    assert_eq!(suite.name.as_str(), "pfc.x");
    for verdict in ALL {
        let named = |name: String| {
            suite
                .test_cases
                .iter()
                .find(|case| case.name.as_str() == name)
                .unwrap()
        };
        assert!(matches!(
            named(format!("is-{verdict} [a]")).status,
            TestCaseStatus::Success { .. }
        ));
        let reason = Some(format!("reason of is-{verdict} in b"));
        let case = named(format!("is-{verdict} [b]"));
        assert_eq!(
            case.classname.as_ref().map(|name| name.as_str()),
            Some("pfc.x")
        );
        match (&case.status, verdict) {
            (TestCaseStatus::Success { .. }, Verdict::Pass) => {}
            (
                TestCaseStatus::NonSuccess {
                    kind,
                    message,
                    ty,
                    description,
                    ..
                },
                Verdict::Fail | Verdict::Inconclusive | Verdict::Error,
            ) => {
                assert_eq!(*kind == NonSuccessKind::Failure, verdict == Verdict::Fail);
                assert_eq!(
                    message.as_ref().map(|text| text.as_str().to_owned()),
                    reason
                );
                assert_eq!(ty.as_ref().map(|text| text.as_str()), Some(verdict.word()));
                assert!(
                    description
                        .as_ref()
                        .unwrap()
                        .as_str()
                        .contains("expected none <of them>, found actual of")
                );
            }
            (
                TestCaseStatus::Skipped { message, ty, .. },
                Verdict::Skipped | Verdict::NotApplicable,
            ) => {
                assert_eq!(
                    message.as_ref().map(|text| text.as_str().to_owned()),
                    reason
                );
                assert_eq!(ty.as_ref().map(|text| text.as_str()), Some(verdict.word()));
            }
            (status, verdict) => panic!("{verdict} became {status:?}"),
        }
    }
}

#[test]
fn the_json_report_has_everything_by_its_name() {
    let report = json(&[every_verdict()], Exit::Failed);
    assert_eq!(report["schema"], 1);
    assert_eq!(
        report["tool"],
        serde_json::json!({ "name": "validator", "version": "1.2.3" })
    );
    assert_eq!(
        (report["verdict"].as_str(), report["exit_code"].as_u64()),
        (Some("fail"), Some(1))
    );
    assert_eq!(
        (
            report["host"]["kernel"].as_str(),
            report["testbed"]["dut"].as_str()
        ),
        (Some("6.18.0"), Some("sim"))
    );
    let case = &report["cases"][0];
    assert_eq!(
        (case["case"].as_str(), case["verdict"].as_str()),
        (Some("pfc.x"), Some("fail"))
    );
    assert_eq!(case["figures"][1]["value"], "7 ms in b");
    for (index, verdict) in ALL.iter().enumerate() {
        let check = &case["checks"][index];
        assert_eq!(
            check["check"].as_str(),
            Some(format!("is-{verdict}").as_str())
        );
        assert_eq!(
            check["verdict"].as_str(),
            Some(Verdict::of_parts([Verdict::Pass, *verdict]).word())
        );
        let outcome = &check["repetitions"][1];
        assert_eq!(
            (outcome["repetition"].as_str(), outcome["verdict"].as_str()),
            (Some("b"), Some(verdict.word()))
        );
        assert_eq!(outcome["assertions"][0]["expected"], "none <of them>");
        assert_eq!(
            outcome["assertions"][0]["actual"].as_str(),
            Some(format!("actual of is-{verdict} in b").as_str())
        );
    }
}

#[test]
fn the_json_report_has_the_throughput_of_each_priority_over_time() {
    let mut evidence = evidence();
    let Repetition::Pfc(repetition) = &mut evidence.cases[0].repetitions[0] else {
        unreachable!()
    };
    let (dscp, priority) = (Dscp::new(3).unwrap(), Priority::new(3).unwrap());
    repetition.plan.flows = vec![FlowPlan {
        id: 0,
        role: Role::Test,
        priority,
        dscp,
        pcp: None,
        rate: 500_000_000,
        length: 1024,
    }];
    let mut window = [0; 8];
    window[3] = 100;
    repetition.windows = Windows {
        epoch: 0,
        width: 50_000_000,
        offered: vec![window; 4],
        received: vec![window, window, [0; 8], window],
    };
    let mut out = Vec::new();
    report::json::write(&mut out, &evidence, &[every_verdict()], Exit::Failed).unwrap();
    let report: serde_json::Value = serde_json::from_slice(&out).unwrap();
    // 200 frames of 8384 bits in 100 ms.
    let expected = serde_json::json!([{
        "repetition": "lossless 3+4, storm on 3", "priority": 3, "step_ms": 100,
        "offered": [16.8, 16.8], "received": [16.8, 8.4]
    }]);
    assert_eq!(report["cases"][0]["throughput"], expected);
}

#[test]
fn the_json_report_has_the_gaps_of_each_storm() {
    let mut evidence = evidence();
    let Repetition::Pfc(repetition) = &mut evidence.cases[0].repetitions[0] else {
        unreachable!()
    };
    let departure = Departure {
        before: 1,
        after: 2,
    };
    repetition.storm = Some(StormReport {
        method: "2 senders".into(),
        frames: 1000,
        errors: 3,
        first: departure,
        last: departure,
        max_gap: 40_000_000,
        gaps: vec![Gap {
            from: 7,
            to: 40_000_007,
        }],
        gaps_left_out: LeftOut {
            count: 4,
            total: 20,
            from: 9,
            to: 99,
        },
        histogram: GapHistogram(vec![(10_500_000, 600), (11_000_000, 390), (50_000_000, 9)]),
        stalls: Vec::new(),
        stalls_left_out: LeftOut::default(),
        stalls_noted: StallsNoted::default(),
    });
    let mut out = Vec::new();
    report::json::write(&mut out, &evidence, &[every_verdict()], Exit::Failed).unwrap();
    let report: serde_json::Value = serde_json::from_slice(&out).unwrap();
    let expected = serde_json::json!([{
        "repetition": "lossless 3+4, storm on 3", "method": "2 senders",
        "frames": 1000, "refused": 3, "pause_ns": 33_553_920,
        "p50_ns": 10_500_000, "p99_ns": 11_000_000, "p999_ns": 40_000_000, "max_ns": 40_000_000,
        "gaps_above": 5,
        "histogram": [[10_500_000, 600], [11_000_000, 390], [50_000_000, 9]]
    }]);
    assert_eq!(report["cases"][0]["storms"], expected);
}

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
            "report.json"
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
        error.ends_with("file/out: cannot be written: Not a directory (os error 20)"),
        "{error}"
    );

    fs::create_dir_all(dir.path().join("out/report.json")).unwrap();
    let error = report::write(&dir.path().join("out"), &evidence(), &[], Exit::Undecided)
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
        "evidence and the directory in the way, nothing half written: {left:?}"
    );
}

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

#[test]
fn where_evidence_cannot_be_written_the_verdict_is_shown_all_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    fs::create_dir_all(out.join("evidence.json")).unwrap();
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let output = Command::new(env!("CARGO_BIN_EXE_validator"))
        .args([
            "run",
            "--plan",
            "mad",
            "--set",
            "testbed.mad.timeout=50ms",
            "--testbed",
        ])
        .arg(repository.join("configs/testbeds/sim.toml"))
        .arg("--out")
        .arg(&out)
        .env("VALIDATOR_JOURNAL", folder.path().join("journal"))
        .output()
        .unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(
        error.contains("evidence.json: cannot be written: Is a directory"),
        "{error}"
    );
    let shown = String::from_utf8(output.stdout).unwrap();
    assert!(
        shown.lines().any(|line| line.starts_with("verdict: ")),
        "{shown}"
    );
    assert!(out.join("report.json").is_file());
}

#[test]
fn offending_frames_are_captured_in_order_with_port_time_and_reason() {
    use pcap_file::pcapng::{Block, PcapNgReader};

    let evidence = evidence();
    let captures = report::pcapng::captures(&evidence);
    assert_eq!(
        captures
            .iter()
            .map(|(name, _)| name.as_str())
            .collect::<Vec<_>>(),
        ["pfc.x-lossless-3+4-storm-on-3.pcapng"]
    );
    let mut out = Vec::new();
    const BOOT: u64 = 1_800_000_000_000_000_000;
    report::pcapng::write(&mut out, captures[0].1, BOOT).unwrap();
    let mut reader = PcapNgReader::new(&out[..]).unwrap();
    let mut frames = Vec::new();
    while let Some(block) = reader.next_block() {
        if let Block::EnhancedPacket(packet) = block.unwrap() {
            frames.push((
                packet.interface_id,
                packet.timestamp.as_nanos() - u128::from(BOOT),
                packet.data.len(),
                packet.original_len,
            ));
        }
    }
    assert_eq!(
        frames,
        [(1, 5_000_000_122, 60, 60), (0, 5_000_000_123, 60, 60)]
    );
}

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

/// Files below `folder`, by their paths from there.
fn files(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        if entry.file_type().unwrap().is_dir() {
            let inner = files(&entry.path());
            found.extend(inner.iter().map(|file| format!("{name}/{file}")));
        } else {
            found.push(name);
        }
    }
    found.sort();
    found
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
    let written = report::write(&dir, &evidence(), &[every_verdict()], Exit::Failed);
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
    let evidence = r#"{"schema": 7, "version": "1\u001b[2J"}"#;
    fs::write(dir.path().join("evidence.json"), evidence).unwrap();
    let error = report::read_evidence(dir.path()).unwrap_err().to_string();
    assert!(error.contains("validator 1\u{fffd}[2J;"), "{error:?}");
}

#[test]
fn tshark_reads_the_capture() {
    if !common::need_tool("tshark_reads_the_capture", "tshark") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    report::write(dir.path(), &evidence(), &[], Exit::Undecided).unwrap();
    let capture = dir
        .path()
        .join("captures/pfc.x-lossless-3+4-storm-on-3.pcapng");
    let fields = [
        "frame.interface_name",
        "frame.time_epoch",
        "macc.opcode",
        "frame.comment",
        "_ws.malformed",
    ];
    let output = tshark(&capture, &fields);
    let forwarded = "forwarded: a PAUSE or PFC frame of the tester's own";
    assert_eq!(
        output,
        format!("rx|5.000000122|0x0001|{forwarded}|\ntx|5.000000123|0x0101|{forwarded}|\n")
    );
}

fn tshark(capture: &Path, fields: &[&str]) -> String {
    let mut command = Command::new("tshark");
    command
        .arg("-r")
        .arg(capture)
        .args(["-T", "fields", "-E", "separator=|"]);
    for field in fields {
        command.args(["-e", field]);
    }
    let output = command.output().unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}
