//! Repetitions that were measured more than once: the verdict over all attempts, and the reason
//! for another one. Pure: the same attempts always give the same.

use super::judge::reason_to_skip;
use super::pfc::PfcCase;
use super::registry::{Known, find};
use crate::evidence::pfc::PfcEvidence;
use crate::evidence::{CaseEvidence, Repetition};
use crate::verdict::{AttemptResult, CheckResult, Judged, Verdict};

/// The attempts at the repetition of that name, in their order.
pub(super) fn of<'e>(evidence: &'e CaseEvidence, name: &str) -> Vec<&'e PfcEvidence> {
    let all = evidence.repetitions.iter().filter_map(Repetition::pfc);
    let mut attempts: Vec<_> = all.filter(|attempt| attempt.plan.name == name).collect();
    attempts.sort_by_key(|attempt| attempt.attempt);
    attempts
}

/// The name that figures of an attempt before the last one have.
pub(crate) fn of_attempt(repetition: &str, attempt: u32) -> String {
    format!("{repetition}, attempt {attempt}")
}

/// Judges all attempts at a repetition, at least one; and each by itself, where there are several.
pub(super) fn judge(case: &PfcCase, attempts: &[&PfcEvidence]) -> (Judged, Vec<AttemptResult>) {
    if let [only] = attempts {
        return (case.judge(only), Vec::new());
    }
    let (mut figures, mut results) = (Vec::new(), Vec::new());
    for (index, evidence) in attempts.iter().enumerate() {
        let mut judged = case.judge(evidence);
        if index + 1 < attempts.len() {
            for figure in &mut judged.figures {
                figure.repetition = of_attempt(&figure.repetition, evidence.attempt);
            }
        }
        figures.append(&mut judged.figures);
        results.push(AttemptResult {
            repetition: evidence.plan.name.clone(),
            attempt: evidence.attempt,
            checks: judged.checks,
        });
    }
    let judged = Judged {
        checks: combine(case, &results),
        figures,
        ..Judged::default()
    };
    (judged, results)
}

/// The result of each check over all attempts: a failure in any of them is one, else a pass of any
/// is one. What depends on a check that did not pass is skipped, as in one attempt.
fn combine(case: &PfcCase, attempts: &[AttemptResult]) -> Vec<CheckResult> {
    let mut combined: Vec<CheckResult> = Vec::new();
    for check in case.case.checks {
        let of_check = attempts.iter().flat_map(|attempt| {
            let found = attempt
                .checks
                .iter()
                .filter(|found| found.check == check.id);
            found.map(move |found| (attempt.attempt, found))
        });
        // The last of equal verdicts counts, as the figures that are shown first are its own.
        let Some((attempt, found)) = of_check.max_by_key(|(_, found)| rank(found.verdict)) else {
            continue;
        };
        let mut found = found.clone();
        if matches!(found.verdict, Verdict::Pass | Verdict::Inconclusive)
            && let Some(reason) = reason_to_skip(check.depends_on, &combined)
        {
            (found.verdict, found.reason) = (Verdict::Skipped, reason);
            (found.assertions, found.causes) = (Vec::new(), Vec::new());
        } else if matches!(
            found.verdict,
            Verdict::Fail | Verdict::Error | Verdict::Inconclusive
        ) {
            found.reason = format!("attempt {attempt} of {}: {}", attempts.len(), found.reason);
        }
        combined.push(found);
    }
    combined
}

/// Rank of a verdict among those of several attempts: as among checks, but that a pass counts more
/// than what another attempt left open.
fn rank(verdict: Verdict) -> Verdict {
    match verdict {
        Verdict::Pass => Verdict::Inconclusive,
        Verdict::Inconclusive => Verdict::Pass,
        other => other,
    }
}

/// The reason for measuring the last repetition of the evidence again: a check that no attempt
/// decided, and that another one may decide. `None`: there is no use in it.
pub fn again(evidence: &CaseEvidence) -> Option<String> {
    let Some(Known::Pfc(case, ())) = find(&evidence.case) else {
        return None;
    };
    let last = evidence.repetitions.last().and_then(Repetition::pfc)?;
    if last.interrupted {
        return None;
    }
    let open = case.open(last);
    let (judged, _) = judge(case, &of(evidence, &last.plan.name));
    let undecided = judged.checks.into_iter().find(|found| {
        found.verdict == Verdict::Inconclusive && open.contains(&found.check.as_str())
    })?;
    Some(format!("{}: {}", undecided.check, undecided.reason))
}
