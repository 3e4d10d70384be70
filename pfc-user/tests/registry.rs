//! Every registered case has all that a user needs of it: a document, a table whose rows hold
//! together, a fault for each check, and a plan.
//!
//! lane: computing

use std::path::Path;

use pfc_ebpf::units::LineRate;
use validator::case::{Case, Check};
use validator::config::{self, DEFAULT_PLAN, PlanChoice};
use validator::{cases, fault, run};

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
            assert!(!check.step.is_empty(), "{at} names no step");
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
    let testbed = Path::new(env!("CARGO_MANIFEST_DIR")).join("../configs/testbeds/sim.toml");
    let known: Vec<&str> = cases::all().iter().map(|case| case.id).collect();
    let line_rate = LineRate::from_bits_per_second(1_000_000_000).unwrap();
    let plans = [DEFAULT_PLAN, "pfc-further", "mad-siblings"].map(|plan| {
        let choice = PlanChoice::Plan(plan.into());
        let config = config::load(&testbed, &choice, &[], &known).unwrap();
        run::plan(&config, Some(line_rate)).unwrap()
    });
    for id in &known {
        let of_case = plans
            .iter()
            .flatten()
            .find(|planned| planned.case.id == *id);
        let repetitions = of_case.map_or(0, |planned| planned.repetitions.len());
        assert!(repetitions > 0, "no plan has any of {id}");
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
