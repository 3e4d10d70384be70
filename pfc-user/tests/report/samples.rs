//! Evidence and results that the tests write reports of.

use std::fs;
use std::path::Path;

use pfc_ebpf::abi::account::OffenceKind;
use pfc_ebpf::stamp::Phase;
use pfc_ebpf::units::{LineRate, Quanta};
use validator_core::evidence::pfc::{
    Arrivals, Counting, Instruments, Offence, PfcEvidence, Ports, SenderReport, Windows,
};
use validator_core::evidence::{CaseEvidence, Evidence, Host, Repetition, Testbed};
use validator_core::plan::{Durations, Limits, PortName, RepetitionPlan, StormKind, StormPlan};
use validator_core::verdict::{Assertion, CaseResult, CheckResult, Figure, Verdict};

pub const ALL: [Verdict; 6] = [
    Verdict::Pass,
    Verdict::Fail,
    Verdict::Inconclusive,
    Verdict::Error,
    Verdict::NotApplicable,
    Verdict::Skipped,
];

/// Two pause frames, as a MAC sent them: PFC for priority 3, and 802.3x.
pub const FRAMES: [(&str, &str); 2] = [
    (
        "tx",
        "0180c20000015a5152535455880801010008000000000000a00300000000000000000000000000000000000000000000000000000000000000000000",
    ),
    (
        "rx",
        "0180c20000015a5152535455880800011234000000000000000000000000000000000000000000000000000000000000000000000000000000000000",
    ),
];

pub fn repetition(name: &str, frames: &[(&str, &str)]) -> Repetition {
    let offence = |(index, (port, octets)): (usize, &(&str, &str))| Offence {
        port: PortName::new(port.to_string()),
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
            storm: Some(StormPlan {
                kind: StormKind::Pause,
                quanta: Quanta::MAX,
                interval: 10_000_000,
            }),
            probe: None,
            probe_first: false,
            baseline_load: 100,
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
            xoff: Some(512 << 10),
            max_residence: 1_000_000_000,
            min_throughput: 0.99,
            max_burst: 4_000_000,
        },
        ports: Ports::default(),
        watchdog: None,
        instruments: Instruments::default(),
        phases: vec![],
        not_begun: vec![Phase::Baseline, Phase::Storm, Phase::Drain, Phase::Resume],
        sender: SenderReport::default(),
        received: vec![],
        windows: Windows::default(),
        storm: None,
        probes: vec![],
        arrivals: Arrivals::default(),
        mac: Vec::new(),
        offences: frames.iter().enumerate().map(offence).collect(),
        accounting: vec![],
        dut: None,
        hooks: vec![],
        interrupted: true,
    }))
}

pub fn evidence() -> Evidence {
    Evidence {
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
            ..Testbed::default()
        },
        ..Evidence::of(vec![CaseEvidence::of(
            "pfc.x",
            vec![
                repetition("lossless 3+4, storm on 3", &FRAMES),
                repetition("lossless 5", &[]),
            ],
        )])
    }
}

/// A run with these cases.
pub fn run(cases: Vec<CaseEvidence>) -> Evidence {
    Evidence {
        planned: cases.iter().map(|case| case.case.clone()).collect(),
        cases,
        ..evidence()
    }
}

pub fn check(check: &str, repetition: &str, verdict: Verdict) -> CheckResult {
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
        ..Assertion::default()
    }];
    CheckResult {
        check: check.to_owned(),
        repetition: repetition.to_owned(),
        verdict,
        reason,
        assertions,
        causes: Vec::new(),
    }
}

pub fn result(case: &str, reason: &str, checks: Vec<CheckResult>) -> CaseResult {
    let verdict = Verdict::of_parts(checks.iter().map(|check| check.verdict));
    let figures = ["a", "b"].map(|name| Figure {
        repetition: name.to_owned(),
        name: "gap".to_owned(),
        value: format!("7 ms in {name}"),
        numbers: Vec::new(),
        form: String::new(),
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
pub fn every_verdict() -> CaseResult {
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

/// Files below `folder`, by their paths from there.
pub fn files(folder: &Path) -> Vec<String> {
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
