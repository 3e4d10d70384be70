//! The result of the demo on one screen: a line for each case, and where the rest is.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde::Deserialize;

use super::{PAGE, REPORT};

/// Columns of a line, as of an ordinary terminal.
const WIDTH: usize = 100;

/// The part of `report.json` that the table is made from.
#[derive(Deserialize)]
pub struct Report {
    verdict: String,
    exit_code: u8,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    case: String,
    verdict: String,
    reason: String,
    checks: Vec<Check>,
    #[serde(default)]
    attempts: Vec<serde::de::IgnoredAny>,
}

#[derive(Deserialize)]
struct Check {
    check: String,
    repetitions: Vec<Outcome>,
}

#[derive(Deserialize)]
struct Outcome {
    repetition: String,
    verdict: String,
    reason: String,
}

/// Reads the report.
pub fn read(file: &Path) -> Result<Report> {
    let what = || format!("{}: expected the report of a run", file.display());
    let text = fs::read_to_string(file).with_context(what)?;
    serde_json::from_str(&text).with_context(what)
}

/// The table. `folder` is where the report is.
pub fn of(report: &Report, folder: &Path) -> String {
    let mut text = rows(&Vec::from_iter(&report.cases));
    let folder = folder.display();
    text.push_str(&format!(
        "\nverdict: {} (exit code {})\n\
         every check: {folder}/{PAGE}; for programs: {folder}/{REPORT}\n\
         judged again from the evidence: target/release/validator judge {folder}\n",
        report.verdict, report.exit_code
    ));
    text
}

/// The lines of the cases that did not pass.
pub fn not_passed(report: &Report) -> String {
    let cases = report.cases.iter();
    rows(&Vec::from_iter(cases.filter(|case| case.verdict != "pass")))
}

fn rows(cases: &[&Case]) -> String {
    let width = |of: fn(&Case) -> &str| {
        let all = cases.iter().map(|case| of(case).chars().count());
        all.max().unwrap_or(0)
    };
    let (case, verdict) = (width(|case| &case.case), width(|case| &case.verdict));
    let mut text = String::new();
    for of in cases {
        let line = format!("{:case$}  {:verdict$}  {}", of.case, of.verdict, line(of));
        text.push_str(&cut(&line));
        text.push('\n');
    }
    text
}

/// Returns what to say of a case: what passed, or the first check that decides its verdict.
fn line(case: &Case) -> String {
    let outcomes = || {
        case.checks
            .iter()
            .flat_map(|check| check.repetitions.iter().map(move |of| (check, of)))
    };
    if !case.reason.is_empty() {
        return case.reason.clone();
    }
    let decides = outcomes().find(|(_, outcome)| outcome.verdict == case.verdict);
    match decides {
        Some((check, outcome)) if case.verdict != "pass" => {
            format!(
                "{} [{}]: {}",
                check.check, outcome.repetition, outcome.reason
            )
        }
        _ => {
            let passed = outcomes()
                .filter(|(_, outcome)| outcome.verdict == "pass")
                .count();
            let again = match case.attempts.len() {
                0 => String::new(),
                attempts => format!(" ({attempts} attempts at some repetitions)"),
            };
            format!("{passed} checks passed{again}")
        }
    }
}

/// As much of a line as fits.
fn cut(line: &str) -> String {
    if line.chars().count() <= WIDTH {
        return line.to_owned();
    }
    let kept: String = line.chars().take(WIDTH - 3).collect();
    format!("{}...", kept.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_case_is_a_line_that_says_what_decides() {
        let outcome = |verdict: &str, reason: &str| Outcome {
            repetition: "lossless 3".into(),
            verdict: verdict.into(),
            reason: reason.into(),
        };
        let case = |case: &str, verdict: &str, outcomes| Case {
            case: case.into(),
            verdict: verdict.into(),
            reason: String::new(),
            checks: vec![Check {
                check: "paused".into(),
                repetitions: outcomes,
            }],
            attempts: Vec::new(),
        };
        let report = Report {
            verdict: "fail".into(),
            exit_code: 1,
            cases: vec![
                case(
                    "a",
                    "pass",
                    vec![outcome("pass", ""), outcome("skipped", "")],
                ),
                case(
                    "bcd",
                    "fail",
                    vec![outcome("pass", ""), outcome("fail", &"e ".repeat(99))],
                ),
            ],
        };
        let text = of(&report, Path::new("here"));
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "a    pass  1 checks passed");
        assert!(lines[1].starts_with("bcd  fail  paused [lossless 3]: e e "));
        assert!(lines[1].ends_with("...") && lines[1].len() <= WIDTH);
        assert_eq!(lines[3], "verdict: fail (exit code 1)");
        assert!(lines[4].contains("here/report.html"));
        let open = not_passed(&report);
        assert!(open.starts_with("bcd  fail  paused ") && open.lines().count() == 1);
    }
}
