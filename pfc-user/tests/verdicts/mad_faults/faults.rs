//! Faults by name.

use std::collections::BTreeSet;

use ib_mad::mad::{Lid, MKey};
use ib_mad::sma::NodeConfig;
use ib_mad::sma::fault::Fault;
use validator_core::cases::mad::CASES;
use validator_core::cases::mad::planning::KeyBits;
use validator_core::evidence::mad::Purpose;
use validator_core::verdict::Verdict;

use super::bench::{
    Bench, KEYS, Outcome, TABLE, TIMED, TIMES, adapter, each_case, known, outcomes, switch,
};

/// The key that a DUT has before the run where that matters.
const FOUND: MKey = MKey(0x0123_4567_89ab_cdef);

/// The check in every repetition.
macro_rules! in_all {
    ($check:literal) => {
        &[
            concat!("table ", $check),
            concat!("bits-0 ", $check),
            concat!("bits-1 ", $check),
            concat!("bits-2 ", $check),
            concat!("bits-3 ", $check),
            concat!("port-info ", $check),
            concat!("timed ", $check),
        ]
    };
}

/// The check with all protect bits.
macro_rules! with_all_bits {
    ($check:literal) => {
        &[
            concat!("bits-0 ", $check),
            concat!("bits-1 ", $check),
            concat!("bits-2 ", $check),
            concat!("bits-3 ", $check),
        ]
    };
}

/// Answers to a wrong key.
const ANSWERED: &[&str] = &["bits-2 no-answer", "bits-3 no-answer"];

/// Wrong keys that do not count as one violation each.
const ONE_VIOLATION: &[&str] = &["bits-2 one-violation", "bits-3 one-violation"];

/// A wrong key that is taken for the DUT's.
const TAKEN_FOR_KEY: &[&str] = &[
    "bits-1 other-key-value",
    "bits-2 no-answer",
    "bits-2 one-violation",
    "bits-3 no-answer",
    "bits-3 one-violation",
];

/// Other answers about the linear table than the expected status.
const STATUS: &[&str] = &["table set-status", "table get-status"];

/// Every fault, and the checks that fail for it: repetition and check.
const EXPECTED: &[(&str, &[&str])] = &[
    ("answers-wrong-key", ANSWERED),
    ("answers-wrong-key-late", ANSWERED),
    // The case has ended when the answers of protect bits 3 come.
    ("answers-wrong-key-late=4000", &["bits-2 no-answer"]),
    ("answers-wrong-key-late=250", ANSWERED),
    (
        "counts-own-key",
        &["bits-2 before-wrong-key", "bits-3 before-wrong-key"],
    ),
    ("counts-every-second", ONE_VIOLATION),
    ("counts-every-third", ONE_VIOLATION),
    (
        "counts-busy",
        &[
            "bits-2 no-answer",
            "bits-2 one-violation",
            "bits-3 no-answer",
            "bits-3 one-violation",
        ],
    ),
    (
        "shows-one-violation",
        &[
            "bits-0 reset",
            "bits-1 reset",
            "bits-2 before-wrong-key",
            "bits-2 reset",
            "bits-3 before-wrong-key",
            "bits-3 reset",
        ],
    ),
    (
        "drops-protection",
        &["bits-2 dut-key-value", "bits-3 dut-key-value"],
    ),
    (
        "key-in-header",
        &["bits-1 header", "bits-2 header", "bits-3 header"],
    ),
    ("key-in-notice", &["bits-2 header", "bits-3 header"]),
    (
        "key-in-reserved",
        &["bits-1 header", "bits-2 header", "bits-3 header"],
    ),
    (
        "shows-other-key",
        &["bits-2 dut-key-value", "bits-3 dut-key-value"],
    ),
    ("compares-upper-half", TAKEN_FOR_KEY),
    ("compares-lower-half", TAKEN_FOR_KEY),
    // Each subcase tries other bits.
    ("ignores-key-bit=1", &["bits-1 other-key-value"]),
    (
        "ignores-key-bit=58",
        &["bits-2 no-answer", "bits-2 one-violation"],
    ),
    (
        "ignores-key-bit=35",
        &["bits-3 no-answer", "bits-3 one-violation"],
    ),
    ("changes", with_all_bits!("nothing-else-changed")),
    ("changes=lid", with_all_bits!("nothing-else-changed")),
    ("changes=sm-lid", with_all_bits!("nothing-else-changed")),
    ("changes=sm-sl", with_all_bits!("nothing-else-changed")),
    (
        "changes=capability-mask",
        with_all_bits!("nothing-else-changed"),
    ),
    ("changes=gid-prefix", with_all_bits!("nothing-else-changed")),
    ("header=base-version", in_all!("single-answer")),
    ("header=class", in_all!("single-answer")),
    ("header=method", in_all!("single-answer")),
    ("header=attribute", in_all!("port-state")),
    ("header=class-version", in_all!("header")),
    ("header=direction", in_all!("header")),
    ("header=tid", in_all!("header")),
    ("header=tid-zero", in_all!("header")),
    ("header=tid-swapped", in_all!("header")),
    ("header=modifier", in_all!("header")),
    ("header=path", in_all!("header")),
    ("shows-key", &["bits-1 other-key-value"]),
    ("hides-key", &["bits-0 other-key-value"]),
    ("no-violations", ONE_VIOLATION),
    ("counts-twice", ONE_VIOLATION),
    (
        "counts-good-key",
        &[
            "bits-0 no-violation",
            "bits-1 no-violation",
            "bits-2 before-wrong-key",
            "bits-3 before-wrong-key",
        ],
    ),
    (
        "ignores-key-set",
        &[
            "bits-0 key-set",
            "bits-0 own-key-value",
            "bits-1 key-set",
            "bits-1 own-key-value",
            "bits-2 key-set",
            "bits-2 own-key-value",
            "bits-3 key-set",
            "bits-3 own-key-value",
        ],
    ),
    (
        "ignores-protect-bits",
        &["bits-1 key-set", "bits-2 key-set", "bits-3 key-set"],
    ),
    (
        "refuses-its-key",
        &["bits-2 own-key-answered", "bits-3 own-key-answered"],
    ),
    (
        "refuses-other-key",
        &["bits-0 other-key-answered", "bits-1 other-key-answered"],
    ),
    ("forgets-key", with_all_bits!("own-key-value")),
    (
        "locks-out",
        &["bits-2 dut-key-answered", "bits-3 dut-key-answered"],
    ),
    (
        "keeps-key",
        &[
            "bits-0 reset",
            "bits-0 restored",
            "bits-1 reset",
            "bits-1 restored",
            "bits-2 reset",
            "bits-2 restored",
            "bits-3 reset",
            "bits-3 restored",
        ],
    ),
    // The first violation stays, and nothing can be counted from there.
    (
        "keeps-violations",
        &[
            "bits-2 before-wrong-key",
            "bits-2 reset",
            "bits-3 before-wrong-key",
            "bits-3 reset",
        ],
    ),
    ("lft-status=0", STATUS),
    ("lft-status=3", STATUS),
    ("lft-get-status", &["table get-status"]),
    ("lft-set-status", &["table set-status"]),
    ("lft-one-block=0", STATUS),
    ("lft-one-block=500", STATUS),
    ("lft-one-block=767", STATUS),
    (
        "lft-attribute",
        &["table set-attribute", "table get-attribute"],
    ),
    (
        "lft-modifier",
        &["table set-modifier", "table get-modifier"],
    ),
    ("lft-data", &["table get-data"]),
    ("no-random-fdb", &["table random-fdb-cap"]),
    ("twice", in_all!("single-answer")),
    ("other-tid", in_all!("single-answer")),
    ("truncated", in_all!("single-answer")),
    ("port-info-status", &["port-info status", "timed status"]),
    ("port-info-status=1", &["port-info status", "timed status"]),
    ("resp-time-value", &["port-info resp-time-value"]),
    ("resp-time-value=31", &["port-info resp-time-value"]),
    ("late=2000", &["timed resp-time"]),
    (
        "late=6000",
        &["port-info in-time", "timed in-time", "timed resp-time"],
    ),
    // Without PortInfo in time, its own times are not known.
    ("late=11000", &["port-info in-time"]),
    ("silent=node-info", &["table node-info"]),
    ("silent=switch-info", &["table switch-info"]),
    ("silent=port-info", in_all!("port-state")),
    (
        "silent=linear-forwarding-table",
        &["table set-answered", "table get-answered"],
    ),
];

/// On a DUT that has a key already.
const EXPECTED_WITH_KEY: &[(&str, &[&str])] = &[("one-key", with_all_bits!("restored"))];

/// Faults that nothing can be said of: the DUT does not answer, or not while it is waited for.
const UNDECIDED: &[(&str, &str)] = &[
    (
        "silent",
        "nothing shows that the DUT can be reached by path 0,1",
    ),
    ("late", "a longer `timeout` of the testbed is needed"),
    (
        "drops=1",
        "nothing shows that the DUT can be reached by path 0,1",
    ),
    ("busy=1000", "BUSY 3 times"),
];

fn with(outcomes: &[Outcome], verdict: Verdict) -> BTreeSet<String> {
    outcomes
        .iter()
        .filter(|outcome| outcome.verdict == verdict)
        .map(|outcome| format!("{} {}", outcome.name, outcome.check))
        .collect()
}

fn run(fault: &str) -> Vec<Outcome> {
    each_case(&switch(), MKey(0), &[fault.parse().unwrap()])
}

fn with_key() -> NodeConfig {
    NodeConfig {
        m_key: FOUND,
        m_key_protect_bits: 1,
        m_key_lease_period: 60,
        ..switch()
    }
}

/// Checks of protect bits 2 and 3.
const SILENT: [&str; 5] = [
    "before-wrong-key",
    "no-answer",
    "dut-key-answered",
    "dut-key-value",
    "one-violation",
];

/// Checks that have no subject in a subcase.
fn has_no_subject(outcome: &Outcome) -> bool {
    match outcome.name.as_str() {
        "bits-0" | "bits-1" => SILENT.contains(&outcome.check.as_str()),
        "bits-2" | "bits-3" => ["other-key-answered", "other-key-value", "no-violation"]
            .contains(&outcome.check.as_str()),
        _ => false,
    }
}

#[test]
fn a_switch_without_faults_passes_every_check() {
    for (dut, key) in [
        (switch(), MKey(0)),
        (with_key(), FOUND),
        (
            NodeConfig {
                m_key_protect_bits: 3,
                ..with_key()
            },
            FOUND,
        ),
    ] {
        for outcome in each_case(&dut, key, &[]) {
            let expected = if has_no_subject(&outcome) {
                Verdict::NotApplicable
            } else {
                Verdict::Pass
            };
            assert_eq!(outcome.verdict, expected, "{outcome:?}");
        }
    }
}

#[test]
fn a_channel_adapter_passes_what_is_about_it() {
    for outcome in each_case(&adapter(), MKey(0), &[]) {
        let not_applicable = outcome.name == "table" || has_no_subject(&outcome);
        assert_eq!(
            outcome.verdict,
            if not_applicable {
                Verdict::NotApplicable
            } else {
                Verdict::Pass
            },
            "{outcome:?}"
        );
        if outcome.name == "table" {
            assert!(outcome.reason.contains("ChannelAdapter"), "{outcome:?}");
        }
    }
}

#[test]
fn each_fault_fails_exactly_its_checks() {
    for (fault, expected) in EXPECTED {
        exactly(fault, &run(fault), expected);
    }
    for (fault, expected) in EXPECTED_WITH_KEY {
        exactly(
            fault,
            &each_case(&with_key(), FOUND, &[fault.parse().unwrap()]),
            expected,
        );
    }
}

#[test]
fn all_bits_of_a_key_are_tried_where_that_is_asked_for() {
    for bit in [0, 7, 31, 32, 63] {
        let fault = Fault::IgnoresKeyBit(bit);
        let mut bench = Bench::new(switch(), &[fault]);
        bench.key_bits = KeyBits::All;
        let outcomes = outcomes(KEYS, &bench.case(KEYS));
        exactly(&fault.to_string(), &outcomes, TAKEN_FOR_KEY);
    }
}

/// Without traps, which name a key that was not counted, the counts alone tell.
#[test]
fn wrong_keys_that_are_not_counted_are_told_from_lost_requests() {
    let quiet = NodeConfig {
        master_sm_lid: Lid(0),
        ..switch()
    };
    for fault in ["counts-every-second", "counts-every-third", "no-violations"] {
        let mut bench = Bench::new(quiet.clone(), &[fault.parse().unwrap()]);
        exactly(fault, &outcomes(KEYS, &bench.case(KEYS)), ONE_VIOLATION);
    }
    // One of three is what a lossy link may do too.
    let mut bench = Bench::new(quiet.clone(), &[]);
    let mut repetitions = bench.case(KEYS);
    let zeros: Vec<usize> = (0..repetitions[2].exchanges.len())
        .filter(|index| repetitions[2].exchanges[*index].purpose == Purpose::DutKey)
        .take(3)
        .collect();
    for (count, zero) in zeros.into_iter().enumerate() {
        // M_KeyViolations.
        let answer = repetitions[2].exchanges[zero].answer.as_mut().unwrap();
        answer.octets.0[64 + 44..64 + 46].fill(0);
        let outcomes = outcomes(KEYS, &repetitions);
        assert_eq!(
            with(&outcomes, Verdict::Inconclusive),
            // Nor does anything show that the Get has arrived.
            BTreeSet::from(["bits-2 no-answer", "bits-2 one-violation"].map(str::to_owned)),
            "{count}"
        );
        exactly("lost", &outcomes, &[]);
    }
}

/// The case of a repetition.
fn case_of(repetition: &str) -> &'static str {
    match repetition {
        "table" => TABLE,
        "port-info" => TIMES,
        "timed" => TIMED,
        _ => KEYS,
    }
}

fn exactly(fault: &str, outcomes: &[Outcome], expected: &[&str]) {
    let expected: BTreeSet<String> = expected.iter().map(|line| line.to_string()).collect();
    let reasons: Vec<_> = outcomes
        .iter()
        .filter(|outcome| outcome.verdict == Verdict::Fail)
        .collect();
    assert_eq!(
        with(outcomes, Verdict::Fail),
        expected,
        "{fault}: {reasons:#?}"
    );
    assert!(
        reasons
            .iter()
            .all(|outcome| outcome.reason.contains("expected")),
        "{fault}: {reasons:#?}"
    );
    // Only checks that depend on a failed check are skipped.
    for outcome in outcomes
        .iter()
        .filter(|outcome| outcome.verdict == Verdict::Skipped)
    {
        let check = known(case_of(&outcome.name))
            .case
            .checks
            .iter()
            .find(|check| check.id == outcome.check)
            .unwrap();
        let failed = |on: &&str| {
            let same = |other: &&Outcome| other.name == outcome.name && other.check == **on;
            outcomes
                .iter()
                .filter(same)
                .any(|other| matches!(other.verdict, Verdict::Fail | Verdict::Skipped))
        };
        assert!(check.depends_on.iter().any(failed), "{fault}: {outcome:?}");
    }
}

#[test]
fn what_cannot_be_reached_is_inconclusive() {
    for (fault, reason) in UNDECIDED {
        for outcome in run(fault) {
            let allowed = if has_no_subject(&outcome) {
                outcome.verdict == Verdict::NotApplicable
            } else if outcome.check == "single-answer" {
                // Nothing that was seen contradicts it, but for what came late before it was known
                // what late is.
                matches!(outcome.verdict, Verdict::Pass | Verdict::Inconclusive)
            } else {
                outcome.verdict == Verdict::Inconclusive && outcome.reason.contains(reason)
            };
            assert!(allowed, "{fault}: {outcome:?}");
        }
    }
}

#[test]
fn a_violation_that_is_not_cleared_is_not_counted_twice() {
    let outcomes = run("keeps-violations");
    assert_eq!(
        with(&outcomes, Verdict::Skipped),
        BTreeSet::from(["bits-2 one-violation", "bits-3 one-violation"].map(str::to_owned))
    );
}

#[test]
fn every_fault_of_the_catalogue_is_here() {
    let recovered = ["busy", "busy-wrong-key", "drops"];
    for entry in Fault::CATALOGUE {
        let is_here = |list: &[(&str, &[&str])]| {
            list.iter()
                .any(|(fault, _)| fault.split('=').next() == Some(entry.name))
        };
        let undecided = UNDECIDED
            .iter()
            .any(|(fault, _)| fault.split('=').next() == Some(entry.name));
        // `refuses-lid-0` is tested with a DUT that no subnet manager has configured.
        let undecided = undecided || entry.name == "refuses-lid-0";
        let found = is_here(EXPECTED)
            || is_here(EXPECTED_WITH_KEY)
            || undecided
            || recovered.contains(&entry.name);
        assert!(found, "{}", entry.name);
    }
}

/// Prefix in the catalogue for a fault that fails no check.
const NO_CHECK: &str = "none: ";

#[test]
fn the_catalogue_names_the_checks_that_each_fault_fails() {
    for entry in Fault::CATALOGUE {
        let expected = EXPECTED.iter().chain(EXPECTED_WITH_KEY);
        let of = expected.filter(|(fault, _)| fault.split('=').next() == Some(entry.name));
        let checks = of.flat_map(|(_, checks)| checks.iter());
        let fails: BTreeSet<_> = checks
            .filter_map(|check| Some(check.split_once(' ')?.1))
            .collect();
        let named = match entry.fails.strip_prefix(NO_CHECK) {
            Some(_) => BTreeSet::new(),
            None => entry.fails.split(", ").collect(),
        };
        assert_eq!(named, fails, "{}", entry.name);
    }
}

#[test]
fn the_fault_that_a_table_names_fails_that_check() {
    for case in &CASES {
        for check in case.case.checks {
            let mut named = EXPECTED
                .iter()
                .chain(EXPECTED_WITH_KEY)
                .filter(|(fault, _)| *fault == check.fault);
            let fails = |(_, checks): &(&str, &[&str])| {
                checks.iter().any(|line| {
                    let (repetition, failing) = line.split_once(' ').unwrap();
                    failing == check.id && case_of(repetition) == case.case.id
                })
            };
            assert!(
                named.any(fails),
                "{} {} by {}",
                case.case.id,
                check.id,
                check.fault
            );
        }
    }
}
