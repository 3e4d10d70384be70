//! Every registered case has all that a user needs of it: a document, a table whose rows hold
//! together, a fault for each check, and a plan.
//!
//! lane: computing

mod evidence;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use pfc_ebpf::units::LineRate;
use validator::config::{self, Config, DEFAULT_PLAN, PlanChoice};
use validator::run;
use validator_core::cases::Task;
use validator_core::plan::mad::{ATTEMPTS, Difference, MadPlan, MadStimulus};
use validator_core::verdict::{Case, Check};
use validator_core::{cases, fault};

/// That built-in plan on the simulated testbed.
fn simulated(plan: &str) -> Config {
    on("sim", plan)
}

/// The plan on a testbed of the repository.
fn on(testbed: &str, plan: &str) -> Config {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../configs/testbeds");
    let testbed = folder.join(format!("{testbed}.toml"));
    config::load(&testbed, &PlanChoice::Plan(plan.into()), &[]).unwrap()
}

/// The speed of the simulated testbed's links.
fn line_rate() -> LineRate {
    LineRate::from_bits_per_second(1_000_000_000).unwrap()
}

/// True if the family's simulated device has that fault.
fn is_fault(case: &Case, name: &str) -> bool {
    match case.id.split_once('.') {
        Some(("pfc", _)) => name.parse::<fault::switch::Fault>().is_ok(),
        Some(("mad", _)) => name.parse::<fault::sma::Fault>().is_ok(),
        Some(("rc", _)) => name.parse::<fault::requester::Fault>().is_ok(),
        _ => panic!("{} is of no family with a simulated device", case.id),
    }
}

#[test]
fn each_case_has_a_document_and_steps() {
    for case in cases::all() {
        for (what, words) in [
            ("title", case.title),
            ("requirement", case.requirement),
            ("document", case.document),
        ] {
            assert!(!words.is_empty(), "{} has no {what}", case.id);
        }
        assert!(!case.steps.is_empty(), "{} has no steps", case.id);
    }
}

#[test]
fn each_case_has_a_table_whose_rows_depend_on_earlier_ones() {
    for case in cases::all() {
        assert!(!case.checks.is_empty(), "{} has no checks", case.id);
        for (index, check) in case.checks.iter().enumerate() {
            let (at, earlier) = (format!("{} {}", case.id, check.id), &case.checks[..index]);
            let is_earlier = |id: &str| earlier.iter().any(|earlier: &Check| earlier.id == id);
            assert!(!is_earlier(check.id), "{at} stands twice");
            assert!(!check.passes_when.is_empty(), "{at} never passes");
            for step in check.steps {
                let is_one = !step.is_empty() && !step.contains(',');
                assert!(is_one, "{at} names the step {step:?}");
            }
            for on in check.depends_on {
                assert!(is_earlier(on), "{at} depends on {on}");
            }
        }
    }
}

#[test]
fn each_check_names_a_fault_of_the_simulated_device() {
    for case in cases::all() {
        for check in case.checks {
            assert!(
                is_fault(case, check.fault),
                "{} {} names the fault {:?}",
                case.id,
                check.id,
                check.fault
            );
        }
    }
}

#[test]
fn assertions_of_documents_name_checks_of_their_case() {
    for case in cases::all() {
        let ids: Vec<&str> = case.checks.iter().map(|check| check.id).collect();
        for assertion in case.assertions {
            for check in assertion.checks {
                assert!(ids.contains(check), "{} {}: {check}", case.id, assertion.id);
            }
        }
    }
}

#[test]
fn a_built_in_plan_has_repetitions_of_each_case_on_the_simulated_testbed() {
    let further = "pfc-further";
    let plans = [
        simulated(DEFAULT_PLAN),
        simulated(further),
        on("sim-four-ports", further),
        simulated("mad-siblings"),
    ]
    .map(|config| run::plan(&config, Some(line_rate())).unwrap());
    for case in cases::all() {
        let all = plans.iter().flatten();
        let of_case = all.filter(|planned| planned.case.id == case.id);
        let repetitions: usize = of_case.map(|planned| planned.repetitions.len()).sum();
        assert!(repetitions > 0, "no plan has any of {}", case.id);
    }
}

/// The least time of the built-in plans on the simulated testbed while each repetition had three
/// pauses of 65535 quanta that ran out, and in cases 1 and 2 three more that XON ended after a
/// third. Probes of many kinds took their place, and may add a tenth to the whole.
const WITH_PROBES_OF_ONE_KIND: [(&str, u64); 2] =
    [("pfc", 87_553_139_113), ("smoke", 10_137_053_914)];

#[test]
fn probes_of_many_kinds_take_no_more_than_a_tenth_of_a_plan() {
    for (plan, reference) in WITH_PROBES_OF_ONE_KIND {
        let config = simulated(plan);
        let planned = run::plan(&config, Some(line_rate())).unwrap();
        let repetitions = planned.iter().flat_map(|planned| &planned.repetitions);
        let nanos: u64 = repetitions.map(Task::shortest).sum();
        assert!(nanos <= reference + reference / 10, "{plan}: {nanos} ns");
    }
}

/// The bits of M_KEY_DUT that the plan tries one at a time, by protect bits, in their order.
fn key_bits(config: &Config) -> BTreeMap<u8, Vec<u8>> {
    let planned = run::plan(config, None).unwrap();
    let subcases = planned.iter().flat_map(|planned| &planned.repetitions);
    let subcases = subcases.filter_map(|task| match task {
        Task::Mad(_, plan) => match plan.stimulus {
            MadStimulus::MKeyGet(protect_bits) => Some((protect_bits, single_bits(plan))),
            _ => None,
        },
        _ => None,
    });
    subcases.collect()
}

/// The bits in which single wrong keys differ from M_KEY_DUT.
fn single_bits(plan: &MadPlan) -> Vec<u8> {
    let first = (0..plan.differences().len() as u32).map(|index| 1 + index * ATTEMPTS);
    let bits = first.filter_map(|attempt| match plan.trial(attempt).0 {
        Difference::Bit(bit) => {
            assert_eq!(plan.wrong_key(attempt) ^ plan.m_key_dut, 1 << bit);
            Some(bit)
        }
        _ => None,
    });
    bits.collect()
}

#[test]
fn the_plan_mad_draws_eight_bits_of_a_key_and_mad_full_tries_each_of_the_64_once() {
    let all: Vec<u8> = (0..64).collect();
    let full = key_bits(&simulated("mad-full"));
    let expected = [vec![], all.clone(), all.clone(), all.clone()];
    let expected: BTreeMap<u8, Vec<u8>> = (0..=3).zip(expected).collect();
    assert_eq!(full, expected);

    // So many draws lack one of the eight sets once in 10^22 times.
    let mad = simulated("mad");
    let draws: BTreeSet<_> = (0..400).map(|_| key_bits(&mad)).collect();
    assert_eq!(draws.len(), 8);
    for draw in &draws {
        let tried: BTreeSet<_> = draw.values().flatten().collect();
        assert_eq!(tried.len(), 24, "{draw:?}");
    }
    for protect_bits in 1..=3 {
        let mut tried: Vec<u8> = draws
            .iter()
            .flat_map(|draw| draw[&protect_bits].clone())
            .collect();
        tried.sort_unstable();
        assert_eq!(tried, all, "eight sets at protect bits {protect_bits}");
    }
}

#[test]
fn pages_on_adding_something_name_files_that_there_are() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for page in ["adding-a-case", "adding-a-header"] {
        let text = std::fs::read_to_string(root.join(format!("docs/{page}.md"))).unwrap();
        let is_path_char = |letter: char| letter.is_ascii_alphanumeric() || "_-./".contains(letter);
        let words = text.split(|letter| !is_path_char(letter));
        let named: Vec<&str> = words
            .filter(|word| word.ends_with(".rs") || word.ends_with(".toml"))
            .filter(|word| {
                ["pfc-user/", "ib-mad/", "configs/", "tests/"]
                    .iter()
                    .any(|of| word.starts_with(of))
            })
            .collect();
        assert!(named.len() > 5, "{page}: {named:?}");
        for path in named {
            let exists = root.join(path).exists() || root.join("pfc-user").join(path).exists();
            assert!(exists, "{path} is named in docs/{page}.md");
        }
    }
}
