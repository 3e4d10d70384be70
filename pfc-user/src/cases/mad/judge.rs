//! From evidence to checks: pure, so that stored evidence gives the same verdict again.

mod consistency;
mod contact;
mod figures;
mod forwarding_table;
mod m_key;
mod steps;
mod strays;
mod view;

pub(super) use contact::PORT_STATE;
pub(super) use strays::SINGLE_ANSWER;
use view::View;

use crate::case::{Case, Check, CheckResult, Judged, Verdict};
use crate::cases::finding::{self, Finding};
use crate::evidence::mad::MadEvidence;

/// The function behind a check of that name; `None` if there is no such check.
fn judge_of(check: &str) -> Option<fn(&View<'_>) -> Finding> {
    Some(match check {
        "port-state" => contact::port_state,
        "node-info" => forwarding_table::node_info,
        "switch-info" => forwarding_table::switch_info,
        "random-fdb-cap" => forwarding_table::random_fdb_cap,
        "set-answered" => forwarding_table::set_answered,
        "set-attribute" => forwarding_table::set_attribute,
        "set-modifier" => forwarding_table::set_modifier,
        "set-status" => forwarding_table::set_status,
        "get-answered" => forwarding_table::get_answered,
        "get-attribute" => forwarding_table::get_attribute,
        "get-modifier" => forwarding_table::get_modifier,
        "get-status" => forwarding_table::get_status,
        "get-data" => forwarding_table::get_data,
        "key-set" => m_key::key_set,
        "own-key-answered" => m_key::own_key_answered,
        "own-key-value" => m_key::own_key_value,
        "other-key-answered" => m_key::other_key_answered,
        "other-key-value" => m_key::other_key_value,
        "no-violation" => m_key::no_violation,
        "no-answer" => m_key::no_answer,
        "dut-key-answered" => m_key::dut_key_answered,
        "one-violation" => m_key::one_violation,
        "reset" => m_key::reset,
        "restored" => m_key::restored,
        "single-answer" => strays::single_answer,
        _ => return None,
    })
}

/// Why a precondition of that name is not met.
fn unmet(precondition: &str, view: &View<'_>) -> Option<String> {
    match precondition {
        "port-state" => {
            let Finding {
                verdict, reason, ..
            } = contact::port_state(view);
            (verdict != Verdict::Pass).then_some(reason)
        }
        "m-key" => contact::other_m_key(view),
        other => Some(format!("there is no precondition `{other}`")),
    }
}

/// Judges one repetition by the case's table, in its order.
pub(super) fn repetition(case: &Case, e: &MadEvidence) -> Judged {
    let view = match View::new(e) {
        Ok(view) => view,
        Err(contradiction) => {
            let reason = format!("the evidence contradicts itself: {contradiction}");
            let checks = case.checks.iter().map(|check| {
                result(
                    check,
                    e,
                    Finding {
                        verdict: Verdict::Error,
                        reason: reason.clone(),
                        ..Finding::new()
                    },
                )
            });
            return Judged {
                checks: checks.collect(),
                ..Judged::default()
            };
        }
    };
    let not_applicable = forwarding_table::not_applicable(&view);
    let mut checks: Vec<CheckResult> = Vec::new();
    for check in case.checks {
        let finding = match &not_applicable {
            Some(reason) => Finding::not_applicable(reason.clone()),
            None => judge(check, &view, &checks),
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

fn result(check: &Check, e: &MadEvidence, finding: Finding) -> CheckResult {
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
    let finding = judge(view);
    if finding.verdict == Verdict::NotApplicable {
        return finding;
    }
    // What became of the DUT's key is told in any case.
    if view.e.interrupted && check.id != "restored" {
        return with(
            Verdict::Inconclusive,
            "the repetition was interrupted".into(),
        );
    }
    let finding = name_error(view, finding);
    if let Some(reason) = check.skipped_for(earlier) {
        return with(Verdict::Skipped, reason);
    }
    let unmet: Vec<String> = check
        .preconditions
        .iter()
        .filter_map(|name| unmet(name, view).map(|why| format!("{name}: {why}")))
        .collect();
    if unmet.is_empty() {
        return finding;
    }
    name_error(
        view,
        Finding {
            verdict: Verdict::Inconclusive,
            reason: unmet.join("; "),
            ..finding
        },
    )
}

/// What was not decided because the tester or its surroundings failed says so.
fn name_error(view: &View<'_>, finding: Finding) -> Finding {
    match view.e.error() {
        Some(error) if finding.verdict == Verdict::Inconclusive => Finding {
            reason: format!("{error}; {}", finding.reason),
            ..finding
        },
        _ => finding,
    }
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
                    check.fault.is_empty()
                        || check.fault.parse::<ib_mad::sma::fault::Fault>().is_ok(),
                    "{} {}",
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
                for name in check.preconditions {
                    assert!(
                        matches!(*name, "port-state" | "m-key"),
                        "{} {} has precondition {name}",
                        case.id,
                        check.id
                    );
                }
            }
            for assertion in case.assertions {
                for id in assertion.checks {
                    assert!(
                        case.checks.iter().any(|check| check.id == *id),
                        "{} {}: {id}",
                        case.id,
                        assertion.id
                    );
                }
            }
        }
    }
}
