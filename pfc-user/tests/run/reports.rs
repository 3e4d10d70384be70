//! A run's reports for people and programs, and those made of its evidence later.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use chrono::DateTime;
use serde_json::{Value, json};
use validator::report;
use validator_core::cases;
use validator_core::evidence::Repetition;

use crate::common;
use crate::run::lab::{CASES, Lab, cases_of, of_repository};
use crate::run::outcome::{Outcome, Report, word_of};

/// An attribute of an element of a junit.xml, read without the crate that wrote it.
fn attribute(element: &str, name: &str) -> Option<String> {
    let (_, rest) = element.split_once(&format!(" {name}=\""))?;
    Some(rest.split_once('"')?.0.to_owned())
}

/// Class, name and verdict of each test case in a junit.xml.
fn junit(out: &Path) -> BTreeSet<(String, String, String)> {
    let text = fs::read_to_string(out.join("junit.xml")).unwrap();
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

/// Asserts that `report.json` and `junit.xml` of a run say what was tested, by what, where and
/// when, and with which frames.
fn assert_identified(report: &Value, junit: &str) {
    let system = nix::sys::utsname::uname().unwrap();
    let name = system.nodename().to_str().unwrap();
    assert_eq!(report["host"]["name"], name);
    assert_eq!(report["host"]["kernel"], system.release().to_str().unwrap());
    assert_eq!(
        report["testbed"]["identity"],
        json!({ "vendor": "Example", "model": "S1", "serial": "42", "software": "OS-2.1" })
    );
    let invocation = &report["invocation"];
    assert_eq!(invocation["plan"], "short");
    let command = invocation["command"].as_array().unwrap();
    for argument in ["run", "--plan", "testbed.dut.model=\"S1\""] {
        assert!(command.contains(&argument.into()), "{command:?}");
    }
    let seconds = |time: &str| DateTime::parse_from_rfc3339(time).unwrap().timestamp();
    let started_at = report["started_at"].as_str().unwrap();
    assert_eq!(Some(seconds(started_at)), report["started"].as_i64());

    let property = |text: &str, name: &str| {
        let (_, value) = text.split_once(&format!("<property name=\"{name}\" value=\""))?;
        Some(value.split_once('"')?.0.to_owned())
    };
    let ports = report["preflight"].as_array().unwrap();
    let roles: Vec<_> = ports.iter().map(|port| &port["role"]).collect();
    assert_eq!(roles, ["tx", "rx"]);
    let cases = report["cases"].as_array().unwrap();
    let suites: Vec<&str> = junit.split("<testsuite ").skip(1).collect();
    assert_eq!((cases.len(), suites.len()), (CASES.len(), CASES.len()));
    for suite in suites {
        // The attributes of the suite, with a space before each.
        let head = format!(" {}", suite.split_once('>').unwrap().0);
        let of_suite = |name| attribute(&head, name).unwrap();
        assert_eq!(of_suite("hostname"), name);
        let times = invocation["cases"].as_array().unwrap().iter();
        let mut times = times.filter(|time| time["case"] == of_suite("name"));
        let (Some(time), None) = (times.next(), times.next()) else {
            panic!("{} has not one time: {invocation}", of_suite("name"));
        };
        assert_eq!(
            Some(seconds(&of_suite("timestamp"))),
            time["started"].as_i64()
        );
        let lasted = time["seconds"].as_f64().unwrap();
        assert!(lasted > 0.0, "{time}");
        assert_eq!(of_suite("time"), format!("{lasted:.3}"));

        for (name, value) in [
            ("plan", "short"),
            ("its serial", "42"),
            ("host", name),
            ("started", started_at),
        ] {
            assert_eq!(property(suite, name).as_deref(), Some(value), "{suite}");
        }
        for port in ports {
            let facts = &port["facts"];
            assert_eq!(facts["driver"]["name"], "veth");
            assert!(facts["driver"]["firmware"].is_string(), "{facts}");
            let role = port["role"].as_str().unwrap();
            let text = property(suite, &format!("port {role}")).unwrap();
            let begin = format!("{}, driver veth", facts["interface"].as_str().unwrap());
            assert!(text.starts_with(&begin), "{text}");
        }
        let mut of_case = cases.iter();
        let of_case = of_case.find(|case| case["case"] == of_suite("name"));
        let planned = &of_case.unwrap()["flows"][0];
        let flow = &planned["flows"][0];
        assert!(flow["dscp"].is_u64() && flow["pcp"].is_null(), "{flow}");
        assert!(flow["rate"].as_u64() > Some(0), "{flow}");
        let repetition = planned["repetition"].as_str().unwrap();
        let text = property(suite, &format!("test traffic [{repetition}]")).unwrap();
        assert!(text.contains(", DSCP "), "{text}");
        let length = format!(" of frames of {} octets, ", flow["length"]);
        assert!(text.contains(&length) && text.contains(" Mbit/s"), "{text}");
    }
}

#[test]
fn root_all_reports_say_the_same_now_and_later() {
    let Some(lab) = Lab::new("root_all_reports_say_the_same_now_and_later") else {
        return;
    };
    let plan = lab.file("plan.toml", &cases_of(&CASES));
    let testbed = of_repository("configs/testbeds/sim.toml");
    let dut = [
        "faults=[\"corrupts\"]",
        "vendor=\"Example\"",
        "model=\"S1\"",
        "serial=\"42\"",
        "software=\"OS-2.1\"",
    ];
    let dut = dut
        .map(|value| format!(" --set testbed.dut.{value}"))
        .concat();
    let run = lab.start(&format!(
        "--testbed {testbed} --plan {plan} --format json{dut}"
    ));
    let ended = Outcome::of(run.wait_with_output().unwrap());
    assert_eq!(ended.code, Some(1));
    let out = lab.out();
    let files = ["report.json", "junit.xml"].map(|name| out.join(name));
    let written = files
        .each_ref()
        .map(|file| fs::read_to_string(file).unwrap());
    assert_eq!(written[0], ended.stdout);
    assert_identified(&ended.report().0, &written[1]);
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
    let selected = cases::all().into_iter().filter(|case| {
        let of_family = case.id.strip_prefix("pfc.");
        of_family.is_some_and(|id| CASES.contains(&word_of(id)))
    });
    let ids: Vec<_> = selected.map(|case| case.id).collect();
    assert_eq!(ids.len(), CASES.len());
    for id in ids {
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
