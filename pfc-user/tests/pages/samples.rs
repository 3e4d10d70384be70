//! Evidence of good, failing and inconclusive devices of each family, from the corpus.

use validator_core::evidence::pfc::{Gap, GapHistogram, LeftOut, PfcEvidence, Stall};
use validator_core::evidence::preflight::{
    Driver, Facts, FeatureFact, Pause, Port, Preflight, Role, SelfTest, Wanted,
};
use validator_core::evidence::xdp::XdpMode;
use validator_core::evidence::{CaseEvidence, Evidence, Omitted, Repetition};

pub use crate::report::samples::run;
use crate::verdicts::corpus;

/// Families, each with a device that fails and one that decides nothing.
const FAMILIES: [(&str, &str, &str); 3] = [
    ("pfc", "loses-held", "good"),
    ("mad", "answers-wrong-key-late=700", "down"),
    ("rc", "one-retry-less", "good"),
];

/// The cases of a family on recorded devices: those whose names are wanted.
pub fn recorded(
    family: &str,
    is_wanted: impl Fn(&str) -> bool,
) -> impl Iterator<Item = (Vec<String>, CaseEvidence)> {
    corpus::lines(family).filter_map(move |line| {
        // Most lines are long and of no use: their devices stand at their begin.
        let (devices, _) = line.split_once(']').unwrap();
        is_wanted(devices).then(|| corpus::parse(&line))
    })
}

/// All cases of a family on a device; the case's good device where it has no such fault.
pub fn on(family: &str, device: &str) -> Vec<CaseEvidence> {
    let has = |devices: &str, device: &str| devices.contains(&format!("\"{device}\""));
    let is_wanted = |devices: &str| has(devices, device) || has(devices, "good");
    let mut found: Vec<CaseEvidence> = Vec::new();
    let mut has_device = false;
    for (devices, evidence) in recorded(family, is_wanted) {
        let is_device = devices.iter().any(|name| name == device);
        has_device |= is_device;
        match found.iter_mut().find(|other| other.case == evidence.case) {
            None => found.push(evidence),
            Some(good) if is_device => *good = evidence,
            Some(_) => {}
        }
    }
    assert!(has_device, "no evidence of {device} in {family}");
    found
}

/// The PFC repetitions of a run.
pub fn pfc(evidence: &mut Evidence) -> impl Iterator<Item = &mut PfcEvidence> {
    let repetitions = evidence
        .cases
        .iter_mut()
        .flat_map(|case| &mut case.repetitions);
    repetitions.filter_map(|repetition| match repetition {
        Repetition::Pfc(pfc) => Some(&mut **pfc),
        _ => None,
    })
}

/// Makes a run undecided: the tester's surroundings failed it.
fn undecided(evidence: &mut Evidence) {
    for case in &mut evidence.cases {
        for repetition in &mut case.repetitions {
            match repetition {
                Repetition::Pfc(e) => disturb(e),
                Repetition::Mad(_) => {}
                Repetition::Rc(e) => (e.apm, e.device.apm) = (None, None),
            }
        }
        case.omitted.push(Omitted {
            name: "one more".into(),
            reason: "it was left out".into(),
            not_applicable: false,
        });
    }
}

/// Gaps in the storm, stalls, and latencies, which virtual time does not have.
fn disturb(e: &mut PfcEvidence) {
    e.watchdog = None;
    e.accounting[0].rise = 5;
    let begin = e.phases[1].from;
    let later = |milliseconds: u64| begin + milliseconds * 1_000_000;
    e.sender.stalls = vec![Stall {
        from: later(10),
        to: later(40),
    }];
    e.sender.stalls_left_out = LeftOut {
        count: 3,
        total: 9_000_000,
        from: later(100),
        to: later(120),
    };
    if let Some(dut) = &mut e.dut {
        dut.stalls = vec![Stall {
            from: later(60),
            to: later(61),
        }];
    }
    if let Some(storm) = &mut e.storm {
        storm.max_gap = 40_000_000;
        storm.gaps = vec![Gap {
            from: later(5),
            to: later(45),
        }];
        storm.histogram = GapHistogram(vec![(10_500_000, 600), (11_000_000, 390), (50_000_000, 1)]);
    }
    for received in &mut e.received {
        for (bucket, count) in [(14, 30), (15, 900), (16, 80), (20, 1)] {
            received.latency[bucket] = count;
        }
        received.latency_max = 1_000_000;
    }
}

/// Measures each repetition of a run so often: attempts that nothing tells from the first.
pub fn measure_again(evidence: &mut Evidence, times: u32) {
    for case in &mut evidence.cases {
        let attempts = case.repetitions.iter().flat_map(|first| {
            (1..=times).map(move |attempt| {
                let mut again = first.clone();
                if let Repetition::Pfc(e) = &mut again {
                    e.attempt = attempt;
                }
                again
            })
        });
        case.repetitions = attempts.collect();
        case.attempts = case.repetitions.len() as u64;
    }
}

/// Facts found on two ports, with things to mend.
pub fn preflight() -> Preflight {
    let port = |role, interface: &str| Port {
        role,
        wanted: Wanted {
            xdp: XdpMode::Driver,
            line_rate: Some(25_000_000_000),
            tagged: true,
            max_response: Some(10_000),
        },
        facts: Facts {
            interface: interface.into(),
            driver: Driver {
                name: "ice".into(),
                version: "6.12.0".into(),
                firmware: "4.40 0x8001c967 1.3534.0".into(),
                bus: "0000:17:00.0".into(),
            },
            up: true,
            carrier: true,
            speed: Some(10_000_000_000),
            mtu: 1500,
            features: vec![FeatureFact {
                name: "rx-vlan-hw-parse".into(),
                on: true,
                fixed: false,
            }],
            pause: Some(Pause {
                receives: true,
                ..Pause::default()
            }),
            rdma: vec!["irdma0".into()],
            ..Facts::default()
        },
        self_test: SelfTest::NotDone {
            reason: "the DUT is between the ports".into(),
        },
        pfc_visible: None,
    };
    Preflight {
        kernel: Some("6.12.0".into()),
        unfit: Vec::new(),
        ways: Vec::new(),
        ports: vec![
            port(Role::Tx, "enp23s0f0np0"),
            port(Role::Rx, "enp23s0f1np1"),
        ],
    }
}

/// A run that its user ended, on ports that are looked at, whose repetitions were measured again.
fn measured_again() -> Evidence {
    let mut evidence = run(on("pfc", "good"));
    // Three attempts at more cases are too much for a page with all of them drawn.
    evidence.cases.truncate(16);
    undecided(&mut evidence);
    measure_again(&mut evidence, 3);
    evidence.preflight = Some(preflight());
    evidence.interrupted = true;
    if let Some(last) = pfc(&mut evidence).last() {
        last.interrupted = true;
    }
    evidence
}

/// Names and evidence of the samples.
pub fn samples() -> Vec<(String, Evidence)> {
    let mut all = Vec::new();
    for (family, failing, open) in FAMILIES {
        all.push((format!("{family}-good"), run(on(family, "good"))));
        all.push((format!("{family}-failing"), run(on(family, failing))));
        let mut evidence = run(on(family, open));
        undecided(&mut evidence);
        all.push((format!("{family}-inconclusive"), evidence));
    }
    all.push(("pfc-again".into(), measured_again()));
    all
}
