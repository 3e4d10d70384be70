//! From evidence to checks: pure, so that stored evidence gives the same verdict again.

mod consistency;
mod delivery;
mod finding;
mod integrity;
mod mac;
mod preconditions;
mod probe;
mod throughput;

use finding::Finding;

use crate::case::{Assertion, Case, Check, CheckResult, Figure, Verdict};
use crate::evidence::pfc::PfcEvidence;

/// The function behind a check of that name; `None` if there is no such check.
fn judge_of(check: &str) -> Option<fn(&PfcEvidence) -> Finding> {
    Some(match check {
        "paused" => delivery::paused,
        "background" => delivery::background,
        "isolation" => delivery::isolation,
        "delivered" => delivery::delivered,
        "resume" => delivery::resume,
        "test-traffic" | "no-loss" => delivery::test_undisturbed,
        "response" => probe::response,
        "xon" => probe::xon,
        "no-dip" => throughput::no_dip,
        "throughput" => throughput::throughput,
        "no-pfc-on-lossy" => integrity::no_pfc_on_lossy,
        "no-duplicate" => integrity::no_duplicate,
        "no-reorder" => integrity::no_reorder,
        "no-corruption" => integrity::no_corruption,
        "no-remark" => integrity::no_remark,
        "no-mac-control-forwarded" => integrity::no_mac_control_forwarded,
        _ => return None,
    })
}

/// Judges one repetition by the case's table, in its order.
pub(super) fn repetition(case: &Case, e: &PfcEvidence) -> (Vec<CheckResult>, Vec<Figure>) {
    let mut results: Vec<CheckResult> = Vec::new();
    if let Err(contradiction) = consistency::check(e) {
        let reason = format!("the evidence contradicts itself: {contradiction}");
        results.extend(
            case.checks
                .iter()
                .map(|check| result(check, e, Verdict::Error, reason.clone(), Vec::new())),
        );
        return (results, Vec::new());
    }
    for check in case.checks {
        let result = judge(check, e, &results);
        results.push(result);
    }
    (results, throughput::figures(e))
}

fn result(
    check: &Check,
    e: &PfcEvidence,
    verdict: Verdict,
    reason: String,
    assertions: Vec<Assertion>,
) -> CheckResult {
    CheckResult {
        check: check.id.into(),
        repetition: e.plan.name.clone(),
        verdict,
        reason,
        assertions,
    }
}

fn judge(check: &Check, e: &PfcEvidence, earlier: &[CheckResult]) -> CheckResult {
    if let Some(reason) = check.skipped_for(earlier) {
        return result(check, e, Verdict::Skipped, reason, Vec::new());
    }
    if e.interrupted {
        return result(
            check,
            e,
            Verdict::Inconclusive,
            "the repetition was interrupted".into(),
            Vec::new(),
        );
    }
    let Some(judge) = judge_of(check.id) else {
        return result(
            check,
            e,
            Verdict::Error,
            format!("the check `{}` has no judge", check.id),
            Vec::new(),
        );
    };
    let Finding {
        verdict,
        reason,
        assertions,
        certain,
    } = judge(e);
    if verdict == Verdict::NotApplicable {
        return result(check, e, verdict, reason, assertions);
    }
    let proven = verdict == Verdict::Fail && certain;
    let unmet: Vec<String> = check
        .preconditions
        .iter()
        .filter(|name| !proven || preconditions::explains(name, check.id))
        .filter_map(|name| {
            preconditions::met(name, check.id, e)
                .err()
                .map(|why| format!("{name}: {why}"))
        })
        .collect();
    if unmet.is_empty() {
        return result(check, e, verdict, reason, assertions);
    }
    result(
        check,
        e,
        Verdict::Inconclusive,
        unmet.join("; "),
        assertions,
    )
}

#[cfg(test)]
mod tests {
    use super::super::CASES;
    use super::*;

    #[test]
    fn every_check_of_every_table_has_a_judge_and_known_names() {
        for case in CASES.iter().map(|case| &case.case) {
            for (index, check) in case.checks.iter().enumerate() {
                assert!(judge_of(check.id).is_some(), "{} {}", case.id, check.id);
                assert!(
                    !check.fault.is_empty(),
                    "{} {} names no fault",
                    case.id,
                    check.id
                );
                for on in check.depends_on {
                    assert!(
                        case.checks[..index].iter().any(|earlier| earlier.id == *on),
                        "{} {} depends on {on}",
                        case.id,
                        check.id
                    );
                }
            }
        }
    }
}
