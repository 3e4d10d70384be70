//! From evidence to checks: pure, so that stored evidence gives the same verdict again.

mod completion;
mod control;
mod figures;
mod preconditions;
mod requests;
mod steps;
mod view;

use view::View;

use crate::case::{Case, Check, CheckResult, Judged, Verdict};
use crate::cases::finding::Finding;
use crate::evidence::rc::{Phase, RcEvidence};
use crate::plan::Nanos;

/// The function behind a check of that name; `None` if there is no such check.
fn judge_of(check: &str) -> Option<fn(&View<'_>) -> Finding> {
    Some(match check {
        "qualifier" => preconditions::qualifier,
        "path-alive" => control::path_alive,
        "requests" => requests::requests,
        "single-packet" => requests::single_packet,
        "same-request" => requests::same_request,
        "interval" => requests::interval,
        "retry-count" => requests::retry_count,
        "one-completion" => completion::one_completion,
        "status" => completion::status,
        "qp-error" => completion::qp_error,
        "flush" => completion::flush,
        _ => return None,
    })
}

/// Judges one repetition by the case's table, in its order.
pub(super) fn repetition(case: &Case, e: &RcEvidence) -> Judged {
    let view = match View::new(e) {
        Ok(view) => view,
        Err(contradiction) => {
            let reason = format!("the evidence contradicts itself: {contradiction}");
            let with = |check| {
                result(
                    check,
                    e,
                    Finding {
                        verdict: Verdict::Error,
                        reason: reason.clone(),
                        ..Finding::new()
                    },
                )
            };
            return Judged {
                checks: case.checks.iter().map(with).collect(),
                ..Judged::default()
            };
        }
    };
    let qualifier = preconditions::qualifier(&view);
    let mut checks: Vec<CheckResult> = Vec::new();
    for check in case.checks {
        let finding = match qualifier.verdict {
            Verdict::NotApplicable => qualifier.clone(),
            _ => judge(check, &view, &checks),
        };
        checks.push(result(check, e, finding));
    }
    let steps = steps::of(case, &view, &checks);
    Judged {
        steps,
        figures: figures::of(&view),
        checks,
    }
}

fn result(check: &Check, e: &RcEvidence, finding: Finding) -> CheckResult {
    let Finding {
        verdict,
        reason,
        assertions,
    } = finding;
    CheckResult {
        check: check.id.into(),
        repetition: e.plan.name.clone(),
        verdict,
        reason,
        assertions,
    }
}

fn judge(check: &Check, view: &View<'_>, earlier: &[CheckResult]) -> Finding {
    let with = |verdict, reason| Finding {
        verdict,
        reason,
        ..Finding::new()
    };
    let Some(judge) = judge_of(check.id) else {
        return with(
            Verdict::Error,
            format!("the check `{}` has no judge", check.id),
        );
    };
    if view.e.interrupted && check.id != "qualifier" {
        return with(
            Verdict::Inconclusive,
            "the repetition was interrupted".into(),
        );
    }
    if let Some(reason) = check.skipped_for(earlier) {
        return with(Verdict::Skipped, reason);
    }
    let finding = judge(view);
    if finding.verdict == Verdict::NotApplicable {
        return finding;
    }
    let phase = if check.id == "path-alive" {
        &view.e.control
    } else {
        &view.e.test
    };
    let unmet = |name: &&str| {
        preconditions::unmet(name, view, phase.as_ref()).map(|why| format!("{name}: {why}"))
    };
    let unmet: Vec<String> = check.preconditions.iter().filter_map(unmet).collect();
    if unmet.is_empty() {
        return finding;
    }
    Finding {
        verdict: Verdict::Inconclusive,
        reason: unmet.join("; "),
        ..finding
    }
}

/// The test was not reached.
fn no_test() -> Finding {
    Finding::not_reached("the test was not reached")
}

/// Nanoseconds as milliseconds for people.
fn ms(nanos: Nanos) -> String {
    format!("{:.3} ms", nanos as f64 / 1e6)
}

/// A state of a queue pair for people.
fn state(phase: &Phase) -> Option<String> {
    phase.after.map(|after| format!("{:?}", after.state))
}

#[cfg(test)]
mod tests {
    use super::super::CASES;
    use super::*;

    #[test]
    fn every_check_of_the_table_has_a_judge_and_known_names() {
        for case in CASES.iter().map(|case| &case.case) {
            for (index, check) in case.checks.iter().enumerate() {
                assert!(judge_of(check.id).is_some(), "{}", check.id);
                for on in check.depends_on {
                    assert!(
                        case.checks[..index].iter().any(|earlier| earlier.id == *on),
                        "{} depends on {on}",
                        check.id
                    );
                }
                for name in check.preconditions {
                    let known = [
                        "qualifier",
                        "neighbour",
                        "path",
                        "attributes",
                        "records",
                        "drops",
                    ];
                    assert!(known.contains(name), "{} has precondition {name}", check.id);
                }
            }
            for assertion in case.assertions {
                for id in assertion.checks {
                    assert!(
                        case.checks.iter().any(|check| check.id == *id),
                        "{}: {id}",
                        assertion.id
                    );
                }
            }
        }
    }
}
