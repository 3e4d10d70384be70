//! Each fault of the simulated switch, in virtual time: exactly these checks fail, and a switch without faults passes all.

mod bench;

use validator::case::Verdict;
use validator::cases::pfc::judge;
use validator::dut::switch::fault::Fault;

/// The repetitions of a short plan of all four cases.
const REPETITIONS: [(&str, &[u8], Option<&[u8]>); 5] = [
    ("pfc.pause-single-lossless", &[3], None),
    ("pfc.pause-multi-lossless", &[3, 4], None),
    ("pfc.pause-multi-lossless", &[3, 4], Some(&[3])),
    ("pfc.pause-lossy", &[3], None),
    ("pfc.global-pause", &[3, 4], None),
];

/// Runs all repetitions; `case check verdict` for each check that does not pass and is not without subject.
fn not_passed(faults: &[Fault]) -> Vec<String> {
    let mut found = Vec::new();
    for (id, lossless, storm) in REPETITIONS {
        let plan = bench::plan(id, lossless, storm);
        let evidence = bench::run(&plan, faults);
        let (checks, _) = judge(&bench::case(id).case, &evidence);
        for check in checks {
            if !matches!(check.verdict, Verdict::Pass | Verdict::NotApplicable) {
                let line = format!("{} {} {}", id.trim_start_matches("pfc."), check.check, check.verdict);
                println!("{line}: {}: {}", check.repetition, check.reason);
                if !found.contains(&line) {
                    found.push(line);
                }
            }
        }
    }
    found.sort();
    found
}

#[test]
fn a_switch_without_faults_passes_every_check() {
    assert_eq!(not_passed(&[]), Vec::<String>::new());
}

#[test]
fn each_fault_fails_exactly_its_checks() {
    for fault in Fault::CATALOGUE {
        println!("== {}", fault.name);
        let text = if fault.name == "drops" { "drops=lossy" } else { fault.name };
        for line in not_passed(&[text.parse().unwrap()]) {
            println!("   {line}");
        }
    }
}
