//! The result for people.

use super::findings::{self, Finding, Group};
use super::layout::{paint, paragraph};
use super::{fixed_set, hooks, identity, plain};
use crate::case::{CaseResult, Exit, Verdict};
use crate::evidence::{Evidence, Repetition};
use crate::preflight::kernel;

/// Rows of the closing table: with the lines around it, it fits a screen of 24 lines.
const ROWS: usize = 18;

/// Most findings that are listed before all else, and that are named at the end.
const FIRST: usize = 12;
const LAST: usize = 4;

/// The summary of a run: the checks and reasons of each case that did not pass, and a closing table
/// of all cases.
pub fn summary(evidence: &Evidence, results: &[CaseResult], exit: Exit, colour: bool) -> String {
    let open = |result: &&CaseResult| result.verdict != Verdict::Pass;
    summary_of(evidence, results, exit, colour, open)
}

/// The summary with the checks and figures of every case.
pub fn verbose(evidence: &Evidence, results: &[CaseResult], exit: Exit, colour: bool) -> String {
    summary_of(evidence, results, exit, colour, |_| true)
}

fn summary_of(
    evidence: &Evidence,
    results: &[CaseResult],
    exit: Exit,
    colour: bool,
    is_explained: impl Fn(&&CaseResult) -> bool,
) -> String {
    let mut out = String::new();
    let Evidence {
        version,
        testbed,
        host,
        seconds,
        ..
    } = evidence;
    let line = format!(
        "validator {version}, testbed {} ({}), Linux {} on {} with {} CPUs, {seconds:.1} s",
        testbed.name, testbed.dut, host.kernel, host.machine, host.cpus
    );
    paragraph(&mut out, "", &plain::text(&line));
    let plan = &evidence.invocation.plan;
    if !plan.is_empty() {
        let line = format!(
            "plan {plan} on {}, begun {}",
            host.name,
            identity::rfc3339(evidence.started)
        );
        paragraph(&mut out, "run        ", &plain::text(&line));
    }
    let words = testbed.identity.known();
    let words: Vec<_> = words
        .map(|(name, value)| format!("{name} {value}"))
        .collect();
    if !words.is_empty() {
        paragraph(&mut out, "DUT        ", &plain::text(&words.join(", ")));
    }
    for line in evidence
        .preflight
        .iter()
        .flat_map(super::preflight::shortfalls)
    {
        paragraph(&mut out, "preflight  ", &plain::text(&line));
    }
    if let Some(lacks) = evidence.preflight.as_ref().and_then(kernel::lacks) {
        paragraph(&mut out, "kernel     ", &lacks);
    }
    if let Some(marks) = marks(evidence) {
        paragraph(&mut out, "tagged     ", &marks);
    }
    if let Some(told) = fixed_set::of_run(evidence).and_then(|set| set.sentence()) {
        paragraph(&mut out, "not done   ", &plain::text(&told));
    }
    for told in hooks::failed_in_run(evidence) {
        paragraph(&mut out, "hook       ", &plain::text(&told));
    }
    let results = &plain::results(results)[..];
    let open = findings::open(results);
    first(&mut out, &open, colour);
    for result in results.iter().filter(is_explained) {
        out.push('\n');
        case(&mut out, result, colour);
    }
    out.push('\n');
    table(&mut out, results, colour);
    out.push_str(&conclusion(results, exit, colour));
    last(&mut out, &open, colour);
    out
}

/// Writes the results that did not pass, each on one line.
fn first(out: &mut String, open: &[Finding<'_>], colour: bool) {
    if open.is_empty() {
        return;
    }
    out.push('\n');
    for finding in open.iter().take(FIRST) {
        let word = finding.verdict.word();
        let mut line = String::new();
        paragraph(
            &mut line,
            &format!("{word}  "),
            &format!("{}: {}", finding.title(), finding.found),
        );
        out.push_str(&line.replacen(word, &paint(word, finding.verdict, colour), 1));
    }
    if open.len() > FIRST {
        out.push_str(&format!("and {} more, below\n", open.len() - FIRST));
    }
}

/// The names of what did not pass, where a terminal shows the end alone.
fn last(out: &mut String, open: &[Finding<'_>], colour: bool) {
    for verdict in findings::OPEN {
        let of: Vec<_> = open.iter().filter(|one| one.verdict == verdict).collect();
        let names = of.iter().take(LAST).map(|one| one.title());
        let mut names = names.collect::<Vec<_>>().join(", ");
        if of.is_empty() {
            continue;
        }
        if of.len() > LAST {
            names += &format!(" and {} more", of.len() - LAST);
        }
        let word = findings::past(verdict);
        let mut line = String::new();
        paragraph(&mut line, &format!("{word}: "), &names);
        out.push_str(&line.replacen(word, &paint(word, verdict, colour), 1));
    }
}

/// The marks of tagged flows, which point to different priorities so that a DUT that goes by the
/// wrong one fails. Those of the first repetition stand for all: every case follows one rule.
fn marks(evidence: &Evidence) -> Option<String> {
    let repetitions = evidence.cases.iter().flat_map(|case| &case.repetitions);
    let mut plans = repetitions.filter_map(Repetition::pfc).map(|pfc| &pfc.plan);
    let flows = plans.find_map(|plan| {
        let tagged = plan.flows.iter().filter(|flow| flow.pcp.is_some());
        Some(tagged.collect::<Vec<_>>()).filter(|flows| !flows.is_empty())
    })?;
    let pairs = flows.iter().take(8).filter_map(|flow| {
        let pcp = flow.pcp?;
        Some(format!("{pcp}/{}", flow.dscp))
    });
    let more = if flows.len() > 8 { ", ..." } else { "" };
    let field = if flows.iter().all(|flow| flow.pcp == Some(flow.priority)) {
        "PCP"
    } else {
        "DSCP"
    };
    Some(format!(
        "the DUT is to go by the {field}; the flows have PCP/DSCP {}{more}",
        pairs.collect::<Vec<_>>().join(", ")
    ))
}

fn case(out: &mut String, result: &CaseResult, colour: bool) {
    out.push_str(&format!(
        "{}  {}\n",
        result.case,
        paint(result.verdict.word(), result.verdict, colour)
    ));
    if !result.reason.is_empty() {
        paragraph(out, "  ", &result.reason);
    }
    let ids = check_ids(result);
    let width = ids.iter().map(|id| id.len()).max().unwrap_or(0);
    for id in &ids {
        let of = result.checks.iter().filter(|check| check.check == *id);
        let verdicts = of.map(|check| check.verdict);
        out.push_str(&format!("  {id:width$}  {}\n", counts(verdicts, colour)));
    }
    attempts(out, result, colour);
    assertions(out, result, colour);
    for group in findings::groups(result) {
        shortfall(out, &group, ids.len(), colour);
    }
    figures(out, result);
}

/// The attempts at each repetition that was measured more than once: what each left undecided, or
/// found otherwise than all together.
fn attempts(out: &mut String, result: &CaseResult, colour: bool) {
    for attempt in &result.attempts {
        let lead = format!("  attempt {} at {}: ", attempt.attempt, attempt.repetition);
        let open = attempt.checks.iter().filter(|check| {
            matches!(
                check.verdict,
                Verdict::Fail | Verdict::Error | Verdict::Inconclusive
            )
        });
        let mut alike: Vec<(Verdict, &str, Vec<&str>)> = Vec::new();
        for check in open {
            let same = |found: &&mut (Verdict, &str, Vec<&str>)| {
                (found.0, found.1) == (check.verdict, check.reason.as_str())
            };
            match alike.iter_mut().find(same) {
                Some((.., checks)) => checks.push(&check.check),
                None => alike.push((check.verdict, &check.reason, vec![&check.check])),
            }
        }
        let told: Vec<String> = alike
            .iter()
            .map(|(verdict, reason, checks)| {
                let word = paint(verdict.word(), *verdict, colour);
                format!("{} {word}, {reason}", checks.join(", "))
            })
            .collect();
        if told.is_empty() {
            paragraph(out, &lead, "nothing was left open");
        } else {
            paragraph(out, &lead, &told.join("; "));
        }
    }
}

/// The assertions of the document, one per line.
fn assertions(out: &mut String, result: &CaseResult, colour: bool) {
    if result.assertions.is_empty() {
        return;
    }
    out.push_str("  assertions of the document (values and every step: report.json)\n");
    let width = result
        .assertions
        .iter()
        .map(|found| found.id.len())
        .max()
        .unwrap_or(0);
    for found in &result.assertions {
        let word = found.outcome();
        let word = found
            .verdict
            .map_or(word.to_owned(), |verdict| paint(word, verdict, colour));
        let by = if found.checks.is_empty() {
            String::new()
        } else {
            format!("  ({})", found.checks.join(", "))
        };
        paragraph(
            out,
            &format!("      {:width$}  ", found.id),
            &format!("{word}{by}"),
        );
    }
}

/// Ids of a case's checks in the order of the case's table.
fn check_ids(result: &CaseResult) -> Vec<&str> {
    let mut ids: Vec<&str> = Vec::new();
    for check in &result.checks {
        if !ids.contains(&check.check.as_str()) {
            ids.push(&check.check);
        }
    }
    ids
}

/// Counts by verdict, such as `1 failed, 7 passed`.
fn counts(verdicts: impl Iterator<Item = Verdict>, colour: bool) -> String {
    let counted = findings::counted(verdicts).into_iter();
    let told = counted.map(|(verdict, words)| paint(&words, verdict, colour));
    told.collect::<Vec<_>>().join(", ")
}

fn shortfall(out: &mut String, group: &Group<'_>, checks: usize, colour: bool) {
    let first = group.first;
    let all = checks > 1 && group.checks.len() == checks;
    let names = if all {
        "all checks".to_owned()
    } else {
        group.checks.join(", ")
    };
    let title = format!("{names} [{}]:", group.repetitions.join("; "));
    let word = first.verdict.word();
    let mut line = String::new();
    paragraph(&mut line, &format!("  {word}  "), &title);
    out.push_str(&line.replacen(word, &paint(word, first.verdict, colour), 1));
    if !first.reason.is_empty() {
        paragraph(out, "      ", &first.reason);
    }
    for (verdict, line) in findings::comparisons(&first.assertions) {
        if line != first.reason {
            paragraph(out, &format!("      {verdict}  "), &line);
        }
    }
}

/// Figures of one repetition: the first that has something to explain, or else the first of all.
fn figures(out: &mut String, result: &CaseResult) {
    let troubled = result.checks.iter().find(|check| {
        matches!(
            check.verdict,
            Verdict::Fail | Verdict::Error | Verdict::Inconclusive
        )
    });
    let of = |repetition: &str| {
        result
            .figures
            .iter()
            .filter(|figure| figure.repetition == repetition)
            .collect::<Vec<_>>()
    };
    let mut shown = troubled
        .map(|check| of(&check.repetition))
        .unwrap_or_default();
    if shown.is_empty() {
        shown = result
            .figures
            .first()
            .map(|figure| of(&figure.repetition))
            .unwrap_or_default();
    }
    let Some(first) = shown.first() else { return };
    let others = result.figures.len() > shown.len();
    let note = if others {
        format!(" (the other repetitions: {})", super::REPORT)
    } else {
        String::new()
    };
    out.push_str(&format!("  figures of {}{note}\n", first.repetition));
    let width = shown
        .iter()
        .map(|figure| figure.name.chars().count())
        .max()
        .unwrap_or(0);
    for figure in &shown {
        paragraph(
            out,
            &format!("      {:width$}  ", figure.name),
            &figure.value,
        );
    }
}

/// The closing table: a row for each case, with how its checks came out. Cases that passed share a
/// row where there are too many for a screen.
fn table(out: &mut String, results: &[CaseResult], colour: bool) {
    let is_shared = |result: &CaseResult| results.len() > ROWS && result.verdict == Verdict::Pass;
    let shown = || results.iter().filter(|result| !is_shared(result));
    let width = shown().map(|result| result.case.chars().count()).max();
    let width = width.unwrap_or(0);
    let longest = Verdict::NotApplicable.word().len();
    for result in shown() {
        let word = format!("{:longest$}", result.verdict.word());
        let checks = match &result.checks[..] {
            [] => "no check".to_owned(),
            checks => {
                let verdicts = checks.iter().map(|check| check.verdict);
                // Without colours, of which no line knows where to break.
                format!("checks: {}", counts(verdicts, false))
            }
        };
        let mut row = String::new();
        paragraph(
            &mut row,
            &format!("{:width$}  {word}  ", result.case),
            &checks,
        );
        let painted = paint(&word, result.verdict, colour);
        out.push_str(&row.replacen(&word, &painted, 1));
    }
    let shared = results.iter().filter(|result| is_shared(result)).count();
    if shared > 0 {
        out.push_str(&format!("and {shared} more that pass\n"));
    }
    if !results.is_empty() {
        out.push('\n');
    }
}

/// The last line: the overall verdict, and the number of cases by verdict.
pub(super) fn conclusion(results: &[CaseResult], exit: Exit, colour: bool) -> String {
    let verdict = Verdict::of_parts(results.iter().map(|result| result.verdict));
    let verdicts = results.iter().map(|result| result.verdict);
    let of_cases = if results.is_empty() {
        "no case was run".to_owned()
    } else {
        format!("cases: {}", counts(verdicts, colour))
    };
    let interrupted = if exit == Exit::Interrupted {
        ", interrupted"
    } else {
        ""
    };
    format!(
        "verdict: {}{interrupted} ({of_cases}; exit code {})\n",
        paint(verdict.word(), verdict, colour),
        exit as u8
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::{Assertion, AttemptResult, CheckResult};

    #[test]
    fn a_reason_that_several_checks_share_is_told_once_for_each_attempt_and_for_the_result() {
        let reason = "accounting: drops on the tester's own side";
        let check = |name: &str, measured: &str| CheckResult {
            check: name.into(),
            repetition: "lossless 3".into(),
            verdict: Verdict::Inconclusive,
            reason: reason.into(),
            assertions: vec![Assertion {
                what: "frames".into(),
                expected: measured.into(),
                actual: measured.into(),
                verdict: Verdict::Pass,
                about: Vec::new(),
            }],
        };
        let other = CheckResult {
            reason: "another".into(),
            ..check("xon", "3")
        };
        let checks = vec![check("paused", "1"), check("delivered", "2"), other];
        let result = CaseResult {
            case: "pfc.pause-single-lossless".into(),
            verdict: Verdict::Inconclusive,
            reason: String::new(),
            attempts: vec![AttemptResult {
                repetition: "lossless 3".into(),
                attempt: 1,
                checks: checks.clone(),
            }],
            checks,
            assertions: Vec::new(),
            steps: Vec::new(),
            figures: Vec::new(),
        };
        let mut text = String::new();
        case(&mut text, &result, false);
        let words: Vec<_> = text.split_whitespace().collect();
        let text = words.join(" ");
        for expected in [
            format!("attempt 1 at lossless 3: paused, delivered inconclusive, {reason}; xon"),
            format!("inconclusive paused, delivered [lossless 3]: {reason}"),
            "inconclusive xon [lossless 3]: another".into(),
        ] {
            assert!(text.contains(&expected), "expected `{expected}` in {text}");
        }
        assert_eq!(text.matches(reason).count(), 2, "{text}");
    }
}
