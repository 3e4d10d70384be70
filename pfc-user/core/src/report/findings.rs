//! Results that did not pass, in words that all reports share: equal ones are listed once, and
//! counts say what they count.

use crate::verdict::{Assertion, CaseResult, CheckResult, Verdict};

/// Verdicts in the order of their interest to a reader.
pub(super) const ORDER: [Verdict; 6] = [
    Verdict::Fail,
    Verdict::Error,
    Verdict::Inconclusive,
    Verdict::Pass,
    Verdict::Skipped,
    Verdict::NotApplicable,
];

/// Place of a verdict in that order.
pub(super) fn rank(verdict: Verdict) -> usize {
    let place = ORDER.iter().position(|known| *known == verdict);
    place.unwrap_or(ORDER.len())
}

/// Verdicts that leave something to do.
pub(super) const OPEN: [Verdict; 3] = [Verdict::Fail, Verdict::Error, Verdict::Inconclusive];

/// True if a verdict leaves something to do.
pub(super) fn is_open(verdict: Verdict) -> bool {
    OPEN.contains(&verdict)
}

/// A verdict as the word that follows a number.
pub(super) const fn past(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Pass => "passed",
        Verdict::Fail => "failed",
        Verdict::Inconclusive => "inconclusive",
        Verdict::Error => "with an error",
        Verdict::NotApplicable => "not applicable",
        Verdict::Skipped => "skipped",
    }
}

/// Verdicts with their numbers, such as `52 passed` and `16 not applicable`.
pub(super) fn counted(verdicts: impl Iterator<Item = Verdict>) -> Vec<(Verdict, String)> {
    let verdicts: Vec<_> = verdicts.collect();
    let counted = ORDER.into_iter().filter_map(|verdict| {
        let of = verdicts.iter().filter(|found| **found == verdict).count();
        (of > 0).then(|| (verdict, format!("{of} {}", past(verdict))))
    });
    counted.collect()
}

/// Something that did not pass, in a line.
pub(super) struct Finding<'a> {
    /// Place of the case among the results.
    pub index: usize,
    pub verdict: Verdict,
    /// First of the checks that found it; `None` where the whole case ended so.
    pub check: Option<&'a str>,
    /// Checks and repetitions that found the same, such as `paused [lossless 3; lossless 4]`, after
    /// the case where others were run too; or the case alone.
    pub title: String,
    /// The comparison that decided it, or the reason.
    pub found: String,
}

/// Returns the findings that failed, ended by an error or are inconclusive, in this order.
pub(super) fn open(results: &[CaseResult]) -> Vec<Finding<'_>> {
    let mut open = Vec::new();
    for (index, result) in results.iter().enumerate() {
        if is_open(result.verdict) && !result.reason.is_empty() {
            open.push(Finding {
                index,
                verdict: result.verdict,
                check: None,
                title: result.case.clone(),
                found: result.reason.clone(),
            });
        }
        let case = match results {
            [_] => String::new(),
            _ => format!("{} ", result.case),
        };
        let groups = groups(result).into_iter();
        let groups = groups.filter(|group| is_open(group.first.verdict));
        open.extend(groups.map(|group| Finding {
            index,
            verdict: group.first.verdict,
            check: Some(&group.first.check),
            title: format!(
                "{case}{} [{}]",
                group.checks.join(", "),
                group.repetitions.join("; ")
            ),
            found: found(group.first),
        }));
    }
    open.sort_by_key(|finding| rank(finding.verdict));
    open
}

/// Returns what decided a check: its reason, or the first comparison with the check's verdict.
pub(super) fn found(check: &CheckResult) -> String {
    if !check.reason.is_empty() {
        return check.reason.clone();
    }
    let lines = comparisons(&check.assertions);
    let more = lines.len().saturating_sub(1);
    let mut lines = lines.into_iter();
    match lines.find(|(verdict, _)| *verdict == check.verdict) {
        Some((_, line)) if more > 0 => format!("{line} (and {more} more)"),
        Some((_, line)) => line,
        None => check.verdict.word().to_owned(),
    }
}

/// Equal results of one check in several repetitions, or of several checks in one repetition.
pub(super) struct Group<'a> {
    pub first: &'a CheckResult,
    pub checks: Vec<&'a str>,
    pub repetitions: Vec<&'a str>,
}

/// Results other than pass; equal ones are grouped.
pub(super) fn groups(result: &CaseResult) -> Vec<Group<'_>> {
    let mut groups: Vec<Group> = Vec::new();
    let mut checks: Vec<_> = result.checks.iter().collect();
    checks.retain(|check| check.verdict != Verdict::Pass);
    checks.sort_by_key(|check| rank(check.verdict));
    for check in checks {
        let (id, repetition) = (check.check.as_str(), check.repetition.as_str());
        let same = |group: &&mut Group| {
            let first = group.first;
            (group.checks == [id] || group.repetitions == [repetition])
                && first.verdict == check.verdict
                && first.reason == check.reason
                && comparisons(&first.assertions) == comparisons(&check.assertions)
        };
        match groups.iter_mut().find(same) {
            Some(group) if group.checks == [id] => group.repetitions.push(repetition),
            Some(group) => group.checks.push(id),
            None => groups.push(Group {
                first: check,
                checks: vec![id],
                repetitions: vec![repetition],
            }),
        }
    }
    groups
}

/// The comparisons that did not pass, as sentences. Those that say the same of several flows are
/// one, with the number of the flows.
pub(super) fn comparisons(assertions: &[Assertion]) -> Vec<(Verdict, String)> {
    let open = assertions
        .iter()
        .filter(|assertion| assertion.verdict != Verdict::Pass);
    let is_same = |first: &&Assertion, other: &&Assertion| {
        let flow = beside_flow(first);
        flow.is_some()
            && flow == beside_flow(other)
            && (first.verdict, &first.expected) == (other.verdict, &other.expected)
            && first.actual == other.actual
    };
    let lines = alike(open, is_same).into_iter().map(|flows| {
        let mut line = sentence(flows[0]);
        if flows.len() > 1 {
            line += &format!(" (and as much for {} more flows)", flows.len() - 1);
        }
        (flows[0].verdict, line)
    });
    lines.collect()
}

/// The quantity of a comparison beside the name of its flow: the words before and after that.
fn beside_flow(made: &Assertion) -> Option<(&str, &str)> {
    made.what.split_once(&made.flow.as_ref()?.name)
}

/// Gathers what is alike in groups, in the order of their first.
pub(super) fn alike<T>(
    items: impl IntoIterator<Item = T>,
    is_same: impl Fn(&T, &T) -> bool,
) -> Vec<Vec<T>> {
    let mut groups: Vec<Vec<T>> = Vec::new();
    for item in items {
        match groups.iter_mut().find(|group| is_same(&group[0], &item)) {
            Some(group) => group.push(item),
            None => groups.push(vec![item]),
        }
    }
    groups
}

/// The results of each check, in the order of the case's table.
pub(super) fn by_check(result: &CaseResult) -> Vec<Vec<&CheckResult>> {
    alike(&result.checks, |one, other| one.check == other.check)
}

/// The verdict on results together.
pub(super) fn worst<'a>(results: impl IntoIterator<Item = &'a CheckResult>) -> Verdict {
    Verdict::of_parts(results.into_iter().map(|result| result.verdict))
}

/// A comparison as a sentence.
pub(super) fn sentence(assertion: &Assertion) -> String {
    format!(
        "{}: expected {}, found {}",
        assertion.what, assertion.expected, assertion.actual
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::Flow;

    #[test]
    fn comparisons_that_say_the_same_of_many_flows_are_one_line_with_their_number() {
        let lost = |id: u16, phase: &str, found: &str| {
            let name = format!("flow {id} (DSCP {id})");
            Assertion {
                what: format!("frames of {name} sent in phase {phase}"),
                flow: Some(Flow { id, name }),
                expected: "9".into(),
                actual: found.into(),
                verdict: Verdict::Fail,
                ..Assertion::default()
            }
        };
        let mut all: Vec<Assertion> = (0..64).map(|flow| lost(flow, "Storm", "0")).collect();
        all.push(lost(0, "Resume", "0"));
        all.insert(1, lost(70, "Storm", "8"));
        all.push(Assertion {
            verdict: Verdict::Pass,
            ..lost(3, "Baseline", "9")
        });
        let lines: Vec<String> = comparisons(&all)
            .into_iter()
            .map(|(_, line)| line)
            .collect();
        let line = |flow, phase: &str, found, more| {
            format!(
                "frames of flow {flow} (DSCP {flow}) sent in phase {phase}: expected 9, found \
                 {found}{more}"
            )
        };
        assert_eq!(
            lines,
            [
                line(0, "Storm", 0, " (and as much for 63 more flows)"),
                line(70, "Storm", 8, ""),
                line(0, "Resume", 0, ""),
            ]
        );
    }

    #[test]
    fn counts_say_what_they_count() {
        let verdicts = [
            Verdict::NotApplicable,
            Verdict::Pass,
            Verdict::Pass,
            Verdict::Fail,
        ];
        let words: Vec<_> = counted(verdicts.into_iter())
            .into_iter()
            .map(|(_, words)| words)
            .collect();
        assert_eq!(words, ["1 failed", "2 passed", "1 not applicable"]);
    }
}
