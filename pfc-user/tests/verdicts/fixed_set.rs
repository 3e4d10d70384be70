//! A switch whose lossless priorities are 3 and 4 and cannot be changed, in virtual time: the
//! repetitions follow this set, a good switch passes them all, and a fault is found in them.

use std::collections::BTreeSet;

use validator_core::cases::judge_case;
use validator_core::cases::pfc::parameters::{PfcParameters, PlannedRepetition, Storm};
use validator_core::cases::pfc::port::PortContext;
use validator_core::cases::pfc::unfolding::Repetitions;
use validator_core::cases::pfc::{CASES, PfcCase};
use validator_core::evidence::{CaseEvidence, Repetition};
use validator_core::fault::switch::Fault;
use validator_core::verdict::Verdict;

use crate::bench::{self, priorities};
use crate::verdicts::{faults, frame_faults};

/// The document's repetitions, each a set of which all are stormed, or in two cases none or one.
fn document(case: &str) -> Vec<PlannedRepetition> {
    let sets: Vec<Vec<u8>> = match case {
        "pfc.pause-single-lossless" | "pfc.pause-lossy" => (0..8).map(|one| vec![one]).collect(),
        "pfc.pause-multi-lossless" => vec![vec![0, 1], vec![2, 3], (0..7).collect()],
        _ => vec![vec![3, 4]],
    };
    let planned = |set: &Vec<u8>| PlannedRepetition {
        lossless: priorities(set),
        storm: match case {
            "pfc.enable-vector" => Some(Vec::new()),
            "pfc.class-map" => Some(priorities(&[3])),
            _ => None,
        },
    };
    sets.iter().map(planned).collect()
}

/// The repetitions of `case` that the set leaves.
fn unfolded(case: &PfcCase) -> Repetitions {
    let port = PortContext {
        fixed_lossless: Some(priorities(&[3, 4])),
        ..bench::port()
    };
    let parameters = PfcParameters {
        durations: bench::durations_of(case.case.id),
        frame: bench::frame_of(case.case.id),
        storm: Storm {
            quanta: pfc_ebpf::units::Quanta::MAX,
            interval: None,
        },
        repetitions: document(case.case.id),
        short: false,
    };
    let found = case.repetitions(&port, &parameters);
    assert_eq!((&found.omitted, &found.impossible), (&Vec::new(), &None));
    found
}

/// Every case on a switch with these faults; the evidence has what was not done.
fn run(faults: &[&str]) -> Vec<CaseEvidence> {
    let faults: Vec<Fault> = faults.iter().map(|fault| fault.parse().unwrap()).collect();
    let cases = CASES.iter().map(|case| {
        let id = case.case.id;
        let found = unfolded(case);
        let done = found.plans.iter().map(|plan| {
            let evidence = bench::run(plan, &faults);
            Repetition::Pfc(Box::new(evidence))
        });
        CaseEvidence {
            fixed_set: found.fixed,
            ..CaseEvidence::of(id, done.collect())
        }
    });
    cases.collect()
}

/// Checks with that verdict, such as `single-lossless paused [lossless 3+4, storm on 3]`.
fn with(cases: &[CaseEvidence], verdict: Verdict) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for case in cases {
        let checks = judge_case(case).checks.into_iter();
        for check in checks.filter(|check| check.verdict == verdict) {
            let case = case.case.trim_start_matches("pfc.").replace("pause-", "");
            found.insert(format!("{case} {} [{}]", check.check, check.repetition));
        }
    }
    found
}

const ON_3: &str = "lossless 3+4, storm on 3";
const ON_4: &str = "lossless 3+4, storm on 4";
const BOTH: &str = "lossless 3+4";
const ON_NONE: &str = "lossless 3+4, storm on none";

/// The repetitions of each case.
const REPETITIONS: [(&str, &[&str]); 18] = [
    ("single-lossless", &[ON_3, ON_4]),
    ("multi-lossless", &[BOTH, ON_3]),
    ("lossy", &[BOTH]),
    ("global-pause", &[BOTH]),
    ("enable-vector", &[ON_NONE, ON_3, ON_4]),
    (
        "class-map",
        &[
            "lossless 3+4, storm on 0",
            "lossless 3+4, storm on 1",
            "lossless 3+4, storm on 2",
            ON_3,
            ON_4,
            "lossless 3+4, storm on 5",
            "lossless 3+4, storm on 6",
            "lossless 3+4, storm on 7",
        ],
    ),
    ("sizes", &[BOTH, "lossless 3+4, storm on 0+1+2+5+6+7"]),
    ("zero-time", &[BOTH]),
    ("independent-times", &[BOTH]),
    ("timer-reload", &[BOTH]),
    ("time", &[BOTH]),
    ("response-time", &[BOTH]),
    ("invalid-frames", &[BOTH]),
    ("source-address", &[BOTH]),
    ("generation", &[BOTH]),
    ("no-congestion", &[BOTH]),
    ("oversubscription", &[BOTH]),
    ("victim", &[ON_3, ON_4, BOTH]),
];

/// `check` of the case, in each of its repetitions.
fn each(case: &str, check: &str) -> Vec<String> {
    let (_, names) = REPETITIONS.iter().find(|(id, _)| *id == case).unwrap();
    names
        .iter()
        .map(|name| format!("{case} {check} [{name}]"))
        .collect()
}

#[test]
fn a_good_switch_passes_every_case_and_what_was_not_done_touches_no_verdict() {
    let cases = run(&[]);
    for case in &cases {
        let result = judge_case(case);
        assert_eq!(result.verdict, Verdict::Pass, "{}: {result:#?}", case.case);
    }
    let mut no_subject: BTreeSet<String> =
        each("single-lossless", "isolation").into_iter().collect();
    no_subject.insert(format!("multi-lossless isolation [{BOTH}]"));
    no_subject.insert(format!("victim isolation [{BOTH}]"));
    no_subject.extend([
        format!("enable-vector ignored [{ON_3}]"),
        format!("enable-vector ignored [{ON_4}]"),
        format!("enable-vector only-enabled [{ON_NONE}]"),
        format!("enable-vector delivered [{ON_NONE}]"),
    ]);
    for check in ["paused", "delivered", "resume"] {
        no_subject.insert(format!(
            "sizes {check} [lossless 3+4, storm on 0+1+2+5+6+7]"
        ));
    }
    let of_lossy = each("class-map", "delivered").into_iter();
    no_subject.extend(of_lossy.filter(|name| !name.contains("on 3") && !name.contains("on 4")));
    assert_eq!(with(&cases, Verdict::NotApplicable), no_subject);
    let not_done: Vec<usize> = cases
        .iter()
        .map(|case| case.fixed_set.as_ref().unwrap().not_done.len())
        .collect();
    assert_eq!(
        not_done,
        [8, 3, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
    );
}

#[test]
fn each_fault_fails_its_checks_in_every_repetition_of_the_set() {
    let both_cases = |check: &str| -> BTreeSet<String> {
        let single = each("single-lossless", check);
        single
            .into_iter()
            .chain(each("multi-lossless", check))
            .collect()
    };
    let all_cases = |check: &str| -> BTreeSet<String> {
        let cases = REPETITIONS.iter();
        cases.flat_map(|(case, _)| each(case, check)).collect()
    };
    let of = |case: &str, checks: &[&str]| -> BTreeSet<String> {
        checks.iter().flat_map(|check| each(case, check)).collect()
    };
    let enabled = |check: &str| [ON_3, ON_4].map(|on| format!("enable-vector {check} [{on}]"));
    let mut leaks = &both_cases("paused") | &both_cases("response");
    leaks.extend(enabled("only-enabled"));
    leaks.extend(each("victim", "paused"));
    let probed = &of("independent-times", &["own-time"]) | &of("timer-reload", &["replaced"]);
    leaks.extend(probed.clone());
    let mapped = |classes: &[u8]| -> Vec<String> {
        let names = classes.iter();
        names
            .map(|class| format!("class-map map [lossless 3+4, storm on {class}]"))
            .collect()
    };
    leaks.extend(mapped(&[3, 4]));
    leaks.insert(format!("sizes paused [{BOTH}]"));
    leaks.extend(of("invalid-frames", &["alive", "still-pauses"]));
    leaks.extend(of("time", &["not-early"]));
    leaks.extend(of("response-time", &["response"]));
    leaks.extend(of("source-address", &["alive", "pauses"]));
    let expected: [(&str, BTreeSet<String>); 6] = [
        ("leaks", leaks),
        (
            "ignores-xon",
            &both_cases("xon") | &of("zero-time", &["resumes"]),
        ),
        (
            "pauses-other-lossless",
            BTreeSet::from([
                format!("multi-lossless isolation [{ON_3}]"),
                format!("multi-lossless no-dip [{ON_3}]"),
                format!("multi-lossless response [{BOTH}]"),
                format!("multi-lossless response [{ON_3}]"),
            ])
            .into_iter()
            .chain(enabled("only-enabled"))
            .chain(enabled("no-dip"))
            .chain(each("zero-time", "resumes"))
            .chain(probed)
            .chain(mapped(&[3, 4]))
            .collect(),
        ),
        (
            "lossy-obeys-pfc",
            of("lossy", &["no-delay", "no-dip", "test-traffic"])
                .into_iter()
                .chain(both_cases("response"))
                .chain(each("independent-times", "own-time"))
                .chain(mapped(&[0, 1, 2, 5, 6, 7]))
                .chain(["sizes others [lossless 3+4, storm on 0+1+2+5+6+7]".to_owned()])
                .collect(),
        ),
        (
            "obeys-pause",
            of(
                "global-pause",
                &["no-delay", "no-dip", "no-loss", "throughput"],
            ),
        ),
        (
            "xoff-for-lossy",
            &all_cases("no-pfc-on-lossy") | &of("no-congestion", &["silent"]),
        ),
    ];
    let others = expected.into_iter().filter_map(|(fault, expected)| {
        let found = with(&run(&[fault]), Verdict::Fail);
        (found != expected).then(|| format!("{fault}: expected {expected:?}, found {found:?}"))
    });
    let others: Vec<String> = others.collect();
    assert!(others.is_empty(), "{others:#?}");
}

/// Faults that only the cases of the plan `pfc-further` find: in the test plan each XON ends a
/// pause, and there are two ports.
const FURTHER: [&str; 21] = [
    "pauses-longer=3",
    "any-opcode",
    "any-destination",
    "neighbour-destination",
    "half-ethertype",
    "wants-zeroes",
    "wants-source",
    "dies-of-odd-frame",
    "zero-pauses-idle",
    "slow-at-times",
    "pfc-from-group",
    "pfc-reserved-vector",
    "pfc-unclean-padding",
    "pfc-long",
    "asks-first-port",
    "asks-all-ports",
    "floods",
    "pauses-all-ports",
    "pauses-all-ports=13107",
    "leaks-for-long",
    "loses-short",
];

/// Each fault by itself fails a check of the test plan's cases, but for those that only the further
/// cases find.
#[test]
fn every_fault_fails_a_check_of_the_set() {
    let repetitions: Vec<_> = CASES
        .iter()
        .flat_map(|case| {
            unfolded(case)
                .plans
                .into_iter()
                .map(move |plan| (case, plan))
        })
        .collect();
    let in_test_plan = |case: &PfcCase| case.case.document == CASES[0].case.document;
    let fails = |fault: &str, by_plan: bool| {
        let mut repetitions = repetitions
            .iter()
            .filter(|(case, _)| in_test_plan(case) == by_plan);
        repetitions.any(|(case, plan)| {
            let evidence = bench::run(plan, &[fault.parse().unwrap()]);
            let checks = case.judge(&evidence).checks;
            checks.iter().any(|check| check.verdict == Verdict::Fail)
        })
    };
    let passed: Vec<&str> = faults::EXPECTED
        .iter()
        .chain(frame_faults::EXPECTED)
        .map(|(fault, _)| *fault)
        .filter(|fault| !fails(fault, true))
        .collect();
    assert_eq!(passed, FURTHER);
    assert!(FURTHER.iter().all(|fault| fails(fault, false)));
}
