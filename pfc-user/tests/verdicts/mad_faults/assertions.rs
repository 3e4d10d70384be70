//! An assertion of a document passes only if every check that decides it passed or is not
//! applicable, and one passed: by the real tables, on the agent with each fault.

use ib_mad::sma::fault::Fault;
use validator_core::verdict::{CaseResult, CheckResult, DocumentAssertion, Verdict};

use super::bench::{Bench, KEYS, TABLE, known, result, switch};

fn judged(case: &str, faults: &[&str]) -> CaseResult {
    let faults: Vec<Fault> = faults.iter().map(|name| name.parse().unwrap()).collect();
    result(case, &Bench::new(switch(), &faults).case(case))
}

fn outcome(result: &CaseResult, id: &str) -> Option<Verdict> {
    let found = result.assertions.iter().find(|found| found.id == id);
    found.unwrap().verdict
}

fn is_decided_by(assertion: &DocumentAssertion, check: &CheckResult) -> bool {
    let about = assertion.repetitions.is_empty()
        || assertion.repetitions.contains(&check.repetition.as_str());
    about && assertion.checks.contains(&check.check.as_str())
}

/// Verdicts of the checks that decide an assertion.
fn deciding(result: &CaseResult, id: &str) -> Vec<Verdict> {
    let assertions = known(&result.case).case.assertions;
    let assertion = assertions.iter().find(|known| known.id == id).unwrap();
    let checks = result.checks.iter();
    checks
        .filter(|check| is_decided_by(assertion, check))
        .map(|check| check.verdict)
        .collect()
}

#[test]
fn an_assertion_with_a_skipped_check_does_not_pass() {
    const ID: &str = "v1c14-029#01.01";
    assert_eq!(outcome(&judged(KEYS, &[]), ID), Some(Verdict::Pass));
    // The key or its protect bits are not set: the Get with the other key proves nothing then.
    for fault in ["ignores-key-set", "ignores-protect-bits", "forgets-key"] {
        let result = judged(KEYS, &[fault]);
        let verdicts = deciding(&result, ID);
        let known = [Verdict::Pass, Verdict::Skipped, Verdict::NotApplicable];
        assert!(verdicts.contains(&Verdict::Pass), "{fault}: {verdicts:?}");
        assert!(
            verdicts.contains(&Verdict::Skipped),
            "{fault}: {verdicts:?}"
        );
        assert!(
            verdicts.iter().all(|verdict| known.contains(verdict)),
            "{fault}: {verdicts:?}"
        );
        assert_eq!(outcome(&result, ID), Some(Verdict::Inconclusive), "{fault}");
    }
}

#[test]
fn an_assertion_about_an_answer_does_not_pass_without_one() {
    const ID: &str = "v1c13-024#07";
    assert_eq!(outcome(&judged(TABLE, &[]), ID), Some(Verdict::Pass));
    for fault in ["silent", "silent=linear-forwarding-table", "drops=1"] {
        let result = judged(TABLE, &[fault]);
        let verdicts = deciding(&result, ID);
        assert!(!verdicts.contains(&Verdict::Pass), "{fault}: {verdicts:?}");
        assert_eq!(outcome(&result, ID), Some(Verdict::Inconclusive), "{fault}");
    }
}

#[test]
fn no_assertion_passes_but_by_the_rule() {
    let mut passed = 0;
    for case in [TABLE, KEYS] {
        for fault in Fault::CATALOGUE {
            let result = judged(case, &[fault.name]);
            for assertion in known(case).case.assertions {
                let verdicts = deciding(&result, assertion.id);
                let holds =
                    |verdict: &Verdict| matches!(verdict, Verdict::Pass | Verdict::NotApplicable);
                let passes = verdicts.contains(&Verdict::Pass) && verdicts.iter().all(holds);
                assert_eq!(
                    outcome(&result, assertion.id) == Some(Verdict::Pass),
                    passes,
                    "{case} with {}: {} by {verdicts:?}",
                    fault.name,
                    assertion.id
                );
                passed += usize::from(passes);
            }
        }
    }
    assert!(passed > 0, "none passed at all");
}
