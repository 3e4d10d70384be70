//! The result for people.

use super::findings::{self, Finding, Group};
use super::layout::{paint, paragraph, verdict_paragraph};
use super::{fixed_set, hooks, identity, pfc, plain};
use crate::evidence::Evidence;
use crate::preflight::kernel;
use crate::verdict::{CaseResult, Exit, Figure, Verdict};

/// Rows of the closing table: with the lines around it, it fits a screen of 24 lines.
const ROWS: usize = 18;

/// Most findings that are listed before all else, and that are named at the end.
const FIRST: usize = 12;
const LAST: usize = 4;

/// The summary of a run: the checks and reasons of each case that did not pass, and a closing table
/// of all cases.
pub fn summary(evidence: &Evidence, results: &[CaseResult], exit: Exit, colour: bool) -> String {
    summary_of(evidence, results, exit, colour, false)
}

/// The summary with the checks and figures of every case.
pub fn verbose(evidence: &Evidence, results: &[CaseResult], exit: Exit, colour: bool) -> String {
    summary_of(evidence, results, exit, colour, true)
}

fn summary_of(
    evidence: &Evidence,
    results: &[CaseResult],
    exit: Exit,
    colour: bool,
    verbose: bool,
) -> String {
    let mut out = String::new();
    for (label, text) in head(evidence) {
        paragraph(&mut out, label, &plain::text(&text));
    }
    let results = &plain::results(results)[..];
    let open = findings::open(results);
    first(&mut out, &open, colour);
    for result in results {
        if verbose || result.verdict != Verdict::Pass {
            out.push('\n');
            case(&mut out, result, colour);
        }
    }
    out.push('\n');
    table(&mut out, results, colour);
    out.push_str(&conclusion(results, exit, colour));
    last(&mut out, &open, colour);
    out
}

/// Labels and lines on the run: its place, plan and DUT, and shortfalls that concern no single
/// case.
fn head(evidence: &Evidence) -> Vec<(&'static str, String)> {
    let Evidence {
        version,
        testbed,
        host,
        seconds,
        ..
    } = evidence;
    let mut lines = vec![(
        "",
        format!(
            "validator {version}, testbed {} ({}), Linux {} on {} with {} CPUs, {seconds:.1} s",
            testbed.name, testbed.dut, host.kernel, host.machine, host.cpus
        ),
    )];
    let plan = &evidence.invocation.plan;
    if !plan.is_empty() {
        let started = identity::rfc3339(evidence.started);
        let line = format!("plan {plan} on {}, begun {started}", host.name);
        lines.push(("run        ", line));
    }
    let words = testbed.identity.known();
    let words: Vec<_> = words
        .map(|(name, value)| format!("{name} {value}"))
        .collect();
    if !words.is_empty() {
        lines.push(("DUT        ", words.join(", ")));
    }
    let preflight = || evidence.preflight.iter();
    let shortfalls = preflight().flat_map(super::preflight::shortfalls);
    let lacks = preflight().filter_map(kernel::lacks);
    let not_done = fixed_set::of_run(evidence).and_then(|set| set.sentence());
    lines.extend(shortfalls.map(|line| ("preflight  ", line)));
    lines.extend(lacks.map(|line| ("kernel     ", line)));
    lines.extend(marks(evidence).map(|line| ("tagged     ", line)));
    lines.extend(not_done.map(|line| ("not done   ", line)));
    let hooks = hooks::failed_in_run(evidence).into_iter();
    lines.extend(hooks.map(|line| ("hook       ", line)));
    lines
}

/// Writes the results that did not pass, each on one line.
fn first(out: &mut String, open: &[Finding<'_>], colour: bool) {
    if !open.is_empty() {
        out.push('\n');
    }
    for finding in open.iter().take(FIRST) {
        let word = finding.verdict.word();
        let text = format!("{}: {}", finding.title, finding.found);
        let painted = (word, finding.verdict, colour);
        verdict_paragraph(out, &format!("{word}  "), painted, &text);
    }
    if open.len() > FIRST {
        out.push_str(&format!("and {} more, below\n", open.len() - FIRST));
    }
}

/// The names of what did not pass, where a terminal shows the end alone.
fn last(out: &mut String, open: &[Finding<'_>], colour: bool) {
    for verdict in findings::OPEN {
        let of: Vec<_> = open.iter().filter(|one| one.verdict == verdict).collect();
        let names = of.iter().take(LAST).map(|one| one.title.as_str());
        let mut names = names.collect::<Vec<_>>().join(", ");
        if of.is_empty() {
            continue;
        }
        if of.len() > LAST {
            names += &format!(" and {} more", of.len() - LAST);
        }
        let word = findings::past(verdict);
        verdict_paragraph(out, &format!("{word}: "), (word, verdict, colour), &names);
    }
}

/// The marks of tagged flows, which point to different priorities so that a DUT that goes by the
/// wrong one fails. Those of the first repetition stand for all: every case follows one rule.
fn marks(evidence: &Evidence) -> Option<String> {
    let mut plans = evidence.cases.iter().flat_map(pfc).map(|pfc| &pfc.plan);
    let flows = plans.find_map(|plan| {
        let tagged = plan.flows.iter().filter(|flow| flow.pcp.is_some());
        Some(tagged.collect::<Vec<_>>()).filter(|flows| !flows.is_empty())
    })?;
    let pairs = flows.iter().take(8);
    let pairs = pairs.filter_map(|flow| Some(format!("{}/{}", flow.pcp?, flow.dscp)));
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
    let checks = findings::by_check(result);
    let width = width(checks.iter().map(|of| of[0].check.as_str()));
    for of in &checks {
        let counts = counts(of.iter().map(|check| check.verdict), colour);
        out.push_str(&format!("  {:width$}  {counts}\n", of[0].check));
    }
    attempts(out, result, colour);
    assertions(out, result, colour);
    for group in findings::groups(result) {
        shortfall(out, &group, checks.len(), colour);
    }
    figures(out, result);
}

/// Characters of the longest of these names.
fn width<'a>(names: impl Iterator<Item = &'a str>) -> usize {
    let lengths = names.map(|name| name.chars().count());
    lengths.max().unwrap_or(0)
}

/// The attempts at each repetition that was measured more than once: what each left undecided, or
/// found otherwise than all together.
fn attempts(out: &mut String, result: &CaseResult, colour: bool) {
    for attempt in &result.attempts {
        let lead = format!("  attempt {} at {}: ", attempt.attempt, attempt.repetition);
        let open = attempt.checks.iter();
        let open = open.filter(|check| findings::is_open(check.verdict));
        let alike = findings::alike(open, |one, other| {
            (one.verdict, &one.reason) == (other.verdict, &other.reason)
        });
        let left: Vec<String> = alike
            .iter()
            .map(|checks| {
                let names: Vec<&str> = checks.iter().map(|check| check.check.as_str()).collect();
                let word = paint(checks[0].verdict.word(), checks[0].verdict, colour);
                format!("{} {word}, {}", names.join(", "), checks[0].reason)
            })
            .collect();
        match &left[..] {
            [] => paragraph(out, &lead, "nothing was left open"),
            left => paragraph(out, &lead, &left.join("; ")),
        }
    }
}

/// The assertions of the document, one per line.
fn assertions(out: &mut String, result: &CaseResult, colour: bool) {
    if result.assertions.is_empty() {
        return;
    }
    out.push_str("  assertions of the document (values and every step: report.json)\n");
    let width = width(result.assertions.iter().map(|found| found.id.as_str()));
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
        let lead = format!("      {:width$}  ", found.id);
        paragraph(out, &lead, &format!("{word}{by}"));
    }
}

/// Counts by verdict, such as `1 failed, 7 passed`.
fn counts(verdicts: impl Iterator<Item = Verdict>, colour: bool) -> String {
    let counted = findings::counted(verdicts).into_iter();
    let painted = counted.map(|(verdict, words)| paint(&words, verdict, colour));
    painted.collect::<Vec<_>>().join(", ")
}

fn shortfall(out: &mut String, group: &Group<'_>, checks: usize, colour: bool) {
    let first = group.first;
    let all = checks > 1 && group.checks.len() == checks;
    let names = match all {
        true => "all checks".to_owned(),
        false => group.checks.join(", "),
    };
    let title = format!("{names} [{}]:", group.repetitions.join("; "));
    let word = first.verdict.word();
    let painted = (word, first.verdict, colour);
    verdict_paragraph(out, &format!("  {word}  "), painted, &title);
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
    let of = |repetition: &str| -> Vec<&Figure> {
        let figures = result.figures.iter();
        figures
            .filter(|figure| figure.repetition == repetition)
            .collect()
    };
    let mut checks = result.checks.iter();
    let troubled = checks.find(|check| findings::is_open(check.verdict));
    let troubled = troubled.map(|check| of(&check.repetition));
    let shown = troubled
        .filter(|figures| !figures.is_empty())
        .or_else(|| Some(of(&result.figures.first()?.repetition)))
        .unwrap_or_default();
    let Some(first) = shown.first() else { return };
    let others = result.figures.len() > shown.len();
    let note = if others {
        format!(" (the other repetitions: {})", super::REPORT)
    } else {
        String::new()
    };
    out.push_str(&format!("  figures of {}{note}\n", first.repetition));
    let width = width(shown.iter().map(|figure| figure.name.as_str()));
    for figure in &shown {
        let lead = format!("      {:width$}  ", figure.name);
        paragraph(out, &lead, &figure.value);
    }
}

/// The closing table: a row for each case, with how its checks came out. Cases that passed share a
/// row where there are too many for a screen.
fn table(out: &mut String, results: &[CaseResult], colour: bool) {
    let is_shared = |result: &CaseResult| results.len() > ROWS && result.verdict == Verdict::Pass;
    let shown = || results.iter().filter(|result| !is_shared(result));
    let width = width(shown().map(|result| result.case.as_str()));
    let longest = Verdict::NotApplicable.word().len();
    for result in shown() {
        let word = format!("{:longest$}", result.verdict.word());
        let checks = match &result.checks[..] {
            [] => "no check".to_owned(),
            checks => {
                let verdicts = checks.iter().map(|check| check.verdict);
                format!("checks: {}", counts(verdicts, false))
            }
        };
        let lead = format!("{:width$}  {word}  ", result.case);
        verdict_paragraph(out, &lead, (&word, result.verdict, colour), &checks);
    }
    let shared = results.len() - shown().count();
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
    use crate::verdict::{Assertion, AttemptResult, CheckResult};

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
                ..Assertion::default()
            }],
            causes: Vec::new(),
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
