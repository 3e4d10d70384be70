//! No verdict is lost on its way into `junit.xml` and `report.json`.

use pfc_ebpf::units::{Dscp, Priority};
use quick_junit::{NonSuccessKind, Report, TestCaseStatus};
use validator::report::{self, text};
use validator_core::cases;
use validator_core::evidence::pfc::{Departure, Gap, GapHistogram, LeftOut, StormReport, Windows};
use validator_core::evidence::preflight::{self, Driver, Facts, Port, Preflight, SelfTest, Wanted};
use validator_core::evidence::xdp::XdpMode;
use validator_core::evidence::{CaseEvidence, CaseTime, Identity, Invocation, Repetition};
use validator_core::plan::{FlowPlan, PortName, Role};
use validator_core::verdict::{CaseResult, CheckResult, Exit, Verdict};

use crate::verdicts::corpus;

use super::samples::{ALL, check, every_verdict, evidence, repetition, result};

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
        summary.ends_with(
            "verdict: error, interrupted (cases: 1 with an error, 1 passed; exit code \
                 130)\nwith an error: pfc.broken\n"
        ),
        "{summary}"
    );
    let junit = junit(&results);
    assert_eq!(
        (junit.tests, junit.failures, junit.errors, junit.skipped),
        (2, 0, 1, 0)
    );
    // The case that did not pass stands first.
    assert_eq!(junit.test_suites[0].test_cases[0].name.as_str(), "case");
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
    assert_eq!(suite.test_cases[0].name.as_str(), "is-fail [b]");
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
fn a_failure_without_a_reason_has_a_message_all_the_same() {
    let compared = CheckResult {
        reason: String::new(),
        ..check("compared", "a", Verdict::Fail)
    };
    let bare = CheckResult {
        check: "bare".to_owned(),
        assertions: vec![],
        ..compared.clone()
    };
    let mut without_checks = result("pfc.y", "", vec![]);
    without_checks.verdict = Verdict::Fail;
    let report = junit(&[result("pfc.x", "", vec![compared, bare]), without_checks]);
    let suites = report.test_suites.iter();
    let messages = suites.flat_map(|suite| &suite.test_cases).map(|case| {
        let TestCaseStatus::NonSuccess { message, .. } = &case.status else {
            panic!("{:?}", case.status);
        };
        let message = message.as_ref().map(|text| text.as_str());
        (case.name.as_str(), message.unwrap())
    });
    let messages: Vec<_> = messages.collect();
    let made = "frames: expected none <of them>, found actual of compared in a";
    assert_eq!(
        messages,
        [
            ("compared [a]", made),
            ("bare [a]", "fail"),
            ("case", "fail")
        ]
    );
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

/// The comparisons that failed a check on recorded evidence, as `report.json` has them.
fn failed(family: &str, case: &str, device: &str, check: &str) -> Vec<serde_json::Value> {
    let result = cases::judge_case(&corpus::recorded(family, case, device));
    let report = json(&[result], Exit::Failed);
    let checks = report["cases"][0]["checks"].as_array().unwrap().iter();
    let repetitions = checks
        .filter(|found| found["check"] == check)
        .flat_map(|found| found["repetitions"].as_array().unwrap());
    let made = repetitions.flat_map(|found| found["assertions"].as_array().unwrap());
    let failed = made.filter(|made| made["verdict"] == "fail");
    failed.cloned().collect()
}

#[test]
fn a_program_takes_the_numbers_of_both_sides_from_the_json_report() {
    // An answer after 6 s, where 4.3 s and 0.5 s each way are allowed.
    let late = failed("mad", "mad.c13-013", "late=6000", "in-time");
    let late = late.first().unwrap();
    assert_eq!(late["bound"], "at-most");
    let allowed = serde_json::json!([{ "value": 5300.0, "unit": "ms" }]);
    assert_eq!(late["numbers"]["expected"], allowed);
    let found = &late["numbers"]["actual"][0];
    let took = found["value"].as_f64().unwrap();
    assert!((6000.0..6001.0).contains(&took), "{late}");
    assert_eq!(found["unit"], "ms");

    // The plan asks for a retry more than the device makes.
    let fewer = failed("rc", "rc.c09-142-01", "one-retry-less", "requests");
    for made in &fewer {
        assert_eq!(made["bound"], "exactly");
        let of = |side: &str| made["numbers"][side][0]["value"].as_f64().unwrap();
        assert_eq!(of("actual"), of("expected") - 1.0, "{made}");
    }
    assert!(!fewer.is_empty());

    // Lost frames name their flow, which is one of the plan.
    let lost = failed(
        "pfc",
        "pfc.pause-single-lossless",
        "loses-held",
        "delivered",
    );
    for made in &lost {
        let name = made["flow"]["name"].as_str().unwrap();
        assert!(made["what"].as_str().unwrap().contains(name), "{made}");
        assert!(
            name.starts_with(&format!("flow {} ", made["flow"]["id"])),
            "{made}"
        );
        let of = |side: &str| made["numbers"][side][0]["value"].as_f64().unwrap();
        assert!(of("actual") < of("expected"), "{made}");
    }
    assert!(!lost.is_empty());
}

#[test]
fn the_json_report_has_the_throughput_of_each_priority_over_time() {
    let mut evidence = evidence();
    let Repetition::Pfc(repetition) = &mut evidence.cases[0].repetitions[0] else {
        unreachable!()
    };
    let (dscp, priority) = (Dscp::new(3).unwrap(), Priority::new(3).unwrap());
    repetition.plan.flows = vec![FlowPlan {
        from: PortName::TX,
        to: PortName::RX,
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
fn reports_say_what_was_tested_by_what_where_and_when() {
    let mut evidence = evidence();
    evidence.host.name = "lab-7".to_owned();
    evidence.testbed.identity = Identity {
        vendor: "Example".to_owned(),
        model: "S1".to_owned(),
        serial: String::new(),
        software: "OS 2.1".to_owned(),
    };
    evidence.invocation = Invocation {
        plan: "smoke".to_owned(),
        toml: "name = \"smoke\"\n".to_owned(),
        command: ["validator", "run", "--set", "a=[1, 2]"]
            .map(str::to_owned)
            .to_vec(),
        cases: vec![CaseTime {
            case: "pfc.x".to_owned(),
            started: 1_800_000_003,
            seconds: 4.5,
        }],
    };
    let results = [every_verdict()];
    let mut out = Vec::new();
    report::junit::write(&mut out, &evidence, &results).unwrap();
    let junit = Report::deserialize_from_str(&String::from_utf8(out).unwrap()).unwrap();
    let suite = &junit.test_suites[0];
    assert_eq!(
        junit.timestamp.unwrap().to_rfc3339(),
        "2027-01-15T08:00:00+00:00"
    );
    assert_eq!(
        suite.timestamp.unwrap().to_rfc3339(),
        "2027-01-15T08:00:03+00:00"
    );
    assert_eq!(suite.time.unwrap().as_secs_f64(), 4.5);
    assert_eq!(suite.extra.get("hostname").unwrap().as_str(), "lab-7");
    let properties = suite.properties.iter();
    let properties: Vec<_> = properties
        .map(|property| (property.name.as_str(), property.value.as_str()))
        .collect();
    for expected in [
        ("plan", "smoke"),
        ("command", "validator run --set 'a=[1, 2]'"),
        ("its vendor", "Example"),
        ("its software", "OS 2.1"),
        ("host", "lab-7"),
        ("kernel", "Linux 6.18.0"),
        ("started", "2027-01-15T08:00:00Z"),
    ] {
        assert!(
            properties.contains(&expected),
            "{expected:?} in {properties:?}"
        );
    }
    let summary = text::summary(&evidence, &results, Exit::Failed, false);
    for expected in [
        "\nrun        plan smoke on lab-7, begun 2027-01-15T08:00:00Z\n",
        "\nDUT        vendor Example, model S1, software OS 2.1\n",
    ] {
        assert!(summary.contains(expected), "{expected} in {summary}");
    }
    let page = report::html::page(&evidence, &results, Exit::Failed);
    for expected in [
        "<p>Example, S1, OS 2.1</p>",
        "<dd>lab-7</dd>",
        "<dd>validator run --set &#39;a=[1, 2]&#39;</dd>",
        "file of the plan",
    ] {
        assert!(page.contains(expected), "{expected}");
    }
    let mut out = Vec::new();
    report::json::write(&mut out, &evidence, &results, Exit::Failed).unwrap();
    let json: serde_json::Value = serde_json::from_slice(&out).unwrap();
    assert_eq!(json["started_at"], "2027-01-15T08:00:00Z");
    assert_eq!(json["invocation"]["command"][1], "run");
    assert_eq!(json["testbed"]["identity"]["model"], "S1");
    assert_eq!(json["host"]["name"], "lab-7");
}

#[test]
fn reports_say_which_ports_and_which_frames_were_used() {
    let mut evidence = evidence();
    evidence.preflight = Some(Preflight {
        ports: vec![Port {
            role: preflight::Role::Tx,
            wanted: Wanted {
                xdp: XdpMode::Driver,
                line_rate: None,
                tagged: true,
                max_response: None,
            },
            facts: Facts {
                interface: "enp1s0f0".to_owned(),
                driver: Driver {
                    name: "ice".to_owned(),
                    version: "6.18.0".to_owned(),
                    firmware: "4.40 0x8001c967".to_owned(),
                    bus: "0000:17:00.0".to_owned(),
                },
                ..Facts::default()
            },
            self_test: SelfTest::NotDone {
                reason: "the DUT is between the ports".to_owned(),
            },
            pfc_visible: None,
        }],
        ..Preflight::default()
    });
    let Repetition::Pfc(mut measured) = repetition("lossless 3", &[]) else {
        unreachable!("the helper makes repetitions of PFC");
    };
    let flow = |id, role, priority, dscp| FlowPlan {
        from: PortName::TX,
        to: PortName::RX,
        id,
        role,
        priority: Priority::new(priority).unwrap(),
        dscp: Dscp::new(dscp).unwrap(),
        pcp: Some(Priority::new(priority).unwrap()),
        rate: 250_000_000,
        length: 1024,
    };
    measured.plan.flows = vec![
        flow(0, Role::Test, 3, 6),
        flow(1, Role::Background, 0, 1),
        flow(2, Role::Background, 1, 2),
    ];
    evidence.cases = vec![CaseEvidence::of("pfc.x", vec![Repetition::Pfc(measured)])];
    let results = [every_verdict()];
    let mut out = Vec::new();
    report::junit::write(&mut out, &evidence, &results).unwrap();
    let junit = Report::deserialize_from_str(&String::from_utf8(out).unwrap()).unwrap();
    let properties = junit.test_suites[0].properties.iter();
    let properties: Vec<_> = properties
        .map(|property| (property.name.as_str(), property.value.as_str()))
        .collect();
    let page = report::html::page(&evidence, &results, Exit::Failed);
    for (in_junit, in_page, value) in [
        (
            "port tx",
            "port tx",
            "enp1s0f0, driver ice, version 6.18.0, firmware 4.40 0x8001c967, at 0000:17:00.0",
        ),
        (
            "test traffic [lossless 3]",
            "test traffic",
            "priority 3, DSCP 6, tagged with PCP 3; 1 flow of frames of 1024 octets, 250.000 \
             Mbit/s (25.00 % of the line)",
        ),
        (
            "background traffic [lossless 3]",
            "background traffic",
            "priorities 0-1, DSCP 1-2, tagged with PCP 0-1; 2 flows of frames of 1024 octets, \
             500.000 Mbit/s in all (50.00 % of the line)",
        ),
    ] {
        assert!(
            properties.contains(&(in_junit, value)),
            "{in_junit} in {properties:?}"
        );
        let row = format!("<dt>{in_page}</dt><dd>{value}</dd>");
        assert!(page.contains(&row), "{row}");
    }
    let mut out = Vec::new();
    report::json::write(&mut out, &evidence, &results, Exit::Failed).unwrap();
    let json: serde_json::Value = serde_json::from_slice(&out).unwrap();
    let driver = &json["preflight"][0]["facts"]["driver"];
    assert_eq!(driver["firmware"], "4.40 0x8001c967");
    let expected = serde_json::json!({
        "id": 0, "from": "tx", "to": "rx", "role": "test", "priority": 3, "dscp": 6, "pcp": 3,
        "rate": 250_000_000, "length": 1024
    });
    let flows = &json["cases"][0]["flows"][0];
    assert_eq!(flows["repetition"], "lossless 3");
    assert_eq!(flows["flows"][0], expected);
}
